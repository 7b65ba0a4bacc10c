# SPDX-License-Identifier: Apache-2.0
"""Tables of parity cases: each row is converted, checked, run and compared with JAX."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime
import pytest

import jaxport
from jaxport import _core, _jax, lowering, runtime
from jaxport.session import watched
from support.tolerances import assert_close

OPSETS = (17, 23)
# What symbols of a shape are in turn: the unit size, and sizes that are no power of each other.
SYMBOL_SIZES = (1, 2, 7)


@dataclasses.dataclass(frozen=True)
class Spec:
    """One input: a dtype, a shape with names, and the range its numbers come from."""

    dtype: str
    shape: tuple[int | str, ...]
    lo: float
    hi: float

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"

    @property
    def numpy_dtype(self) -> np.dtype:
        return np.dtype(bool if self.dtype == "bool" else getattr(jnp, self.dtype))

    def sample(self, random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        dtype = self.numpy_dtype
        if self.dtype == "bool":
            return random.integers(0, 2, shape).astype(bool)
        if jnp.issubdtype(dtype, jnp.integer):
            return random.integers(int(self.lo), int(self.hi), shape, dtype=dtype, endpoint=True)
        if jnp.issubdtype(dtype, jnp.complexfloating):
            parts = random.uniform(self.lo, self.hi, (2, *shape))
            return (parts[0] + 1j * parts[1]).astype(dtype)
        return random.uniform(self.lo, self.hi, shape).astype(dtype)


def _maker(dtype: str, lo: float, hi: float) -> Callable[..., Spec]:
    def make(*shape: int | str, lo: float = lo, hi: float = hi) -> Spec:
        return Spec(dtype, shape, lo, hi)

    return make


f32 = _maker("float32", -3.0, 3.0)
f64 = _maker("float64", -3.0, 3.0)
f16 = _maker("float16", -3.0, 3.0)
bf16 = _maker("bfloat16", -3.0, 3.0)
c64 = _maker("complex64", -3.0, 3.0)
c128 = _maker("complex128", -3.0, 3.0)
i8 = _maker("int8", -9, 9)
i16 = _maker("int16", -9, 9)
i32 = _maker("int32", -9, 9)
i64 = _maker("int64", -9, 9)
u8 = _maker("uint8", 0, 9)
u16 = _maker("uint16", 0, 9)
u32 = _maker("uint32", 0, 9)
u64 = _maker("uint64", 0, 9)
boolean = _maker("bool", 0, 1)


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    name: str
    fn: Callable[..., Any]
    inputs: Sequence[Spec]
    tolerance: str
    opsets: Sequence[int]
    sizes: Sequence[int]

    @property
    def id(self) -> str:
        return f"{self.name} {','.join(map(str, self.inputs))}"

    @property
    def needs_double_precision(self) -> bool:
        wide = ("float64", "int64", "uint64", "complex128")
        return any(spec.dtype in wide for spec in self.inputs)


def case(
    name: str,
    fn: Callable[..., Any],
    inputs: Sequence[Spec],
    also: Sequence[Sequence[Spec]] = (),
    *,
    tolerance: str = "rounding",
    opsets: Sequence[int] = OPSETS,
    sizes: Sequence[int] = SYMBOL_SIZES,
) -> list[Case]:
    """A row: `fn` at `inputs` in every opset, and at other inputs in the newest of these opsets."""
    newest = [max(opsets)]
    return [
        Case(name, fn, inputs, tolerance, opsets, sizes),
        *(Case(name, fn, other, tolerance, newest, sizes) for other in also),
    ]


_ROWS_AT_ONCE = 10
_neighbours: dict[Case, Sequence[Case]] = {}  # of a case: what JAX compiles together with it


def parity(rows: Iterable[list[Case]]) -> pytest.MarkDecorator:
    """Parametrises a test with the cases of a table."""
    rows = list(rows)
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        neighbours = list(itertools.chain(*rows[first : first + _ROWS_AT_ONCE]))
        _neighbours.update(dict.fromkeys(neighbours, neighbours))
    cases = list(itertools.chain(*rows))
    ids = [case.id for case in cases]
    assert len(set(ids)) == len(ids), "two rows of a table have the same name and inputs"
    return pytest.mark.parametrize("case", cases, ids=ids)


def check(case: Case, capfd: pytest.CaptureFixture[str]) -> None:
    """Converts a case for each opset; the model is valid and gives JAX's numbers at every size."""
    double = case.needs_double_precision
    alike = [
        other for other in _neighbours.get(case, [case]) if other.needs_double_precision == double
    ]
    with _jax.double_precision(double):
        expected = _expected(tuple(alike)).get(case) or _expected((case,))[case]
    for opset, model in models_of(case):
        session = load(model, opset)
        for arrays, results in expected:
            outputs = runtime.run(session, [_jax.host_array(array) for array in arrays])
            for (name, have), want in zip(outputs.items(), results, strict=True):
                assert_close(name, want, have, case.tolerance)
    assert_quiet(capfd)


Arrays = list[np.ndarray]


@functools.lru_cache(maxsize=16)
def _expected(cases: tuple[Case, ...]) -> dict[Case, list[tuple[Arrays, Arrays]]]:
    """The examples of cases, and what JAX computes for each; none where JAX refuses one of many."""
    inputs = {case: list(examples_of(case.inputs, case.sizes)) for case in cases}
    programs = [(case.fn, arrays) for case in cases for arrays in inputs[case]]
    try:
        results = iter(run_jax_programs(programs))
    except Exception:
        if len(cases) == 1:
            raise
        return {}
    return {
        case: [(arrays, next(results)) for arrays in examples] for case, examples in inputs.items()
    }


def models_of(case: Case) -> Iterator[tuple[int, onnx.ModelProto]]:
    """The model of a case for each of its opsets."""
    first, *others = case.opsets
    options = {"opset": first, "enable_double_precision": case.needs_double_precision}
    model = jaxport.to_onnx(case.fn, structs(case.inputs), return_mode="model", **options)
    yield first, model.to_proto()
    for opset in others:
        yield opset, compiled_again(model, opset)


def compiled_again(
    model: jaxport.Model, opset: int, raise_: bool = True, without_rules: Sequence[str] = ()
) -> onnx.ModelProto:
    """A model of the same program. Tracing, which takes longer than compiling, is not repeated."""
    choices = {"opset": opset, "raise_": raise_, "without_rules": list(without_rules)}
    with watched() as session:
        compiled = _core.compile(session, model._module, choices, lowering.functions())
    return onnx.ModelProto.FromString(compiled.to_bytes(source_locations=True))


def load(model: onnx.ModelProto, opset: int) -> onnxruntime.InferenceSession:
    """Checks a model against the ONNX specification and loads it."""
    onnx.checker.check_model(model, full_check=True)
    assert {entry.domain: entry.version for entry in model.opset_import}[""] == opset
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def assert_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    """ONNX Runtime writes its warnings to stderr; a good model causes none."""
    complaints = [line for line in capfd.readouterr().err.splitlines() if "onnxruntime" in line]
    assert not complaints, complaints


def structs(specs: Sequence[Spec]) -> list[jax.ShapeDtypeStruct]:
    """The specs as to_onnx takes them, equal names being the same symbol."""
    scope = jax.export.SymbolicScope()
    return [jax.ShapeDtypeStruct(_dims(spec.shape, scope), spec.numpy_dtype) for spec in specs]


def _dims(shape: Sequence[int | str], scope: jax.export.SymbolicScope) -> tuple[Any, ...]:
    return tuple(
        jax.export.symbolic_shape(size, scope=scope)[0] if isinstance(size, str) else size
        for size in shape
    )


def examples_of(
    specs: Sequence[Spec], sizes: Sequence[int] = SYMBOL_SIZES
) -> Iterable[list[np.ndarray]]:
    """Inputs at each round of symbol sizes; one round when no size is symbolic."""
    scope = jax.export.SymbolicScope()
    shapes = [_dims(spec.shape, scope) for spec in specs]
    symbolic = any(_jax.is_symbolic(size) for shape in shapes for size in shape)
    for turn in range(len(sizes) if symbolic else 1):
        random = np.random.default_rng(turn)
        known: dict[str, int] = {}

        def size_of(name: str, turn: int = turn, known: dict[str, int] = known) -> int:
            return known.setdefault(name, sizes[(turn + len(known)) % len(sizes)])

        yield [
            spec.sample(random, tuple(_jax.dim_value(size, size_of) for size in shape))
            for spec, shape in zip(specs, shapes, strict=True)
        ]


def run_jax(fn: Callable[..., Any], arrays: Arrays) -> Arrays:
    """The leaves of what JAX computes."""
    return run_jax_on(fn, [arrays])[0]


def run_jax_on(fn: Callable[..., Any], examples: Sequence[Arrays]) -> list[Arrays]:
    """The same for each of several examples."""
    return run_jax_programs([(fn, arrays) for arrays in examples])


def run_jax_programs(programs: Sequence[tuple[Callable[..., Any], Arrays]]) -> list[Arrays]:
    """The same for several functions, each with its arrays. They are compiled at once: it takes
    most of the time of a test to compile what is then run once."""
    fns = [fn for fn, _ in programs]
    together = jax.jit(lambda *all: [fn(*arrays) for fn, arrays in zip(fns, all, strict=True)])
    results = together(*(arrays for _, arrays in programs))
    return [[_jax.host_array(leaf) for leaf in jax.tree.leaves(result)] for result in results]

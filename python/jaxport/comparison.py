# SPDX-License-Identifier: Apache-2.0
"""jaxport.compare: a model of ours beside one of somebody else."""

from __future__ import annotations

import dataclasses
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import _core, _jax, agreement, runtime
from .api import to_onnx
from .errors import ConversionError, first_line
from .frameworks import program_of
from .inputs import Inputs
from .record import bound
from .testing import source_of

_RUNS, _SECONDS = 30, 2.0  # runs of each model that are timed, and how long at most
_DTYPES = {"tensor(float)": "float32", "tensor(double)": "float64"}

Array = np.ndarray[Any, Any]


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the table: what it is about, and what each side has."""

    what: str
    lhs: str
    rhs: str


@dataclasses.dataclass(frozen=True)
class Side:
    """What was measured of one model.

    Attributes:
        name: the heading of its column.
        size: bytes of the model, weights in the file included.
        milliseconds: the median of a run in ONNX Runtime.
        outputs: its results by name.
    """

    name: str
    size: int
    milliseconds: float
    outputs: dict[str, Array]


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Two models side by side; str() gives a table.

    Attributes:
        lhs, rhs: what was measured of each model.
        facts: metadata, inputs and outputs, parameters, functions and nodes, in this order.
        values: the largest difference of each result, from JAX where there is a function.
        same_values: whether all results agree within the tolerance.
    """

    lhs: Side
    rhs: Side
    facts: tuple[Row, ...]
    values: tuple[Row, ...]
    same_values: bool

    @property
    def differences(self) -> tuple[Row, ...]:
        """The facts that the models do not share."""
        return tuple(row for row in self.facts if row.lhs != row.rhs)

    def __str__(self) -> str:
        measured = [
            Row("bytes", f"{self.lhs.size:,}", f"{self.rhs.size:,}"),
            Row("milliseconds", f"{self.lhs.milliseconds:.3f}", f"{self.rhs.milliseconds:.3f}"),
        ]
        rows = [Row("", self.lhs.name, self.rhs.name), *self.facts, *measured, *self.values]
        cells = [(row.what, row.lhs or "-", row.rhs or "-", _mark(row)) for row in rows]
        widths = [max(len(row[i]) for row in cells) for i in range(3)]
        lines = [
            f"{what:{widths[0]}}  {mark} {lhs:{widths[1]}}  {rhs}" for what, lhs, rhs, mark in cells
        ]
        verdict = "the values agree" if self.same_values else "THE VALUES DIFFER"
        return "\n".join(line.rstrip() for line in [*lines, verdict])


def compare(
    fn: Callable[..., Any],
    inputs: Inputs,
    other_model: Any,
    input_params: Mapping[str, Any] | None = None,
    *,
    rtol: float = 1e-3,
    atol: float = 1e-5,
    enable_double_precision: bool = False,
    **options: Any,
) -> Comparison:
    """Converts fn and puts the model beside another one of the same function.

    Args:
        fn: the function that both models come from.
        inputs: as to_onnx takes them; both models and JAX get the same random numbers.
        other_model: a path, bytes, an onnx.ModelProto or a jaxport.Model.
        input_params: keyword arguments of fn; those that are inputs of a model are fed to it.
        rtol, atol: what values may differ by, as in jaxport.allclose.
        enable_double_precision, options: those of to_onnx.

    Returns:
        A Comparison: metadata, inputs and outputs, nodes, sizes, latency, and how far the values
        of each model are from JAX's.
    """
    model = to_onnx(
        fn,
        inputs,
        input_params,
        return_mode="model",
        enable_double_precision=enable_double_precision,
        **options,
    )
    program = program_of(fn)
    with _jax.double_precision(enable_double_precision):
        default = jnp.float64 if enable_double_precision else jnp.float32
        arguments = agreement.example_arguments(inputs, dict(input_params or {}), default)
        arguments = bound(program.function, arguments)
        result, _ = program.call(None, *arguments.positional, **arguments.keywords)
        expected = _arrays(result)

        def feeds(name: str, session: Any) -> list[Array]:
            found = agreement.model_feeds(session, arguments, (), agreement.held_by(program))
            return _fitting(name, found)

        lhs, rhs = _measure([("jaxport", model), ("other", other_model)], feeds)
    values = tuple(
        Row(f"output {i} - JAX", _distance(want, lhs, i), _distance(want, rhs, i))
        for i, want in enumerate(expected)
    )
    same = all(agreement.compare(expected, s.outputs, rtol, atol)[0] for s in (lhs, rhs))
    return Comparison(lhs, rhs, _facts(model, other_model), values, same)


def compare_models(lhs: Any, rhs: Any, *, rtol: float = 1e-3, atol: float = 1e-5) -> Comparison:
    """Two models of the same function, on the same random inputs; `jaxport diff --run`."""
    feeds = _by_position(random_inputs(runtime.open_given(lhs)))
    first, second = _measure([(_title(lhs, "lhs"), lhs), (_title(rhs, "rhs"), rhs)], feeds)
    reference = list(first.outputs.values())
    same, _ = agreement.compare(reference, second.outputs, rtol, atol)
    values = tuple(
        Row(f"output {i} - lhs", "0", _distance(want, second, i))
        for i, want in enumerate(reference)
    )
    return Comparison(first, second, _facts(lhs, rhs), values, same)


def _mark(row: Row) -> str:
    return " " if row.lhs == row.rhs or not row.what else "|"


def _title(model: Any, otherwise: str) -> str:
    return os.fspath(model) if isinstance(model, str | os.PathLike) else otherwise


def _facts(lhs: Any, rhs: Any) -> tuple[Row, ...]:
    return tuple(Row(*row) for row in _core.side_by_side(source_of(lhs), source_of(rhs)))


def _measure(
    models: Sequence[tuple[str, Any]], feeds_of: Callable[[str, Any], list[Array]]
) -> Iterator[Side]:
    """Runs the models in turn, so that what else the machine does reaches both."""
    sessions = [runtime.open_given(model) for _, model in models]
    names = [name for name, _ in models]
    feeds = [feeds_of(name, session) for name, session in zip(names, sessions, strict=True)]
    outputs = list(map(_run, names, sessions, feeds))
    times: list[list[float]] = [[] for _ in sessions]
    end = time.perf_counter() + _SECONDS
    while not times[0] or (len(times[0]) < _RUNS and time.perf_counter() < end):
        for session, given, seconds in zip(sessions, feeds, times, strict=True):
            start = time.perf_counter()
            runtime.run(session, given)
            seconds.append(time.perf_counter() - start)
    for (name, model), seconds, results in zip(models, times, outputs, strict=True):
        yield Side(name, _bytes(model), 1000 * statistics.median(seconds), results)


def _by_position(arrays: list[Array]) -> Callable[[str, Any], list[Array]]:
    """Each model gets the arrays in the order of its inputs."""

    def feeds(name: str, session: Any) -> list[Array]:
        count = len(session.get_inputs())
        problem = f"it has {count} inputs, {len(arrays)} were given"
        return _fitting(name, arrays if count == len(arrays) else problem)

    return feeds


def _fitting(name: str, feeds: list[Array] | str) -> list[Array]:
    """What goes into a model, or an error that says what does not fit."""
    if isinstance(feeds, str):
        raise _unfit(name, feeds)
    return feeds


def _unfit(name: str, why: str) -> ConversionError:
    return ConversionError(
        "E093", f"model '{name}': {why}", help="compare models of the same function"
    )


def _run(name: str, session: Any, feeds: Sequence[Array]) -> dict[str, Array]:
    try:
        return runtime.run(session, feeds)
    except Exception as error:  # ONNX Runtime has a class for each of its codes
        raise _unfit(name, f"it does not run on these inputs: {first_line(error)}") from error


def _bytes(model: Any) -> int:
    source = source_of(model)
    return os.path.getsize(source) if isinstance(source, str) else len(source)


def _distance(want: Array, side: Side, index: int) -> str:
    """The largest difference of a result as text, or in what else it differs."""
    if index >= len(side.outputs):
        return "missing"
    have = list(side.outputs.values())[index]
    if want.shape != have.shape or want.dtype != have.dtype:
        return f"{have.dtype}{list(have.shape)}, not {want.dtype}{list(want.shape)}"
    if want.size == 0:
        return "0"
    wide = np.complex128 if np.iscomplexobj(want) else np.float64
    with np.errstate(all="ignore"):
        difference = np.abs(want.astype(wide) - have.astype(wide))
    same = (want == have) | (np.isnan(want.astype(wide)) & np.isnan(have.astype(wide)))
    largest = np.where(same, 0.0, difference).max()
    return f"{largest:.3g}"


def random_inputs(session: Any, sizes: Mapping[str, int] | None = None) -> list[Array]:
    """Inputs for a model that nothing else is known of: one size for each name."""
    names: dict[str, str] = {}
    specs = []
    for value in session.get_inputs():
        shape = []
        for size in value.shape:  # a name may be any text; one that is missing is one of its own
            text = size if size is not None else f"?{len(names)}"
            size = (sizes or {}).get(str(text), size)
            name = names.setdefault(str(text), f"s{len(names)}")
            shape.append(size if isinstance(size, int) else name)
        specs.append(jax.ShapeDtypeStruct(tuple(shape), numpy_dtype(value.type)))  # type: ignore[no-untyped-call]
    with _jax.double_precision(True):  # 64-bit inputs stay as they are
        return _arrays(agreement.example_arguments(specs, {}, jnp.float32).positional)


def _arrays(tree: Any) -> list[Array]:
    return [_jax.host_array(leaf) for leaf in jax.tree.leaves(tree)]


def numpy_dtype(type_text: str) -> Any:
    """ "tensor(float)" of ONNX Runtime as a numpy dtype."""
    text = _DTYPES.get(type_text, type_text.removeprefix("tensor(").removesuffix(")"))
    try:
        return jnp.dtype(text)
    except TypeError as error:
        raise ConversionError(
            "E093",
            f"an input of type {type_text} cannot be filled with random numbers",
            help="compare models whose inputs are numbers",
        ) from error

# SPDX-License-Identifier: Apache-2.0
"""The cases that the installed jax2onnx describes in the metadata of its plugins and examples.

What a description means is what jax2onnx's own test generator does with it: each is a case with
symbolic and one with known sizes, and each of these one with 32-bit and one with 64-bit floats.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import hashlib
import importlib
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx

import jaxport
from conformance.case import Case, Program, nodes, unpacked
from jaxport import _jax

BATCH = 3  # the size of the symbol B where a case is run with known sizes
SIZE = 2  # of every symbol when a model with symbolic sizes runs
TO_NCHW, TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)
ANY_SIZE = "JAX2ONNX_DYNAMIC_DIM_SENTINEL"
WATCHED = (
    *("jax", "jax.lax", "jax.nn", "jax.numpy", "jax.numpy.linalg", "jax.random", "jax.image"),
    *("flax.linen", "flax.nnx", "equinox", "equinox.nn"),
)


@functools.cache
def cases() -> list[Case]:
    """Every case, sorted by name; what jax2onnx calls onnx_function is jaxport's own."""
    theirs = importlib.import_module("jax2onnx").onnx_function

    def onnx_function(target: Any = None, **options: Any) -> Any:
        if target is None:
            return functools.partial(onnx_function, **options)
        theirs(target, **options)  # its registry, in which one of the examples looks
        return jaxport.onnx_function(target, **options)

    for module in ("jax2onnx", "jax2onnx.user_interface", "jax2onnx.plugins.plugin_system"):
        importlib.import_module(module).onnx_function = onnx_function  # type: ignore[attr-defined]
    return described_cases()


def described_cases() -> list[Case]:
    """Every case, sorted by name."""
    before = _public_functions()
    system = importlib.import_module("jax2onnx.plugins.plugin_system")
    system.import_all_plugins()
    _restore(before)
    _finish_primitives(system)
    plugins = [p.metadata for p in system.PLUGIN_REGISTRY.values() if hasattr(p, "metadata")]
    by_name: dict[str, Case] = {}
    for description in [*plugins, *system.EXAMPLE_REGISTRY.values()]:
        for entry in description.get("testcases", ()):
            if entry.get("callable") is not None:
                for variant in _variants(entry, description):
                    by_name[variant.name] = variant.case()  # some primitives share a description
    return [by_name[name] for name in sorted(by_name)]


def _finish_primitives(system: Any) -> None:
    """Gives the primitives of jax2onnx, which some cases bind, the shapes of their results.

    jax2onnx does so when it converts. JAX's own primitives have theirs.
    """
    for plugin in system.PLUGIN_REGISTRY.values():
        primitive = getattr(plugin, "_PRIM", None)
        if primitive is not None and "abstract_eval" not in vars(primitive):
            plugin.ensure_abstract_eval_bound()


def _restore(functions: Mapping[tuple[str, str], Any]) -> None:
    """Undoes what the import of jax2onnx's plugins changes: it replaces jax.numpy.cumsum."""
    for (module, name), value in _public_functions().items():
        if (module, name) in functions and functions[module, name] is not value:
            assert module in WATCHED, f"{module}.{name} was changed"
            setattr(importlib.import_module(module), name, functions[module, name])


def _public_functions() -> dict[tuple[str, str], Any]:
    found = {}
    for name in WATCHED:
        module = importlib.import_module(name)
        for attribute in dir(module):
            value = getattr(module, attribute, None)
            if callable(value):
                found[name, attribute] = value
                if isinstance(value, type) and "__call__" in vars(value):
                    found[f"{name}.{attribute}", "__call__"] = vars(value)["__call__"]
    return found


@dataclasses.dataclass(frozen=True)
class _Variant:
    """One description with one choice of sizes and of precision."""

    entry: Mapping[str, Any]
    context: str
    component: str
    testcase: str
    double: bool
    batch: int | None  # the size of B, where it is known
    is_double_variant: bool = False  # beside one with 32-bit types

    @property
    def name(self) -> str:
        return f"{self.context}/{self.component}/{self.testcase}"

    def case(self) -> Case:
        dtype = "float64" if self.double else "float32"
        program = functools.partial(_program, self)
        return Case(
            self.name, self.context, dtype, program, self.is_double_variant, "refused by jax"
        )

    def shapes(self, field: str) -> list[Any] | None:
        """A list of shapes from the description."""
        shapes = self.entry.get(field)
        if shapes is None or self.batch is None:
            return shapes if shapes is None else list(shapes)
        return [
            tuple(self.batch if size == "B" else size for size in shape)
            if isinstance(shape, tuple | list)
            else shape
            for shape in shapes
        ]

    def option(self, name: str, default: Any) -> Any:
        """A field that may have another value for each precision."""
        suffix = "_f64" if self.double else "_f32"
        return self.entry.get(name + suffix, self.entry.get(name, default))

    @property
    def has_symbols(self) -> bool:
        """Whether a size is a symbol, and no value is given."""
        shapes = () if self.entry.get("input_values") else self.shapes("input_shapes") or ()
        as_tuples = (s for s in shapes if isinstance(s, tuple | list))
        return any(isinstance(size, str) for shape in as_tuples for size in shape)

    def dtype(self, given: Any) -> Any:
        """The dtype of an input: floats have the precision of the variant."""
        return np.float64 if self.double and _is_float(given) else given


def _variants(entry: Mapping[str, Any], description: Mapping[str, Any]) -> Iterator[_Variant]:
    def variant(testcase: str, double: bool, batch: int | None) -> _Variant:
        context = description.get("context", "default")
        component = description.get("component", "default")
        return _Variant(entry, context, component, testcase, double, batch)

    shapes = entry.get("input_shapes") or ()
    if any(isinstance(shape, tuple | list) and "B" in shape for shape in shapes):
        sizes: list[tuple[str, int | None]] = [(entry["testcase"] + "_dynamic", None)]
        if not entry.get("run_only_dynamic"):
            sizes.append((entry["testcase"], BATCH))
    else:
        sizes = [(entry["testcase"], None)]
    for testcase, batch in sizes:
        is_double = entry.get("run_only_f64_variant") or entry.get("enable_double_precision")
        if is_double or testcase.endswith("_f64"):
            yield variant(testcase, True, batch)
            continue
        yield variant(testcase, False, batch)
        if not (entry.get("disable_float64_test") or entry.get("run_only_f32_variant")):
            wide = variant(testcase + "_f64", True, batch)
            yield dataclasses.replace(wide, is_double_variant=True)


def _program(
    variant: _Variant,
    fn: Callable[..., Any] | None = None,
    values: Sequence[np.ndarray] | None = None,
) -> Program:
    """The program of a case; one at other values is about the same function."""
    entry = variant.entry
    fn = fn or _function(variant)
    params = dict(entry.get("input_params") or {})
    arguments = list(_arguments(variant)) if values is None else list(values)
    as_nchw = entry.get("inputs_as_nchw") or ()

    def expected() -> list[np.ndarray] | None:
        if values is None and entry.get("skip_numeric_validation"):
            return None
        with _jax.double_precision(variant.double), jax.default_matmul_precision("float32"):
            named = {name: _as_argument(value) for name, value in params.items()}
            results = fn(*map(jnp.asarray, arguments), **named)
            return [np.asarray(jnp.asarray(leaf)) for leaf in jax.tree.leaves(results)]

    feeds = [a.transpose(TO_NCHW) if i in as_nchw else a for i, a in enumerate(arguments)]
    return Program(
        fn,
        _specifications(variant),
        list(map(_jax.host_array, feeds)),
        expected,
        functools.partial(_difference, variant),
        _options(variant),
        {name: np.asarray(value) for name, value in params.items()},
        functools.partial(_objection, variant),
        functools.partial(facts, variant.entry),
        arguments,
        functools.partial(_program, variant, fn),
        (lambda size: list(_arguments(variant, size))) if variant.has_symbols else None,
    )


def _function(variant: _Variant) -> Callable[..., Any]:
    """The function; where the description has a maker of functions, the one for the precision."""
    given = variant.entry["callable"]
    with _jax.double_precision(variant.double):
        if getattr(given, "__jax2onnx_factory__", False):
            given = given.with_dtype(jnp.float64 if variant.double else jnp.float32)
        return given.instantiate() if hasattr(given, "instantiate") else given


def _options(variant: _Variant) -> dict[str, Any]:
    entry = variant.entry
    given = {
        name: entry[name]
        for name in (
            *("input_params", "inputs_as_nchw", "outputs_as_nchw", "input_names", "output_names"),
            "normalization_mode",
        )
        if entry.get(name)
    }
    if "opset_version" in entry:
        given["opset"] = entry["opset_version"]
    return {
        "model_name": variant.testcase,
        "enable_double_precision": variant.double,
        **given,
    }


def _specifications(variant: _Variant) -> list[Any]:
    """The inputs that to_onnx is told about: shapes, with dtypes where the description has some."""
    shapes, dtypes = variant.shapes("input_shapes"), variant.entry.get("input_dtypes")
    if shapes is None:
        arrays = map(np.array, variant.entry.get("input_values") or ())
        return [jax.ShapeDtypeStruct(a.shape, variant.dtype(a.dtype)) for a in arrays]
    as_tuples = [tuple(s) if isinstance(s, tuple | list) else (s,) for s in shapes]
    if not dtypes:
        return as_tuples
    return [
        jax.ShapeDtypeStruct(shape, variant.dtype(dtype))
        for shape, dtype in zip(as_tuples, dtypes, strict=True)
    ]


def _arguments(variant: _Variant, symbol: int = SIZE) -> Iterator[np.ndarray]:
    """Values of the inputs: those of the description, or random ones that depend on its name."""
    values = variant.entry.get("input_values")
    if values:
        for value in map(np.asarray, values):
            narrow = {"float64": np.float32, "int64": np.int32}.get(value.dtype.name, value.dtype)
            yield value.astype(variant.dtype(value.dtype) if variant.double else narrow)
        return
    shapes = variant.shapes("input_shapes") or []
    key = [variant.context, variant.component, variant.testcase, str(int(variant.double))]
    seed = int(hashlib.sha256("|".join(key).encode()).hexdigest()[:16], 16)
    random = np.random.default_rng(seed)
    dtypes = variant.entry.get("input_dtypes") or [np.float32] * len(shapes)
    for shape, dtype in zip(shapes, dtypes, strict=True):
        sizes = tuple(symbol if isinstance(size, str) else size for size in shape)
        yield _random_array(random, sizes, dtype).astype(variant.dtype(dtype))


def _random_array(random: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    if _is_float(dtype):
        return np.asarray(random.standard_normal(shape) * 0.25)
    if np.issubdtype(dtype, np.integer):
        return np.asarray(random.integers(0, 5, shape))
    if np.issubdtype(dtype, np.bool_):
        return np.asarray(random.random(shape) > 0.5)
    return np.asarray(random.standard_normal(shape))


def _is_float(dtype: Any) -> bool:
    return bool(np.issubdtype(dtype, np.floating))  # which bfloat16 is not


def _as_argument(value: Any) -> Any:
    return jnp.asarray(value) if isinstance(value, np.ndarray | list | tuple) else value


def _difference(
    variant: _Variant, wanted: list[np.ndarray], outputs: list[np.ndarray]
) -> str | None:
    as_nchw = variant.entry.get("outputs_as_nchw") or ()
    tolerance = 1e-7 if variant.double else 1e-5
    rtol, atol = variant.option("rtol", tolerance), variant.option("atol", tolerance)
    for i, (want, have) in enumerate(zip(wanted, outputs, strict=True)):
        have = unpacked(want, have.transpose(TO_NHWC) if i in as_nchw else have)
        if have.dtype != want.dtype:
            return f"output {i}: dtype {have.dtype}, JAX has {want.dtype}"
        if have.shape != want.shape:
            return f"output {i}: shape {have.shape}, JAX has {want.shape}"
        is_exact = not jnp.issubdtype(want.dtype, jnp.inexact)
        lhs, rhs = (a if is_exact else _wide(a) for a in (want, have))
        if is_exact and not np.array_equal(lhs, rhs):
            return f"output {i}: {have.ravel()[:4]}, JAX has {want.ravel()[:4]}"
        if not is_exact and not np.allclose(rhs, lhs, rtol=rtol, atol=atol, equal_nan=True):
            error = float(np.nanmax(np.abs(lhs - rhs)))
            return f"output {i}: error {error:.3g}, rtol {rtol:g} and atol {atol:g} allowed"
    return None


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)


def _objection(variant: _Variant, model: onnx.ModelProto) -> str | None:
    """What the description says of the model and does not hold."""
    functions = variant.entry.get("expected_number_of_function_instances")
    if functions is not None:
        have = len(model.functions)
        if have != functions:
            return f"{have} functions, the case states {functions}"
    shapes = variant.shapes("x64_expected_output_shapes") if variant.double else None
    shapes = variant.shapes("expected_output_shapes") if shapes is None else shapes
    if not shapes:
        return None
    given = [_shape(value) for value in model.graph.output]
    if len(given) != len(shapes) or not all(map(_fits, given, shapes)):
        return f"outputs {given}, the case states {shapes}"
    return None


def _shape(value: onnx.ValueInfoProto) -> tuple[str | int | None, ...]:
    dims = value.type.tensor_type.shape.dim
    return tuple(d.dim_param or (d.dim_value if d.HasField("dim_value") else None) for d in dims)


def _fits(given: Sequence[str | int | None], stated: Sequence[str | int | None]) -> bool:
    return len(given) == len(stated) and all(
        have is None or have == want or want == ANY_SIZE if isinstance(want, str) else have == want
        for have, want in zip(given, stated, strict=True)
    )


def facts(entry: Mapping[str, Any], model: onnx.ModelProto) -> dict[str, Any]:
    """Nodes by op, and whether the graph is the one that the description wants."""
    ops = collections.Counter(node.op_type for node in nodes(model))
    del ops["Constant"]  # which jax2onnx's functions have in the place of initializers
    wanted = entry.get("post_check_onnx_graph")
    return {"nodes": ops.total(), "ops": dict(sorted(ops.items())), "graph": _holds(wanted, model)}


def _holds(wanted: Callable[[Any], Any] | None, model: onnx.ModelProto) -> bool | None:
    if wanted is None:
        return None
    with contextlib.redirect_stdout(io.StringIO()):  # where it says what does not hold
        try:
            return bool(wanted(model))
        except Exception:
            return False

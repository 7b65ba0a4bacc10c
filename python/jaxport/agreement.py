# SPDX-License-Identifier: Apache-2.0
"""jaxport.allclose: does a model give JAX's numbers?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import _jax, runtime
from .call import TO_NCHW
from .frameworks import Program, program_of
from .inputs import Arguments, Inputs, is_array, is_input, is_number, read_inputs, spec_leaves
from .names import named_leaves
from .record import bound
from .weights import WeightPaths

_SEED = 0
# Sizes that symbols get when inputs are shapes: small, distinct, none of them 1.
SYMBOL_SIZES = (2, 3, 5, 7, 11, 13)


def allclose(
    fn: Callable[..., Any],
    onnx_model_path: Any,
    inputs: Inputs,
    input_params: Mapping[str, Any] | None = None,
    rtol: float = 1e-3,
    atol: float = 1e-5,
    *,
    enable_double_precision: bool = False,
    inputs_as_nchw: Sequence[int] | None = None,
    outputs_as_nchw: Sequence[int] | None = None,
) -> tuple[bool, str]:
    """Compares fn in JAX with its model in ONNX Runtime: values, shapes, dtypes and NaNs.

    Args:
        fn: what was converted, in any form that to_onnx takes.
        onnx_model_path: a path, or the model itself: bytes, a jaxport.Model or an onnx.ModelProto.
        inputs: arrays, or shapes as to_onnx takes them, filled from a fixed seed; a mapping gives
            them by name.
        input_params: keyword arguments of fn; those that are inputs of the model are fed to it.
        rtol, atol: |jax - onnx| <= atol + rtol * |jax| must hold everywhere.
        enable_double_precision: run JAX with 64-bit types, as in to_onnx.
        inputs_as_nchw, outputs_as_nchw: as in to_onnx; `inputs` are those of fn.

    Returns:
        Whether everything fits, and a message that names the output, the index and the two values
        that differ most.
    """
    with _jax.double_precision(enable_double_precision):
        default_dtype = jnp.float64 if enable_double_precision else jnp.float32
        arguments = example_arguments(inputs, dict(input_params or {}), default_dtype)
        program = program_of(fn)
        arguments = bound(program.function, arguments)
        session = runtime.open_session(onnx_model_path)
        expected = _results(program, arguments, [value.name for value in session.get_outputs()])
        for i in outputs_as_nchw or ():
            expected[i] = expected[i].transpose(TO_NCHW)
        feeds = model_feeds(session, arguments, inputs_as_nchw or (), held_by(program))
    if isinstance(feeds, str):
        return False, feeds
    return compare(expected, runtime.run(session, feeds), rtol, atol)


def _results(
    program: Program, arguments: Arguments, outputs: Sequence[str]
) -> list[np.ndarray[Any, Any]]:
    """What JAX gives for the outputs of a model: the result, then the state that was written."""
    exports_state = any(name.endswith("_out") for name in outputs)
    state: dict[str, Any] | None = {} if exports_state else None
    result, changes = program.call(state, *arguments.positional, **arguments.keywords)
    leaves = jax.tree.leaves(result)
    written = {f"{name}_out": value for name, value in changes.items()}
    leaves += [written[name] for name in outputs[len(leaves) :] if name in written]
    return [_host(leaf) for leaf in leaves]


def held_by(program: Program) -> Callable[[str], Any]:
    """The weight or the state of a program that an input of a model stands for, by its name."""
    return WeightPaths(*program.holders, named=program.state).array


def _host(value: Any) -> np.ndarray[Any, Any]:
    """A number or an array in the dtype that it has in JAX, as a model takes and gives it."""
    return _jax.host_array(value if isinstance(value, jax.Array) else jnp.asarray(value))


def example_arguments(
    inputs: Inputs,
    params: dict[str, Any],
    default_dtype: Any,
    symbol_sizes: Mapping[str, int] | None = None,
) -> Arguments:
    """Concrete arguments: arrays as they are, shapes filled with random numbers.

    Symbols that `symbol_sizes` does not have get small distinct sizes.
    """
    random = np.random.default_rng(_SEED)
    sizes = dict(symbol_sizes or {})

    def fill(spec: Any, given: Any) -> Any:
        if not is_input(spec):
            return given
        return jnp.asarray(given if is_array(given) else _sample(random, spec, sizes))

    def filled(entry: Any, spec: Any) -> Any:
        given = jax.tree.unflatten(jax.tree.structure(spec), spec_leaves(entry))
        return jax.tree.map(fill, spec, given)

    specs = read_inputs(inputs, default_dtype)
    entries = list(inputs.values() if isinstance(inputs, Mapping) else inputs)
    named = zip(entries, specs.named.items(), strict=False)
    return Arguments(
        tuple(map(filled, entries, specs.positional)),
        {name: filled(entry, spec) for entry, (name, spec) in named},
        params,
        specs.scope,
    )


def model_feeds(
    session: Any,
    arguments: Arguments,
    inputs_as_nchw: Sequence[int],
    held: Callable[[str], Any] = lambda name: None,
) -> list[np.ndarray[Any, Any]] | str:
    """What the inputs of a model get, in their order, or what does not fit.

    Params go to the inputs of their names, if there are such, everything else by position; what
    is left is `held` by the function.
    """
    given = jax.tree.leaves((arguments.positional, tuple(arguments.named.values())))
    feeds = [_host(leaf) for leaf in given if is_array(leaf)]
    for i in inputs_as_nchw:
        feeds[i] = feeds[i].transpose(TO_NCHW)
    values = {
        name: _host(leaf)
        for param, value in arguments.params.items()
        for name, leaf in named_leaves(param, value)
        if is_number(leaf)
    }
    names = [value.name for value in session.get_inputs()]
    free = [name for name in names if name not in values]
    arrays = {name: held(name) for name in free[len(feeds) :]}
    if len(free) < len(feeds) or any(array is None for array in arrays.values()):
        return f"the model has {len(free)} inputs, {len(feeds)} were given"
    values |= dict(zip(free, feeds, strict=False))
    values |= {name: _host(array) for name, array in arrays.items()}
    return [values[name] for name in names]


def _sample(random: np.random.Generator, spec: Any, sizes: dict[str, int]) -> Any:
    shape = tuple(_jax.dim_value(size, lambda name: _size_of(name, sizes)) for size in spec.shape)
    if _jax.is_key(spec.dtype):
        impl = _jax.key_impl(spec.dtype)
        words = random.integers(0, 2**32, (*shape, *impl.key_shape), dtype=np.uint32)
        return jax.random.wrap_key_data(jnp.asarray(words), impl=impl)
    dtype = np.dtype(spec.dtype)
    if dtype == np.bool_:
        return random.integers(0, 2, shape).astype(dtype)
    if jnp.issubdtype(dtype, jnp.integer):
        return random.integers(0, 8, shape).astype(dtype)
    if jnp.issubdtype(dtype, jnp.complexfloating):
        return (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(dtype)
    return random.standard_normal(shape).astype(dtype)


def _size_of(name: str, sizes: dict[str, int]) -> int:
    return sizes.setdefault(name, SYMBOL_SIZES[len(sizes) % len(SYMBOL_SIZES)])


def compare(
    expected: Sequence[np.ndarray[Any, Any]],
    actual: Mapping[str, np.ndarray[Any, Any]],
    rtol: float,
    atol: float,
) -> tuple[bool, str]:
    """Compares results in order; the message is about the worst difference."""
    if len(expected) != len(actual):
        return False, f"JAX gives {len(expected)} results, the model {len(actual)}"
    worst = (-1.0, "the results match: there is nothing to compare")
    for want, (name, have) in zip(expected, actual.items(), strict=True):
        problem = _mismatch_of_kind(name, want, have)
        if problem:
            return False, problem
        worst = max(worst, _worst_difference(name, want, have, rtol, atol))
    excess, message = worst
    return excess <= 1.0, message


def _mismatch_of_kind(name: str, want: np.ndarray[Any, Any], have: np.ndarray[Any, Any]) -> str:
    for what in ("shape", "dtype"):
        if getattr(want, what) != getattr(have, what):
            values = f"{getattr(want, what)} in JAX, {getattr(have, what)} in the model"
            return f"output '{name}' has another {what}: {values}"
    return ""


def _worst_difference(
    name: str, want: np.ndarray[Any, Any], have: np.ndarray[Any, Any], rtol: float, atol: float
) -> tuple[float, str]:
    """(difference as a multiple of what is allowed, message) of the worst element."""
    if want.size == 0:
        return 0.0, f"output '{name}' matches: it is empty"
    wide = np.complex128 if np.iscomplexobj(want) else np.float64
    lhs, rhs = want.astype(wide), have.astype(wide)
    with np.errstate(all="ignore"):
        difference = np.abs(lhs - rhs)
        allowed = atol + rtol * np.abs(lhs)
        excess = difference / allowed
    equal = (want == have) | (np.isnan(lhs) & np.isnan(rhs))
    excess = np.where(equal, 0.0, np.where(np.isfinite(excess), excess, np.inf))
    index = np.unravel_index(int(np.argmax(excess)), want.shape)
    place = ", ".join(str(int(i)) for i in index)
    values = (
        f"{want[index]} in JAX, {have[index]} in the model (difference {difference[index]:.3g})"
    )
    verdict = "matches" if excess[index] <= 1.0 else "differs"
    return float(excess[index]), f"output '{name}' {verdict}: at ({place}) {values}"

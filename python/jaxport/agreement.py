# SPDX-License-Identifier: Apache-2.0
"""jaxport.allclose: does a model give JAX's numbers?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import _jax, runtime
from .errors import ConversionError
from .inputs import is_array, is_spec, read_inputs

_SEED = 0
# Sizes that symbols get when inputs are shapes: small, distinct, none of them 1.
_SYMBOL_SIZES = (2, 3, 5, 7, 11, 13)


def allclose(
    fn: Callable[..., Any],
    onnx_model: Any,
    inputs: Sequence[Any],
    input_params: Mapping[str, Any] | None = None,
    rtol: float = 1e-3,
    atol: float = 1e-5,
    *,
    enable_double_precision: bool = False,
) -> tuple[bool, str]:
    """Compares fn in JAX with its model in ONNX Runtime: values, shapes, dtypes and NaNs.

    Args:
        fn: the function that was converted.
        onnx_model: a path, bytes, a jaxport.Model or an onnx.ModelProto.
        inputs: arrays, or shapes as to_onnx takes them, filled from a fixed seed.
        rtol, atol: |jax - onnx| <= atol + rtol * |jax| must hold everywhere.
        enable_double_precision: run JAX with 64-bit types, as in to_onnx.

    Returns:
        Whether everything fits, and a message that names the output, the index and the two values
        that differ most.
    """
    if input_params:
        raise ConversionError(
            "E073",
            "allclose does not support the argument input_params yet",
            help="leave input_params out",
        )
    with _jax.double_precision(enable_double_precision):
        arguments = example_arguments(
            inputs, jnp.float64 if enable_double_precision else jnp.float32
        )
        expected = [_jax.host_array(leaf) for leaf in jax.tree.leaves(fn(*arguments))]
        feeds = [_jax.host_array(leaf) for leaf in jax.tree.leaves(arguments)]
    session = runtime.open_session(onnx_model)
    if len(session.get_inputs()) != len(feeds):
        return False, f"the model has {len(session.get_inputs())} inputs, {len(feeds)} were given"
    return compare(expected, runtime.run(session, feeds), rtol, atol)


def example_arguments(inputs: Sequence[Any], default_dtype: Any) -> tuple[Any, ...]:
    """Concrete arguments: arrays as they are, shapes filled with random numbers."""
    specs = read_inputs(inputs, default_dtype).values
    random = np.random.default_rng(_SEED)
    sizes: dict[str, int] = {}

    def fill(spec: jax.ShapeDtypeStruct, given: Any) -> Any:
        return jnp.asarray(given if is_array(given) else _sample(random, spec, sizes))

    return tuple(
        jax.tree.map(fill, spec, jax.tree.unflatten(jax.tree.structure(spec), _leaves(entry)))
        for spec, entry in zip(specs, inputs, strict=True)
    )


def _leaves(entry: Any) -> list[Any]:
    return jax.tree.leaves(entry, is_leaf=is_spec)


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
    return sizes.setdefault(name, _SYMBOL_SIZES[len(sizes) % len(_SYMBOL_SIZES)])


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
        excess = np.where(difference == 0, 0.0, difference / allowed)
    equal = (want == have) | (np.isnan(lhs) & np.isnan(rhs))
    excess = np.where(equal, 0.0, np.where(np.isfinite(excess), excess, np.inf))
    index = np.unravel_index(int(np.argmax(excess)), want.shape)
    place = ", ".join(str(int(i)) for i in index)
    values = (
        f"{want[index]} in JAX, {have[index]} in the model (difference {difference[index]:.3g})"
    )
    verdict = "matches" if excess[index] <= 1.0 else "differs"
    return float(excess[index]), f"output '{name}' {verdict}: at ({place}) {values}"

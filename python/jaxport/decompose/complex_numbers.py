# SPDX-License-Identifier: Apache-2.0
"""Complex arithmetic in terms of real and imaginary parts.

A complex array is a real one with a last axis of two parts, in the model as inside the compiler.
PACKED says what that means for the three primitives that cross between the two worlds; everything
else is written with these three. Literals come as numpy scalars, so that a part that is known to be
zero drops out.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..errors import ConversionError
from .reduction import over_windows
from .scatter import combined

Array = Any

# Over arrays whose last axis is (real, imaginary).
PACKED: dict[str, Callable[..., Array]] = {
    "complex": lambda x, y: jnp.stack(jnp.broadcast_arrays(x, y), -1),
    "imag": lambda z: z[..., 1],
    "real": lambda z: z[..., 0],
}


def is_complex(dtype: Any) -> bool:
    return bool(jnp.issubdtype(dtype, jnp.complexfloating))


def decomposition(primitive: Any) -> Callable[..., Any]:
    """How a primitive works on complex operands. Raises ConversionError E012 when unknown."""
    name = primitive.name
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    if name in _BILINEAR:
        return lambda z, w, **params: _bilinear(primitive, z, w, params)
    if name in _MOVES:
        return lambda *operands, **params: _move(primitive, operands, params)
    raise ConversionError(
        "E012",
        f"primitive '{name}' has no form for complex numbers",
        help=f'say how to compute it with jaxport.register_decomposition("{name}", fn)',
    )


# --- parts


def _parts(z: Array) -> tuple[Array, Array]:
    if not is_complex(z.dtype):
        return z, np.zeros((), z.dtype)
    if isinstance(z, np.generic | np.ndarray):
        return z.real, z.imag
    return lax.real(z), lax.imag(z)


def _join(x: Array, y: Array) -> jax.Array:
    x, y = jnp.broadcast_arrays(x, y)
    return lax.complex(x, y)


def _is_zero(x: Array) -> bool:
    return isinstance(x, np.generic | np.ndarray) and not np.any(x)


def _times(x: Array, y: Array) -> Array:
    return np.zeros((), x.dtype) if _is_zero(x) or _is_zero(y) else x * y


def _plus(x: Array, y: Array) -> Array:
    if _is_zero(x) or _is_zero(y):
        return y if _is_zero(x) else x
    return x + y


def _minus(x: Array, y: Array) -> Array:
    return x if _is_zero(y) else x - y


# --- what treats the parts alike

_MOVES = frozenset(
    {
        *("add", "add_any", "sub", "neg", "reduce_sum", "cumsum", "reduce_window_sum"),
        *("broadcast_in_dim", "concatenate", "copy", "copy_p", "device_put", "dynamic_slice"),
        *("dynamic_update_slice", "expand_dims", "gather", "optimization_barrier"),
        *("reshape", "rev", "scatter", "scatter-add", "scatter-sub", "select_n", "slice"),
        *("split", "squeeze", "stack", "stop_gradient", "tile", "transpose", "unstack"),
    }
)


def _move(primitive: Any, operands: tuple[Array, ...], params: dict[str, Any]) -> Any:
    """The primitive on the real parts and on the imaginary ones; indices and choices are shared."""

    def of_part(index: int) -> Any:
        parts = [_parts(x)[index] if is_complex(x.dtype) else x for x in operands]
        own = {**params, "fill_value": _fill(params, index)} if "fill_value" in params else params
        return primitive.bind(*map(jnp.asarray, parts), **own)

    real, imaginary = of_part(0), of_part(1)
    if not primitive.multiple_results:
        return lax.complex(real, imaginary)
    # A result without a complex operand (of a barrier) is the same in both.
    joined = [x.dtype for x in operands if is_complex(x.dtype)] == [x.dtype for x in operands]
    if joined:
        return [lax.complex(x, y) for x, y in zip(real, imaginary, strict=True)]
    return [
        lax.complex(x, y) if is_complex(operand.dtype) else x
        for operand, x, y in zip(operands, real, imaginary, strict=True)
    ]


def _fill(params: dict[str, Any], index: int) -> Any:
    """What a gather gives beyond the end; None is NaN, of complex numbers without an imaginary."""
    value = params["fill_value"]
    if value is None:
        return None if index == 0 else 0
    return (np.real(value), np.imag(value))[index]


def _pad(z: Array, value: Array, *, padding_config: Any) -> Any:
    """jnp.fft pads to the length that it was asked for, mostly by nothing."""
    if all(size == 0 for sizes in padding_config for size in sizes):
        return z
    return _move(lax.pad_p, (z, value), {"padding_config": padding_config})


# --- products

_BILINEAR = frozenset({"dot_general", "conv_general_dilated"})


def _bilinear(primitive: Any, z: Array, w: Array, params: dict[str, Any]) -> jax.Array:
    result = jax.eval_shape(lambda z, w: primitive.bind(z, w, **params), z, w)
    part = np.zeros((), result.dtype).real.dtype
    params = {**params, "preferred_element_type": part}

    def product(x: Array, y: Array) -> jax.Array:
        # The product of a double and a pair of singles is formed in singles, as in JAX.
        x, y = (lax.convert_element_type(operand, part) for operand in (x, y))
        return primitive.bind(x, y, **params)

    (a, b), (c, d) = _parts(z), _parts(w)
    if not is_complex(z.dtype):
        return lax.complex(product(a, c), product(a, d))
    if not is_complex(w.dtype):
        return lax.complex(product(a, c), product(b, c))
    if primitive.name == "conv_general_dilated":
        # Three products instead of four (C. F. Gauss), as JAX does: the same numbers cancel.
        shared, right, left = product(a + b, c), product(a, d - c), product(b, c + d)
        return lax.complex(shared - left, shared + right)
    return lax.complex(product(a, c) - product(b, d), product(a, d) + product(b, c))


def _mul(z: Array, w: Array, **_: Any) -> jax.Array:
    (a, b), (c, d) = _parts(z), _parts(w)
    return _join(_minus(_times(a, c), _times(b, d)), _plus(_times(a, d), _times(b, c)))


def _div(z: Array, w: Array) -> jax.Array:
    """Divides by the larger part of w first, so that |w|^2 neither overflows nor vanishes."""
    (a, b), (c, d) = _parts(z), _parts(w)
    scale = jnp.maximum(jnp.abs(c), jnp.abs(d))
    scale = jnp.where((scale == 0) | jnp.isinf(scale), 1, scale)
    c, d = c / scale, d / scale
    length = (c * c + d * d) * scale
    return _join((a * c + b * d) / length, (b * c - a * d) / length)


def _integer_pow(z: Array, *, y: int) -> jax.Array:
    result, square, count = jnp.ones_like(z), z, abs(y)
    while count:
        result = result * square if count & 1 else result
        count //= 2
        square = square * square if count else square
    return 1 / result if y < 0 else result


def _pow(z: Array, w: Array) -> jax.Array:
    power = lax.exp(lax.mul(*jnp.broadcast_arrays(_widened(w, z.dtype), lax.log(z))))
    nothing = jnp.zeros_like(power)
    return jnp.where(z == 0, jnp.where(w == 0, nothing + 1, nothing), power)


def _widened(x: Array, dtype: Any) -> jax.Array:
    return lax.convert_element_type(x, dtype)


def _halving(z: Array, axis: int, function: Callable[[Array, Array], Array]) -> Array:
    """Combines the elements along an axis that is not empty, neighbours first."""
    while z.shape[axis] > 1:
        count = z.shape[axis]
        even = lax.slice_in_dim(z, 0, count - count % 2, 2, axis)
        odd = lax.slice_in_dim(z, 1, count, 2, axis)
        rest = lax.slice_in_dim(z, count - count % 2, count, 1, axis)
        z = lax.concatenate([function(even, odd), rest], axis)
    return lax.squeeze(z, [axis])


# --- functions


def _length(z: Array) -> jax.Array:
    """|z| without overflow of the squares."""
    x, y = map(jnp.abs, _parts(z))
    large, small = jnp.maximum(x, y), jnp.minimum(x, y)
    ratio = small / jnp.where((large == 0) | jnp.isinf(large), 1, large)
    return jnp.where(jnp.isinf(large), large, large * jnp.sqrt(1 + ratio * ratio))


def _sqrt(z: Array, **_: Any) -> jax.Array:
    return _root(z, _signed_as)


def _rsqrt(z: Array, **_: Any) -> jax.Array:
    """By way of the logarithm in JAX, which asks for the sign of a zero."""
    return 1 / _root(z, lambda y, size: jnp.copysign(size, y))


def _root(z: Array, signed_as: Callable[[jax.Array, jax.Array], jax.Array]) -> jax.Array:
    x, y = _parts(z)
    # The root of the larger of |z| + x and |z| - x; the other part follows by division.
    root = jnp.sqrt((_length(z) + jnp.abs(x)) / 2)
    other = y / jnp.where(root == 0, 1, 2 * root)
    is_right = x >= 0
    real = jnp.where(is_right, root, jnp.abs(other))
    return _join(real, jnp.where(is_right, other, signed_as(y, root)))


def _signed_as(y: jax.Array, size: jax.Array) -> jax.Array:
    """On a branch cut JAX does not ask for the sign of a zero: -0 is on the side of 0."""
    return jnp.where(y < 0, -size, size)


def _exp(z: Array, **_: Any) -> jax.Array:
    x, y = _parts(z)
    length = jnp.exp(x)
    return _join(_times(length, jnp.cos(y)), _times(length, jnp.sin(y)))


def _expm1(z: Array, **_: Any) -> jax.Array:
    x, y = _parts(z)
    half = jnp.sin(y / 2)
    return _join(jnp.expm1(x) * jnp.cos(y) - 2 * half * half, jnp.exp(x) * jnp.sin(y))


def _log(z: Array, **_: Any) -> jax.Array:
    x, y = _parts(z)
    large, small = jnp.maximum(jnp.abs(x), jnp.abs(y)), jnp.minimum(jnp.abs(x), jnp.abs(y))
    # Near the unit circle the logarithm of |z| is that of a number near 1.
    near = jnp.log1p((large - 1) * (large + 1) + small * small) / 2
    is_near = (large > 0.5) & (large < 2)
    return _join(jnp.where(is_near, near, jnp.log(_length(z))), jnp.arctan2(y, x))


def _log1p(z: Array, **_: Any) -> jax.Array:
    x, y = _parts(z)
    near = jnp.log1p(x * (2 + x) + y * y) / 2
    is_near = jnp.maximum(jnp.abs(x), jnp.abs(y)) < 1
    return _join(jnp.where(is_near, near, jnp.log(_length(z + 1))), jnp.arctan2(y, 1 + x))


def _sin(z: Array, **_: Any) -> jax.Array:
    x, y = _parts(z)
    return _join(jnp.sin(x) * jnp.cosh(y), jnp.cos(x) * jnp.sinh(y))


def _cos(z: Array, **_: Any) -> jax.Array:
    x, y = _parts(z)
    return _join(jnp.cos(x) * jnp.cosh(y), -jnp.sin(x) * jnp.sinh(y))


def _sinh(z: Array) -> jax.Array:
    x, y = _parts(z)
    return _join(jnp.sinh(x) * jnp.cos(y), jnp.cosh(x) * jnp.sin(y))


def _cosh(z: Array) -> jax.Array:
    x, y = _parts(z)
    return _join(jnp.cosh(x) * jnp.cos(y), jnp.sinh(x) * jnp.sin(y))


def _tanh(z: Array, **_: Any) -> jax.Array:
    x, y = _parts(z)
    t, u = jnp.tanh(x), jnp.tan(y)
    # 1 - tanh^2, which vanishes for large x, by the exponential.
    fade = 1 / jnp.square(jnp.cosh(x))
    below = 1 + jnp.square(t * u)
    return _join(t * (1 + u * u) / below, u * fade / below)


def _turned(z: Array, function: Callable[[Array], jax.Array]) -> jax.Array:
    """-i f(i z): how the circular functions follow from the hyperbolic ones."""
    x, y = _parts(z)
    real, imaginary = _parts(function(_join(-y, x)))
    return _join(imaginary, -real)


def _asin(z: Array) -> jax.Array:
    below, above = _sqrt(1 - z), _sqrt(1 + z)
    real = jnp.arctan2(lax.real(z), lax.real(below * above))
    size = jnp.arcsinh(jnp.abs(lax.imag(jnp.conj(below) * above)))
    return _join(real, _signed_as(lax.imag(z), size))


def _acos(z: Array) -> jax.Array:
    below, above = _sqrt(1 - z), _sqrt(1 + z)
    real = 2 * jnp.arctan2(lax.real(below), lax.real(above))
    size = jnp.arcsinh(jnp.abs(lax.imag(jnp.conj(above) * below)))
    return _join(real, -_signed_as(lax.imag(z), size))


def _acosh(z: Array) -> jax.Array:
    below, above = _sqrt(z - 1), _sqrt(z + 1)
    real = jnp.arcsinh(lax.real(jnp.conj(below) * above))
    return _join(real, 2 * jnp.arctan2(lax.imag(below), lax.real(above)))


def _atanh(z: Array) -> jax.Array:
    x, y = _parts(z)
    size = jnp.abs(x)
    real = jnp.copysign(jnp.log1p(4 * size / (jnp.square(1 - size) + y * y)) / 4, x)
    return _join(real, jnp.arctan2(2 * y, (1 - x) * (1 + x) - y * y) / 2)


def _sign(z: Array) -> jax.Array:
    x, y = _parts(z)
    length = _length(z)
    divisor = jnp.where(length == 0, 1, length)
    return _join(x / divisor, y / divisor)


def _convert(z: Array, *, new_dtype: Any, **_: Any) -> jax.Array:
    if not is_complex(new_dtype):
        x, y = _parts(z)
        return (x != 0) | (y != 0) if new_dtype == np.bool_ else _widened(x, new_dtype)
    part = np.zeros((), new_dtype).real.dtype
    x, y = _parts(z)
    return _join(_widened(x, part), _widened(y, part))


def _iota(*_: Any, dtype: Any, shape: tuple[Any, ...], dimension: int, **__: Any) -> jax.Array:
    count = lax.broadcasted_iota(np.zeros((), dtype).real.dtype, shape, dimension)
    return _join(count, jnp.zeros_like(count))


def _compare(both: Callable[..., jax.Array], one: Callable[..., jax.Array]) -> Callable[..., Any]:
    def compared(z: Array, w: Array) -> jax.Array:
        (a, b), (c, d) = _parts(z), _parts(w)
        return both(one(a, c), one(b, d))

    return compared


def _is_less(z: Array, w: Array) -> jax.Array:
    """By real part, then by imaginary part, as XLA orders complex numbers."""
    (a, b), (c, d) = _parts(z), _parts(w)
    return (a < c) | ((a == c) & (b < d))


def _extreme(z: Array, w: Array, *, largest: bool) -> jax.Array:
    """The second where neither is less, as with NaN."""
    first, second = (w, z) if largest else (z, w)
    return jnp.where(_is_less(first, second), z, w)


def _over(function: Callable[[Array, Array], Array], empty: complex) -> Callable[..., Any]:
    """A reduction by a function of two numbers."""

    def reduced(z: Array, *, axes: tuple[int, ...], **_: Any) -> jax.Array:
        shape = tuple(size for axis, size in enumerate(z.shape) if axis not in axes)
        for axis in sorted(axes, reverse=True):
            if z.shape[axis] == 0:
                return jnp.full(shape, empty, z.dtype)
            z = _halving(z, axis, function)
        return z

    return reduced


def _arg_extreme(z: Array, *, largest: bool, axes: Any, index_dtype: Any, **_: Any) -> jax.Array:
    """The first of the numbers that are NaN, or else extreme, in the order of `_is_less`."""
    (axis,) = axes
    extreme, worst = (jnp.max, -math.inf) if largest else (jnp.min, math.inf)
    x, y = _parts(z)
    is_first = x == extreme(x, axis, keepdims=True)
    candidates = jnp.where(is_first, y, worst)
    is_best = is_first & (candidates == extreme(candidates, axis, keepdims=True))
    is_nan = jnp.isnan(x) | jnp.isnan(y)
    is_found = jnp.where(is_nan.any(axis, keepdims=True), is_nan, is_best)
    return lax.argmax(is_found.astype(np.int32), axis, index_dtype)


def _over_windows(function: Callable[[Array, Array], Array], start: complex) -> Callable[..., Any]:
    def reduced(z: Array, **window: Any) -> jax.Array:
        return over_windows(
            lambda x, y: [function(x, y)], [z], [jnp.asarray(start, z.dtype)], **window
        )[0]

    return reduced


def _running(function: Callable[[Array, Array], Array]) -> Callable[..., Any]:
    def scanned(z: Array, *, axis: int, reverse: bool) -> jax.Array:
        return lax.associative_scan(function, z, reverse=reverse, axis=axis)

    return scanned


def _sort(*operands: Array, dimension: int, is_stable: bool, num_keys: int) -> list[jax.Array]:
    """By real part, then by imaginary part."""
    columns = [part for x in operands for part in (_parts(x) if is_complex(x.dtype) else (x,))]
    keys = num_keys + sum(is_complex(x.dtype) for x in operands[:num_keys])
    result = iter(lax.sort(columns, dimension=dimension, is_stable=is_stable, num_keys=keys))
    return [
        lax.complex(next(result), next(result)) if is_complex(x.dtype) else next(result)
        for x in operands
    ]


_larger = functools.partial(_extreme, largest=True)
_smaller = functools.partial(_extreme, largest=False)

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": _length,
    "acos": _acos,
    "acosh": _acosh,
    "argmax": functools.partial(_arg_extreme, largest=True),
    "argmin": functools.partial(_arg_extreme, largest=False),
    "asin": _asin,
    "asinh": lambda z: _turned(z, _asin),
    "atan": lambda z: _turned(z, _atanh),
    "atanh": _atanh,
    "bitcast_convert_type": lambda z, **_: z,  # JAX allows it to the same dtype only
    "conj": lambda z, **_: _join(_parts(z)[0], -_parts(z)[1]),
    "convert_element_type": _convert,
    "cos": _cos,
    "cosh": _cosh,
    "cummax": _running(_larger),
    "cummin": _running(_smaller),
    "cumprod": _running(lax.mul),
    "div": _div,
    "eq": _compare(jnp.logical_and, lax.eq),
    "exp": _exp,
    "exp2": lambda z, **_: _exp(z * np.log(2)),
    "expm1": _expm1,
    "integer_pow": _integer_pow,
    "iota": _iota,
    "log": _log,
    "log1p": _log1p,
    "logistic": lambda z, **_: 1 / (1 + _exp(-z)),
    "max": _larger,
    "min": _smaller,
    "mul": _mul,
    "ne": _compare(jnp.logical_or, lax.ne),
    "pad": _pad,
    "pow": _pow,
    "reduce_max": _over(_larger, complex(-math.inf, -math.inf)),
    "reduce_min": _over(_smaller, complex(math.inf, math.inf)),
    "reduce_prod": _over(lax.mul, 1),
    "reduce_window_max": _over_windows(_larger, -math.inf),
    "reduce_window_min": _over_windows(_smaller, math.inf),
    "rsqrt": _rsqrt,
    "scatter-max": functools.partial(combined, _larger),
    "scatter-min": functools.partial(combined, _smaller),
    "scatter-mul": functools.partial(combined, lax.mul),
    "sign": _sign,
    "sin": _sin,
    "sinh": _sinh,
    "sort": _sort,
    "sqrt": _sqrt,
    "square": lambda z: _mul(z, z),
    "tan": lambda z, **_: _turned(z, _tanh),
    "tanh": _tanh,
}

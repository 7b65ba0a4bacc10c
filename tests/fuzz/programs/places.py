# SPDX-License-Identifier: Apache-2.0
"""Where results are ONNX Runtime's or XLA's alone, and by how much: what the quirks are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax


def nan_before(args: Sequence[Any], result: Any) -> Any:
    return jnp.isnan(result) if is_float(result) else jnp.zeros(result.shape, bool)


def image_is_not_finite(args: Sequence[Any], result: Any) -> Any:
    """Neighbours count also where their weight is 0, along axes that keep their size, too."""
    found = [~jnp.isfinite(x).all() for x in args]
    return (found[0] | found[1]) & jnp.ones(result.shape, bool)


def either_is_not_finite(want: np.ndarray, have: np.ndarray) -> np.ndarray:
    return np.asarray(~np.isfinite(want) | ~np.isfinite(have))


def infinite(args: Sequence[Any], result: Any) -> Any:
    return jnp.isinf(result)


def negative_zero(args: Sequence[Any], result: Any) -> Any:
    return (result == 0) & jnp.signbit(result)


def digits_of_one(args: Sequence[Any], result: Any, sign: Any) -> Any:
    """A sum with 1 that cancels, down to 0; 16-bit numbers are computed in f32."""
    unit = jnp.finfo(jnp.promote_types(result.dtype, jnp.float32)).eps
    return jnp.maximum(result + sign * unit, 0)


def exponential_less_one(args: Sequence[Any], result: Any, sign: Any) -> Any:
    return result + sign * jnp.finfo(jnp.promote_types(result.dtype, jnp.float32)).eps


def subnormal_steps(args: Sequence[Any], result: Any, sign: Any) -> Any:
    return jnp.where(jnp.abs(args[0]) < 4e-36, result * (1 + sign * 1e-5), result)


def kernel_is_not_finite(args: Sequence[Any], result: Any) -> Any:
    return ~jnp.isfinite(args[1]).all() & jnp.ones(result.shape, bool)


def only_model_is_nan(want: np.ndarray, have: np.ndarray) -> np.ndarray:
    return of_floats(want, (want == want) & (have != have))


def of_floats(want: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Of other results the numbers that count were on their way."""
    is_other = not jnp.issubdtype(want.dtype, jnp.floating)
    return np.ones(want.shape, bool) if is_other else np.asarray(mask)


def row_of_lowest(args: Sequence[Any], result: Any) -> Any:
    """Scores less the largest of their row, all of which are masked; ONNX Runtime sees no NaN."""
    scores, largest = args
    if jnp.ndim(scores) == 0:
        return jnp.zeros(result.shape, bool)
    lowest = scores <= jnp.finfo(result.dtype).min
    row = (lowest | jnp.isnan(scores)).all(-1, keepdims=True) & lowest.any(-1, keepdims=True)
    return row & ~(largest > jnp.finfo(result.dtype).min)


def row_with_infinity(args: Sequence[Any], result: Any) -> Any:
    scores = args[0]
    if jnp.ndim(scores) == 0:
        return jnp.zeros(result.shape, bool)
    return jnp.broadcast_to((scores == jnp.inf).any(-1, keepdims=True), result.shape)


def bias_of_lowest(args: Sequence[Any], result: Any) -> Any:
    """Scores with such a bias, whatever they are."""
    rows = [jnp.broadcast_to(a <= jnp.finfo(result.dtype).min, result.shape) for a in args]
    if result.ndim == 0:
        return rows[0] & False
    return (rows[0].all(-1, keepdims=True) | rows[1].all(-1, keepdims=True)) & (rows[0] | True)


def sign_of_zero(args: Sequence[Any], result: Any, sign: Any) -> Any:
    return jnp.where(result == 0, jnp.asarray(sign * 0.0, result.dtype), result)


def nan_as(number: float) -> Callable[[Any], Any]:
    return lambda x: jnp.where(jnp.isnan(x), jnp.asarray(number, x.dtype), x)


def sixteen_digits_of_one(args: Sequence[Any], result: Any, sign: Any) -> Any:
    return result + sign * 16 * jnp.finfo(jnp.promote_types(result.dtype, jnp.float32)).eps


def rounded_mean(args: Sequence[Any], result: Any, sign: Any) -> Any:
    """Of whole numbers JAX's mean may be exact; a norm multiplies each with 1 / n first.

    Nor is the difference of a number and itself 0 where a norm adds what its mean contributes.
    """
    if not is_float(result) or (args[1].size == result.size and 1 not in result.shape):
        return result
    size = jnp.max(jnp.abs(jnp.where(jnp.isfinite(args[0]), args[0], 0)), initial=0)
    return result + sign * jnp.finfo(result.dtype).eps * size


def divides_by_zero(args: Sequence[Any], result: Any) -> Any:
    return jnp.broadcast_to(args[1] == 0, result.shape)


def masked_score_as_large(args: Sequence[Any], result: Any) -> Any:
    """A fill took the place of a number that it does not absorb."""
    found = jnp.zeros(result.shape, bool)
    for case in args[1:]:
        found |= ~(jnp.abs(case) <= 1e-8 * jnp.abs(result)) & (case != result)
    return found & (result <= -1e4)


def huge_factor(args: Sequence[Any], result: Any) -> Any:
    huge = [jnp.broadcast_to(jnp.abs(x) > 1e30, result.shape) for x in args]
    return huge[0] | huge[1]


def added_mask(args: Sequence[Any], result: Any) -> Any:
    """A score that is not finite, with the number of a mask added to it."""
    is_mask = jnp.abs(args[0]) >= 1e4
    is_mask |= jnp.abs(args[1]) >= 1e4
    return is_mask & ~jnp.isfinite(result)


def nan_is_replaced(args: Sequence[Any], result: Any) -> Any:
    found = jnp.zeros(result.shape, bool)
    for case in args[1:]:
        found |= jnp.isnan(case)
    return found & ~jnp.isnan(result)


def digits_of_one_over(args: Sequence[Any], result: Any, sign: Any) -> Any:
    """1 / (1 + exp(-x)) is a Sigmoid, x / (1 + exp(-x)) a product with one."""
    unit = jnp.finfo(jnp.promote_types(result.dtype, jnp.float32)).eps
    return jnp.where(args[1] >= 1, result + sign * unit * jnp.abs(args[0]), result)


def is_subnormal(x: Any) -> Any:
    """By its bits: XLA's own comparisons take it for 0."""
    info = jnp.finfo(x.dtype)
    bits = lax.bitcast_convert_type(x, jnp.dtype(f"uint{info.bits}"))
    size = bits & ((1 << (info.bits - 1)) - 1)
    return (size > 0) & (size < 1 << info.nmant)


def magnified(x: Any) -> Any:
    """Products of two are 1 where those of the numbers are the smallest normal one.

    16-bit numbers need not be rounded on their way: whatever is not 0 counts.
    """
    info = jnp.finfo(x.dtype)
    return (x != 0).astype(x.dtype) if info.bits == 16 else jnp.abs(x) * 2.0 ** (-info.minexp // 2)


def subnormal_as_normal(x: Any) -> Any:
    tiny = jnp.full_like(x, jnp.finfo(x.dtype).tiny)
    return jnp.where(is_subnormal(x), jnp.copysign(tiny, x), x)


def power_is_subnormal(base: float, args: Sequence[Any], result: Any) -> Any:
    """Numbers so small that their power is 0 in any form are left out."""
    info = jnp.finfo(result.dtype)
    least = (np.log(float(info.tiny)) + np.log(float(info.eps)) - 1) / np.log(base)
    return (result < info.tiny) & (args[0] > least)


def reads_subnormal_number(args: Sequence[Any], result: Any) -> Any:
    found = jnp.zeros(result.shape, bool)
    for x in filter(is_float, args):
        found |= jnp.broadcast_to(is_subnormal(x), result.shape)
    return found


def makes_subnormal_number(args: Sequence[Any], result: Any) -> Any:
    return is_subnormal(result)


def nan_of_infinities(args: Sequence[Any], result: Any) -> Any:
    return jnp.isnan(result) & jnp.any(jnp.stack([jnp.isinf(x).any() for x in args]))


def infinity_less_infinity(args: Sequence[Any], result: Any) -> Any:
    return jnp.isnan(result) & jnp.isinf(args[0]) & jnp.isinf(args[1])


def only_jax_is_nan(want: np.ndarray, have: np.ndarray) -> np.ndarray:
    return of_floats(want, (want != want) & (have == have))


def size(x: Any) -> Any:
    """No part of a sum or product of finite numbers is larger than that of these.

    With room for numbers such as 2, which stand outside of a sum in one form and inside in another.
    """
    return jnp.where(jnp.isfinite(x), 4 * jnp.maximum(jnp.abs(x), 1), 4)


def digits_of_f32(args: Sequence[Any], result: Any, sign: Any) -> Any:
    """A merged scale is a number of f32."""
    return result * (1 + sign * jnp.finfo(jnp.float32).eps) if is_float(result) else result


def size_without_scale(x: Any) -> Any:
    return jnp.where(jnp.isfinite(x), jnp.abs(x) * 1e4, 1)


def model_overflows(want: np.ndarray, have: np.ndarray) -> np.ndarray:
    """Where JAX does, too, and the model does not, it is compared with the exact result."""
    return np.asarray(~np.isfinite(have) & ~(np.isinf(want) & np.isinf(have)))


def model_overflows_on_its_way(want: np.ndarray, have: np.ndarray) -> np.ndarray:
    return of_floats(want, model_overflows(want, have))


def scores_of_f32(axis: int, result: Any, scores: Any) -> Any:
    """Rows of scores that overflow in f16, less the largest: their softmax is that of f32."""
    if result.dtype != jnp.float16 or result.ndim < -axis:
        return result
    is_finite = jnp.isfinite(scores)
    overflows = (jnp.isinf(result) & is_finite).any(axis=axis, keepdims=True)
    largest = jnp.max(
        jnp.where(is_finite, scores, -jnp.inf), axis=axis, keepdims=True, initial=-jnp.inf
    )
    return jnp.where(overflows, jnp.maximum(scores - largest, -6e4), result)


# Which sign a NaN has in JAX depends on what XLA compiles: both are tried.
def positive_nan(x: Any) -> Any:
    return jnp.where(jnp.isnan(x), jnp.abs(x), x)


def negative_nan(x: Any) -> Any:
    return jnp.where(jnp.isnan(x), -jnp.abs(x), x)


def overflows_in_64_bits(args: Sequence[Any], result: Any) -> Any:
    return jnp.isinf(result) & jnp.isfinite(args[0]) & (args[0] > 709)


def jax_overflows(want: np.ndarray, have: np.ndarray) -> np.ndarray:
    return of_floats(want, ~np.isfinite(want))


def overflows(args: Sequence[Any], result: Any) -> Any:
    return (jnp.isinf(result) | (result == 0)) & jnp.isfinite(args[0])


def sums_to_none(args: Sequence[Any], result: Any) -> Any:
    """Exponentials that are infinite, or all 0 along some axis."""
    found = jnp.isinf(result) & jnp.isfinite(args[0])
    for axis in range(result.ndim):
        found |= (result == 0).all(axis=axis, keepdims=True)
    return found


def only_jax_overflows(want: np.ndarray, have: np.ndarray) -> np.ndarray:
    return of_floats(want, ~np.isfinite(want) & np.isfinite(have))


# What else is infinite stays so: the logarithm of the weight of a score of -inf, a sum with inf.
def only_jax_overflows_in_softmax(want: np.ndarray, have: np.ndarray) -> np.ndarray:
    return only_jax_overflows(want, have) | of_floats(want, (want != want) & (have == have))


def less_the_maximum(axis: int, x: Any) -> Any:
    """The scores of a softmax that does not overflow, where exponentials do."""
    if not is_float(x) or x.ndim < -axis:
        return x
    overflows = jnp.isinf(jnp.exp(x)) & jnp.isfinite(x)
    largest = jnp.max(
        jnp.where(jnp.isfinite(x), x, -jnp.inf), axis=axis, keepdims=True, initial=-jnp.inf
    )
    return jnp.where(overflows.any(axis=axis, keepdims=True), x - largest, x)


def one_zero_and_nan(x: Any) -> Any:
    return jnp.where(jnp.isnan(x), jnp.nan, jnp.where(x == 0, 0, x)).astype(x.dtype)


def is_float(x: Any) -> bool:
    return bool(jnp.issubdtype(x.dtype, jnp.floating))

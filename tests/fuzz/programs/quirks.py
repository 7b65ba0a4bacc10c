# SPDX-License-Identifier: Apache-2.0
"""The places where "Where numbers differ" of docs/architecture.md has a model differ from JAX.

Each is a primitive, and where its result is ONNX Runtime's, or XLA's alone.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax


@dataclasses.dataclass(frozen=True)
class Quirk:
    """Primitives whose results differ where `where(operands, result)` is true.

    With `beyond`, they differ where those of `beyond(operands)` are infinite; with `vanishes`,
    where they are 0 and those of other numbers would not be; with `instead`, they are those of
    other operands; with `noise`, they are off as it has them, upwards and downwards. Of elements
    that change, those are excused that `permits(want, have)`; with `among`, those that lie between
    the results of such runs.
    """

    name: str
    primitives: tuple[str, ...]
    where: Callable[[Sequence[Any], Any], Any] = lambda operands, result: False
    beyond: Callable[[Any], Any] | None = None
    vanishes: bool = False
    instead: Callable[[Any], Any] | None = None
    noise: Callable[[Sequence[Any], Any, Any], Any] | None = None
    permits: Callable[[np.ndarray, np.ndarray], Any] = lambda want, have: True
    among: bool = False
    opsets: range = range(27)
    targets: tuple[str, ...] = ("onnxruntime", "onnx")
    raised_only: bool = False
    only: Callable[[Mapping[str, Any]], bool] = lambda params: True  # equations with these
    spelled: str = ""  # only in programs with this text
    beside: str = ""  # only in programs with this primitive, too


def _nan_before(args: Sequence[Any], result: Any) -> Any:
    return jnp.isnan(result) if is_float(result) else jnp.zeros(result.shape, bool)


def _image_is_not_finite(args: Sequence[Any], result: Any) -> Any:
    """Neighbours count also where their weight is 0, along axes that keep their size, too."""
    found = [~jnp.isfinite(x).all() for x in args]
    return (found[0] | found[1]) & jnp.ones(result.shape, bool)


def _either_is_not_finite(want: np.ndarray, have: np.ndarray) -> np.ndarray:
    return np.asarray(~np.isfinite(want) | ~np.isfinite(have))


def _infinite(args: Sequence[Any], result: Any) -> Any:
    return jnp.isinf(result)


def _negative_zero(args: Sequence[Any], result: Any) -> Any:
    return (result == 0) & jnp.signbit(result)


def _digits_of_one(args: Sequence[Any], result: Any, sign: Any) -> Any:
    """A sum with 1 that cancels, down to 0; 16-bit numbers are computed in f32."""
    unit = jnp.finfo(jnp.promote_types(result.dtype, jnp.float32)).eps
    return jnp.maximum(result + sign * unit, 0)


def _exponential_less_one(args: Sequence[Any], result: Any, sign: Any) -> Any:
    return result + sign * jnp.finfo(jnp.promote_types(result.dtype, jnp.float32)).eps


def _subnormal_steps(args: Sequence[Any], result: Any, sign: Any) -> Any:
    return jnp.where(jnp.abs(args[0]) < 4e-36, result * (1 + sign * 1e-5), result)


def _kernel_is_not_finite(args: Sequence[Any], result: Any) -> Any:
    return ~jnp.isfinite(args[1]).all() & jnp.ones(result.shape, bool)


def _only_model_is_nan(want: np.ndarray, have: np.ndarray) -> np.ndarray:
    return _of_floats(want, (want == want) & (have != have))


def _of_floats(want: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Of other results the numbers that count were on their way."""
    is_other = not jnp.issubdtype(want.dtype, jnp.floating)
    return np.ones(want.shape, bool) if is_other else np.asarray(mask)


def _row_of_lowest(args: Sequence[Any], result: Any) -> Any:
    """Scores less the largest of their row, all of which are masked; ONNX Runtime sees no NaN."""
    scores, largest = args
    if jnp.ndim(scores) == 0:
        return jnp.zeros(result.shape, bool)
    lowest = scores <= jnp.finfo(result.dtype).min
    row = (lowest | jnp.isnan(scores)).all(-1, keepdims=True) & lowest.any(-1, keepdims=True)
    return row & ~(largest > jnp.finfo(result.dtype).min)


def _row_with_infinity(args: Sequence[Any], result: Any) -> Any:
    scores = args[0]
    if jnp.ndim(scores) == 0:
        return jnp.zeros(result.shape, bool)
    return jnp.broadcast_to((scores == jnp.inf).any(-1, keepdims=True), result.shape)


def _bias_of_lowest(args: Sequence[Any], result: Any) -> Any:
    """Scores with such a bias, whatever they are."""
    rows = [jnp.broadcast_to(a <= jnp.finfo(result.dtype).min, result.shape) for a in args]
    if result.ndim == 0:
        return rows[0] & False
    return (rows[0].all(-1, keepdims=True) | rows[1].all(-1, keepdims=True)) & (rows[0] | True)


def _sign_of_zero(args: Sequence[Any], result: Any, sign: Any) -> Any:
    return jnp.where(result == 0, jnp.asarray(sign * 0.0, result.dtype), result)


def _nan_as(number: float) -> Callable[[Any], Any]:
    return lambda x: jnp.where(jnp.isnan(x), jnp.asarray(number, x.dtype), x)


def _sixteen_digits_of_one(args: Sequence[Any], result: Any, sign: Any) -> Any:
    return result + sign * 16 * jnp.finfo(jnp.promote_types(result.dtype, jnp.float32)).eps


def _rounded_mean(args: Sequence[Any], result: Any, sign: Any) -> Any:
    """Of whole numbers JAX's mean may be exact; a norm multiplies each with 1 / n first.

    Nor is the difference of a number and itself 0 where a norm adds what its mean contributes.
    """
    if not is_float(result) or (args[1].size == result.size and 1 not in result.shape):
        return result
    size = jnp.max(jnp.abs(jnp.where(jnp.isfinite(args[0]), args[0], 0)), initial=0)
    return result + sign * jnp.finfo(result.dtype).eps * size


def _divides_by_zero(args: Sequence[Any], result: Any) -> Any:
    return jnp.broadcast_to(args[1] == 0, result.shape)


def _masked_score_as_large(args: Sequence[Any], result: Any) -> Any:
    """A fill took the place of a number that it does not absorb."""
    found = jnp.zeros(result.shape, bool)
    for case in args[1:]:
        found |= ~(jnp.abs(case) <= 1e-8 * jnp.abs(result)) & (case != result)
    return found & (result <= -1e4)


def _huge_factor(args: Sequence[Any], result: Any) -> Any:
    huge = [jnp.broadcast_to(jnp.abs(x) > 1e30, result.shape) for x in args]
    return huge[0] | huge[1]


def _added_mask(args: Sequence[Any], result: Any) -> Any:
    """A score that is not finite, with the number of a mask added to it."""
    is_mask = jnp.abs(args[0]) >= 1e4
    is_mask |= jnp.abs(args[1]) >= 1e4
    return is_mask & ~jnp.isfinite(result)


def _nan_is_replaced(args: Sequence[Any], result: Any) -> Any:
    found = jnp.zeros(result.shape, bool)
    for case in args[1:]:
        found |= jnp.isnan(case)
    return found & ~jnp.isnan(result)


def _digits_of_one_over(args: Sequence[Any], result: Any, sign: Any) -> Any:
    """1 / (1 + exp(-x)) is a Sigmoid, x / (1 + exp(-x)) a product with one."""
    unit = jnp.finfo(jnp.promote_types(result.dtype, jnp.float32)).eps
    return jnp.where(args[1] >= 1, result + sign * unit * jnp.abs(args[0]), result)


def _is_subnormal(x: Any) -> Any:
    """By its bits: XLA's own comparisons take it for 0."""
    info = jnp.finfo(x.dtype)
    bits = lax.bitcast_convert_type(x, jnp.dtype(f"uint{info.bits}"))
    size = bits & ((1 << (info.bits - 1)) - 1)
    return (size > 0) & (size < 1 << info.nmant)


def _subnormal_as_normal(x: Any) -> Any:
    tiny = jnp.full_like(x, jnp.finfo(x.dtype).tiny)
    return jnp.where(_is_subnormal(x), jnp.copysign(tiny, x), x)


def _reads_subnormal_number(args: Sequence[Any], result: Any) -> Any:
    found = jnp.zeros(result.shape, bool)
    for x in filter(is_float, args):
        found |= jnp.broadcast_to(_is_subnormal(x), result.shape)
    return found


def _makes_subnormal_number(args: Sequence[Any], result: Any) -> Any:
    return _is_subnormal(result)


def _nan_of_infinities(args: Sequence[Any], result: Any) -> Any:
    return jnp.isnan(result) & jnp.any(jnp.stack([jnp.isinf(x).any() for x in args]))


def _infinity_less_infinity(args: Sequence[Any], result: Any) -> Any:
    return jnp.isnan(result) & jnp.isinf(args[0]) & jnp.isinf(args[1])


def _only_jax_is_nan(want: np.ndarray, have: np.ndarray) -> np.ndarray:
    return _of_floats(want, (want != want) & (have == have))


def _size(x: Any) -> Any:
    """No part of a sum or product of finite numbers is larger than that of these.

    With room for numbers such as 2, which stand outside of a sum in one form and inside in another.
    """
    return jnp.where(jnp.isfinite(x), 4 * jnp.maximum(jnp.abs(x), 1), 4)


def _digits_of_f32(args: Sequence[Any], result: Any, sign: Any) -> Any:
    """A merged scale is a number of f32."""
    return result * (1 + sign * jnp.finfo(jnp.float32).eps) if is_float(result) else result


def _size_without_scale(x: Any) -> Any:
    return jnp.abs(x) * 1e4


def _model_overflows(want: np.ndarray, have: np.ndarray) -> np.ndarray:
    """Where JAX does, too, and the model does not, it is compared with the exact result."""
    return np.asarray(~np.isfinite(have) & ~(np.isinf(want) & np.isinf(have)))


# Which sign a NaN has in JAX depends on what XLA compiles: both are tried.
def _positive_nan(x: Any) -> Any:
    return jnp.where(jnp.isnan(x), jnp.abs(x), x)


def _negative_nan(x: Any) -> Any:
    return jnp.where(jnp.isnan(x), -jnp.abs(x), x)


def _overflows_in_64_bits(args: Sequence[Any], result: Any) -> Any:
    return jnp.isinf(result) & jnp.isfinite(args[0]) & (args[0] > 709)


def _jax_overflows(want: np.ndarray, have: np.ndarray) -> np.ndarray:
    return _of_floats(want, ~np.isfinite(want))


def _overflows(args: Sequence[Any], result: Any) -> Any:
    return (jnp.isinf(result) | (result == 0)) & jnp.isfinite(args[0])


def _sums_to_none(args: Sequence[Any], result: Any) -> Any:
    """Exponentials that are infinite, or all 0 along some axis."""
    found = jnp.isinf(result) & jnp.isfinite(args[0])
    for axis in range(result.ndim):
        found |= (result == 0).all(axis=axis, keepdims=True)
    return found


def _only_jax_overflows(want: np.ndarray, have: np.ndarray) -> np.ndarray:
    return _of_floats(want, ~np.isfinite(want) & np.isfinite(have))


# What else is infinite stays so: the logarithm of the weight of a score of -inf, a sum with inf.
def _only_jax_overflows_in_softmax(want: np.ndarray, have: np.ndarray) -> np.ndarray:
    return _only_jax_overflows(want, have) | _of_floats(want, (want != want) & (have == have))


def _less_the_maximum(axis: int, x: Any) -> Any:
    """The scores of a softmax that does not overflow, where exponentials do."""
    if not is_float(x) or x.ndim < -axis:
        return x
    overflows = jnp.isinf(jnp.exp(x)) & jnp.isfinite(x)
    largest = jnp.max(
        jnp.where(jnp.isfinite(x), x, -jnp.inf), axis=axis, keepdims=True, initial=-jnp.inf
    )
    return jnp.where(overflows.any(axis=axis, keepdims=True), x - largest, x)


def _one_zero_and_nan(x: Any) -> Any:
    return jnp.where(jnp.isnan(x), jnp.nan, jnp.where(x == 0, 0, x)).astype(x.dtype)


def is_float(x: Any) -> bool:
    return bool(jnp.issubdtype(x.dtype, jnp.floating))


# A window with another start than its own neutral element is a plain reduce_window.
_WINDOWS = ("reduce_window", "reduce_window_max", "reduce_window_min")
_MAXIMA = ("reduce_max", "cummax", "scatter-max", "reduce_window_max")
_MINIMA = ("reduce_min", "cummin", "scatter-min", "reduce_window_min")

_SUMS = ("cumsum", "dot_general", "conv_general_dilated", "reduce_sum", "reduce_window_sum")
_PRODUCTS = ("cumprod", "reduce_prod", "reduce_window")

FLUSHED = "XLA takes subnormal numbers for 0"
IGNORES_NAN = "a maximum or minimum of numbers with NaN among them ignores NaN"
HIDING = (FLUSHED, IGNORES_NAN)  # numbers of later steps, and what is true of them

QUIRKS = [
    Quirk(
        IGNORES_NAN,
        (*_MAXIMA, *_MINIMA, *_WINDOWS),
        _nan_before,
    ),
    *(
        Quirk(
            IGNORES_NAN,
            primitives,
            instead=_nan_as(number),
        )
        for primitives, number in ((_MAXIMA, -np.inf), (_MINIMA, np.inf))
    ),
    Quirk("MaxPool gives the largest number for infinity", _WINDOWS, _infinite),
    Quirk("Where gives 0 for -0", ("select_n", "gather"), _negative_zero),
    Quirk(
        "XLA takes log(x ** y) for y log |x|",
        ("log",),
        lambda args, result: jnp.isnan(args[0]),
        beside="pow",
    ),
    Quirk(
        "the sign of a zero",
        ("max", "min", "add", "reduce_window", *_MAXIMA, *_MINIMA, *_SUMS),
        noise=_sign_of_zero,
    ),
    Quirk(
        "top_k takes 0 and -0 for equal and NaN for positive",
        ("top_k",),
        instead=_one_zero_and_nan,
        opsets=range(26),
    ),
    Quirk(
        "Resize does not spread NaN and infinity along a whole axis",
        ("dot_general",),
        _image_is_not_finite,
        permits=_either_is_not_finite,
        spelled="image.resize",
    ),
    Quirk(
        "Conv multiplies padding with a kernel that is not finite",
        ("conv_general_dilated",),
        _kernel_is_not_finite,
        permits=_only_model_is_nan,
    ),
    Quirk(
        "XLA multiplies the numbers of other groups with 0",
        ("conv_general_dilated",),
        _nan_before,
        only=lambda params: params["feature_group_count"] * params["batch_group_count"] > 1,
    ),
    *(
        Quirk(
            "Attention gives 0 or a mean for a row of biases that are -inf or the lowest number",
            (primitive,),
            where,
            permits=lambda want, have: np.isfinite(have),
            opsets=range(23, 27),
            raised_only=True,
            beside="dot_general",
        )
        for primitive, where in (
            ("sub", _row_of_lowest),
            ("add", _bias_of_lowest),
            ("div", _divides_by_zero),  # by the sum of a softmax without its maximum
        )
    ),
    Quirk(
        "Attention adds its masks, and takes factors of scores into its operands",
        ("select_n",),
        _masked_score_as_large,
        raised_only=True,
        beside="dot_general",
    ),
    Quirk(
        "Attention replaces a score that is masked, where JAX adds the mask",
        ("add", "sub"),
        _added_mask,
        permits=lambda want, have: (want != want) | (want == 0),  # NaN, or what guards make of it
        raised_only=True,
        beside="select_n",
    ),
    Quirk(
        "Attention keeps a score that is NaN, where weights that are NaN become 0",
        ("select_n",),
        _nan_is_replaced,
        permits=_only_model_is_nan,
        raised_only=True,
        beside="dot_general",
    ),
    Quirk(
        "Attention adds its masks, and takes factors of scores into its operands",
        ("div",),
        _divides_by_zero,
        permits=_only_model_is_nan,
        raised_only=True,
        beside="dot_general",
    ),
    Quirk(
        "a sum or product in another order overflows on its way",
        (*_SUMS, *_PRODUCTS),
        beyond=_size,
        permits=_model_overflows,
    ),
    Quirk(
        "a sum or product in another order overflows on its way",
        (*_SUMS, *_PRODUCTS),
        beyond=_size,
        permits=_jax_overflows,
        spelled="nan_to_num",  # which gives other numbers in 64 bits
    ),
    Quirk(
        "a sum or product in another order overflows on its way",
        ("reduce_sum",),  # of a norm, whose squares overflow in 32 bits and not in 64
        beyond=_size,
        permits=_only_jax_overflows,
        among=True,
        raised_only=True,
    ),
    *(
        Quirk(
            "ONNX Runtime multiplies a product with the scales of its operands",
            ("dot_general",),
            beyond=_size_without_scale,
            permits=_model_overflows,
            beside=scale,
        )
        for scale in ("mul", "div")
    ),
    *(
        Quirk(
            "ONNX Runtime multiplies a product with the scales of its operands",
            ("dot_general",),
            noise=_digits_of_f32,
            targets=("onnx",),  # others keep scales of 64 bits apart
            beside=scale,
        )
        for scale in ("mul", "div")
    ),
    *(
        Quirk(
            "a norm multiplies its scale first",
            ("mul",),
            _huge_factor,
            permits=_model_overflows,
            raised_only=True,
            beside=root,
        )
        for root in ("sqrt", "rsqrt")
    ),
    *(
        Quirk(
            "a variance of one pass that overflows becomes one of two",
            ("sub",),
            _infinity_less_infinity,
            permits=_only_jax_overflows,
            among=True,
            raised_only=True,
            beside=root,
        )
        for root in ("sqrt", "rsqrt")
    ),
    Quirk(
        "a variance of one pass that overflows becomes one of two",
        ("sub",),
        _infinity_less_infinity,
        raised_only=True,
        spelled="isnan",  # and then what a guard has in its place
    ),
    Quirk(
        "a variance of one pass that overflows becomes one of two",
        ("sub",),
        _infinity_less_infinity,
        raised_only=True,
        beside="sort",  # which puts it among the others
    ),
    *(
        Quirk(
            "a norm rounds its mean", ("sub",), noise=_rounded_mean, raised_only=True, beside=root
        )
        for root in ("sqrt", "rsqrt")
    ),
    Quirk(
        "a sum along which an operand is repeated is taken of the other operand first",
        ("dot_general",),
        _nan_of_infinities,
        permits=_only_jax_is_nan,
    ),
    Quirk(FLUSHED, ("mul", "div", "dot_general"), vanishes=True),
    Quirk(FLUSHED, ("bitcast_convert_type",), _makes_subnormal_number),
    Quirk(
        FLUSHED,
        ("max", "min", "add", "sub", "mul", "div"),
        _reads_subnormal_number,
        permits=_only_jax_overflows,
    ),
    Quirk(FLUSHED, ("eq", "ne", "lt", "le", "gt", "ge"), instead=_subnormal_as_normal),
    Quirk("the sign of a NaN", ("bitcast_convert_type",), instead=_positive_nan),
    Quirk("the sign of a NaN", ("bitcast_convert_type",), instead=_negative_nan),
    Quirk("Sigmoid has the digits of 1, not of itself", ("logistic",), noise=_digits_of_one),
    Quirk(
        "Sigmoid has the digits of 1, not of itself",
        ("div",),
        noise=_digits_of_one_over,
        raised_only=True,
        beside="exp",
    ),
    Quirk(
        "Gelu adds 1 and erf, which cancels far to the left",
        ("erfc",),
        noise=_digits_of_one,
        spelled="gelu",
    ),
    Quirk(
        "Elu, Celu and Selu subtract 1 from an exponential",
        ("expm1",),
        noise=_exponential_less_one,
        raised_only=True,
        targets=("onnx",),  # others have their parts
    ),
    Quirk(
        "LogSoftmax in f64 gives numbers beside NaN",
        ("log",),
        _nan_before,
        raised_only=True,
        targets=("onnx",),  # others have their parts
    ),
    Quirk(
        "the tanh of RNN has the digits of 1",
        ("tanh",),
        noise=_exponential_less_one,
        raised_only=True,
        beside="scan",
    ),
    Quirk("lgamma is a difference near its zeros", ("lgamma",), noise=_sixteen_digits_of_one),
    Quirk("Tanh has subnormal numbers on its way", ("tanh", "expm1"), noise=_subnormal_steps),
    Quirk(
        "a softmax or softplus whose exponentials overflow in JAX",
        ("exp",),
        _overflows,
        permits=_only_jax_overflows_in_softmax,
        raised_only=True,
    ),
    *(
        Quirk(
            "a softmax or softplus whose exponentials overflow in JAX",
            ("exp",),
            instead=functools.partial(_less_the_maximum, axis),
            permits=_only_jax_overflows_in_softmax,
            raised_only=True,
            beside="convert_element_type",  # which makes a number of the quotient of infinities
        )
        for axis in (-1, -2, -3, -4)
    ),
    *(
        Quirk(
            "a softmax or softplus whose exponentials overflow in JAX",
            ("exp",),
            _sums_to_none,
            raised_only=True,
            beside=bound,  # which makes a number of infinity
        )
        for bound in ("clamp", "max", "min")
    ),
    Quirk(
        "a softmax or softplus whose exponentials overflow in JAX",
        ("exp",),
        _overflows,
        raised_only=True,
        beside="while",  # whose condition may read them
    ),
    Quirk(
        "a softmax or softplus whose exponentials overflow in JAX",
        ("exp",),
        _overflows_in_64_bits,
        raised_only=True,
    ),
    Quirk(
        "a softmax whose scores are infinite",
        ("exp",),
        lambda args, result: jnp.isinf(args[0]),
        permits=_either_is_not_finite,
        opsets=range(23, 27),
        raised_only=True,
        beside="dot_general",
    ),
    Quirk(
        "a softmax whose scores are infinite",
        ("sub",),
        _row_with_infinity,
        permits=lambda want, have: (want != want) & (have == 0),
        opsets=range(23, 27),
        raised_only=True,
        beside="dot_general",
    ),
    Quirk(
        "a softmax whose scores are infinite",
        ("exp",),
        _infinite,
        permits=_only_model_is_nan,
        raised_only=True,
        beside="reduce_sum",
    ),
]

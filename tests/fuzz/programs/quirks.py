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

from fuzz.programs import places


@dataclasses.dataclass(frozen=True)
class Quirk:
    """Primitives whose results differ where `where(operands, result)` is true.

    With `beyond`, they differ where those of `beyond(operands)` are infinite; with `vanishes`,
    where they are 0 and those of larger numbers are not; with `instead`, they are those of
    other operands; with `noise`, they are off as it has them, upwards and downwards; with
    `of_f32(results, wide)`, they are what it makes of the product of operands in f32. Of elements
    that change, those are excused that `permits(want, have)`; with `among`, those that lie between
    the results of such runs; with `decides`, those that are the result of such a run, in which the
    places are not finite or as `of_f32` has them; with `spreads`, all of a result that has some.
    """

    name: str
    primitives: tuple[str, ...]
    where: Callable[[Sequence[Any], Any], Any] = lambda operands, result: False
    beyond: Callable[[Any], Any] | None = None
    vanishes: bool = False
    instead: Callable[[Any], Any] | None = None
    noise: Callable[[Sequence[Any], Any, Any], Any] | None = None
    of_f32: Callable[[Any, Any], Any] | None = None
    permits: Callable[[np.ndarray, np.ndarray], Any] = lambda want, have: True
    among: bool = False
    decides: bool = False
    spreads: bool = False
    opsets: range = range(27)
    targets: tuple[str, ...] = ("onnxruntime", "onnx")
    raised_only: bool = False
    only: Callable[[Mapping[str, Any]], bool] = lambda params: True  # equations with these
    spelled: str = ""  # only in programs with this text
    beside: str = ""  # only in programs with this primitive, too


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
        places.nan_before,
    ),
    *(
        Quirk(
            IGNORES_NAN,
            primitives,
            instead=places.nan_as(number),
        )
        for primitives, number in ((_MAXIMA, -np.inf), (_MINIMA, np.inf))
    ),
    Quirk("MaxPool gives the largest number for infinity", _WINDOWS, places.infinite),
    Quirk("Where gives 0 for -0", ("select_n", "gather"), places.negative_zero),
    Quirk(
        "XLA takes log(x ** y) for y log |x|",
        ("log",),
        lambda args, result: jnp.isnan(args[0]),
        beside="pow",
    ),
    Quirk(
        "the sign of a zero",
        ("max", "min", "add", "reduce_window", *_MAXIMA, *_MINIMA, *_SUMS),
        noise=places.sign_of_zero,
    ),
    Quirk(
        "top_k takes 0 and -0 for equal and NaN for positive",
        ("top_k",),
        instead=places.one_zero_and_nan,
        opsets=range(26),
    ),
    Quirk(
        "Resize does not spread NaN and infinity along a whole axis",
        ("dot_general",),
        places.image_is_not_finite,
        permits=places.either_is_not_finite,
        spelled="image.resize",
    ),
    Quirk(
        "Conv multiplies padding with a kernel that is not finite",
        ("conv_general_dilated",),
        places.kernel_is_not_finite,
        permits=places.only_model_is_nan,
    ),
    Quirk(
        "XLA multiplies the numbers of other groups with 0",
        ("conv_general_dilated",),
        places.nan_before,
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
            ("sub", places.row_of_lowest),
            ("add", places.bias_of_lowest),
            ("div", places.divides_by_zero),  # by the sum of a softmax without its maximum
        )
    ),
    Quirk(
        "Attention adds its masks, and takes factors of scores into its operands",
        ("select_n",),
        places.masked_score_as_large,
        raised_only=True,
        beside="dot_general",
    ),
    Quirk(
        "Attention replaces a score that is masked, where JAX adds the mask",
        ("add", "sub"),
        places.added_mask,
        permits=lambda want, have: (want != want) | (want == 0),  # NaN, or what guards make of it
        raised_only=True,
        beside="select_n",
    ),
    Quirk(
        "Attention keeps a score that is NaN, where weights that are NaN become 0",
        ("select_n",),
        places.nan_is_replaced,
        permits=places.only_model_is_nan,
        raised_only=True,
        beside="dot_general",
    ),
    Quirk(
        "Attention adds its masks, and takes factors of scores into its operands",
        ("div",),
        places.divides_by_zero,
        permits=places.only_model_is_nan,
        raised_only=True,
        beside="dot_general",
    ),
    Quirk(
        "a sum or product in another order overflows on its way",
        (*_SUMS, *_PRODUCTS),
        beyond=places.size,
        permits=places.model_overflows_on_its_way,
    ),
    Quirk(
        "a sum or product in another order overflows on its way",
        (*_SUMS, *_PRODUCTS),
        beyond=places.size,
        permits=places.jax_overflows,
        spelled="nan_to_num",  # which gives other numbers in 64 bits
    ),
    Quirk(
        "a sum or product in another order overflows on its way",
        (*_SUMS, *_PRODUCTS),
        beyond=places.size,
        decides=True,  # what a comparison reads
    ),
    Quirk(
        "a sum or product in another order overflows on its way",
        ("reduce_sum",),  # of a norm, whose squares overflow in 32 bits and not in 64
        beyond=places.size,
        permits=places.only_jax_overflows,
        among=True,
        raised_only=True,
    ),
    *(
        Quirk(
            "Attention does not round scores to 16 bits, where they overflow",
            ("dot_general",),
            of_f32=functools.partial(places.scores_of_f32, axis),
            permits=places.only_jax_overflows,
            decides=True,
            raised_only=True,
            beside="exp",
        )
        for axis in (-1, -2)
    ),
    *(
        Quirk(
            "ONNX Runtime multiplies a product with the scales of its operands",
            ("dot_general",),
            beyond=places.size_without_scale,
            permits=places.model_overflows,
            beside=scale,
        )
        for scale in ("mul", "div")
    ),
    *(
        Quirk(
            "ONNX Runtime multiplies a product with the scales of its operands",
            ("dot_general",),
            noise=places.digits_of_f32,
            targets=("onnx",),  # others keep scales of 64 bits apart
            beside=scale,
        )
        for scale in ("mul", "div")
    ),
    *(
        Quirk(
            "a norm multiplies its scale first",
            ("mul",),
            places.huge_factor,
            permits=places.model_overflows,
            raised_only=True,
            beside=root,
        )
        for root in ("sqrt", "rsqrt")
    ),
    *(
        Quirk(
            "a variance of one pass that overflows becomes one of two",
            ("sub",),
            places.infinity_less_infinity,
            permits=places.only_jax_overflows,
            among=True,
            raised_only=True,
            beside=root,
        )
        for root in ("sqrt", "rsqrt")
    ),
    Quirk(
        "a variance of one pass that overflows becomes one of two",
        ("sub",),
        places.infinity_less_infinity,
        raised_only=True,
        spelled="isnan",  # and then what a guard has in its place
    ),
    Quirk(
        "a variance of one pass that overflows becomes one of two",
        ("sub",),
        places.infinity_less_infinity,
        raised_only=True,
        beside="sort",  # which puts it among the others
    ),
    *(
        Quirk(
            "a norm rounds its mean",
            ("sub",),
            noise=places.rounded_mean,
            raised_only=True,
            beside=root,
        )
        for root in ("sqrt", "rsqrt")
    ),
    Quirk(
        "a sum along which an operand is repeated is taken of the other operand first",
        ("dot_general",),
        places.nan_of_infinities,
        permits=places.only_jax_is_nan,
    ),
    Quirk(FLUSHED, ("mul", "div", "dot_general"), vanishes=True),
    *(
        Quirk(FLUSHED, (primitive,), functools.partial(places.power_is_subnormal, base))
        for primitive, base in (("exp", np.e), ("exp2", 2.0))
    ),
    Quirk(FLUSHED, ("bitcast_convert_type",), places.makes_subnormal_number),
    Quirk(
        FLUSHED,
        ("max", "min", "add", "sub", "mul", "div"),
        places.reads_subnormal_number,
        permits=places.only_jax_overflows,
    ),
    Quirk(FLUSHED, ("eq", "ne", "lt", "le", "gt", "ge"), instead=places.subnormal_as_normal),
    Quirk("the sign of a NaN", ("bitcast_convert_type",), instead=places.positive_nan),
    Quirk("the sign of a NaN", ("bitcast_convert_type",), instead=places.negative_nan),
    Quirk("Sigmoid has the digits of 1, not of itself", ("logistic",), noise=places.digits_of_one),
    Quirk(
        "Sigmoid has the digits of 1, not of itself",
        ("div",),
        noise=places.digits_of_one_over,
        raised_only=True,
        beside="exp",
    ),
    Quirk(
        "Gelu adds 1 and erf, which cancels far to the left",
        ("erfc",),
        noise=places.digits_of_one,
        spelled="gelu",
    ),
    Quirk(
        "Elu, Celu and Selu subtract 1 from an exponential",
        ("expm1",),
        noise=places.exponential_less_one,
        raised_only=True,
        targets=("onnx",),  # others have their parts
    ),
    Quirk(
        "LogSoftmax in f64 gives numbers beside NaN",
        ("log",),
        places.nan_before,
        raised_only=True,
        targets=("onnx",),  # others have their parts
    ),
    Quirk(
        "the tanh of RNN has the digits of 1",
        ("tanh",),
        noise=places.exponential_less_one,
        raised_only=True,
        beside="scan",
    ),
    Quirk("lgamma is a difference near its zeros", ("lgamma",), noise=places.sixteen_digits_of_one),
    Quirk("Tanh has subnormal numbers on its way", ("tanh", "expm1"), noise=places.subnormal_steps),
    Quirk(
        "a softmax or softplus whose exponentials overflow in JAX",
        ("exp",),
        places.overflows,
        permits=places.only_jax_overflows_in_softmax,
        raised_only=True,
    ),
    *(
        Quirk(
            "a softmax or softplus whose exponentials overflow in JAX",
            ("exp",),
            instead=functools.partial(places.less_the_maximum, axis),
            permits=places.only_jax_overflows_in_softmax,
            raised_only=True,
            beside="convert_element_type",  # which makes a number of the quotient of infinities
        )
        for axis in (-1, -2, -3, -4)
    ),
    *(
        Quirk(
            "a softmax or softplus whose exponentials overflow in JAX",
            ("exp",),
            places.sums_to_none,
            raised_only=True,
            beside=bound,  # which makes a number of infinity
        )
        for bound in ("clamp", "max", "min")
    ),
    Quirk(
        "a softmax or softplus whose exponentials overflow in JAX",
        ("exp",),
        places.overflows,
        raised_only=True,
        beside="while",  # whose condition may read them
    ),
    Quirk(
        "a softmax or softplus whose exponentials overflow in JAX",
        ("exp",),
        places.overflows,
        spreads=True,
        raised_only=True,
        beside="sort",  # which puts them among the others
    ),
    Quirk(
        "a softmax or softplus whose exponentials overflow in JAX",
        ("exp",),
        places.overflows_in_64_bits,
        raised_only=True,
    ),
    Quirk(
        "a softmax whose scores are infinite",
        ("exp",),
        lambda args, result: jnp.isinf(args[0]),
        permits=places.either_is_not_finite,
        opsets=range(23, 27),
        raised_only=True,
        beside="dot_general",
    ),
    Quirk(
        "a softmax whose scores are infinite",
        ("sub",),
        places.row_with_infinity,
        permits=lambda want, have: (want != want) & (have == 0),
        opsets=range(23, 27),
        raised_only=True,
        beside="dot_general",
    ),
    Quirk(
        "a softmax whose scores are infinite",
        ("exp",),
        places.infinite,
        permits=places.only_model_is_nan,
        raised_only=True,
        beside="reduce_sum",
    ),
]

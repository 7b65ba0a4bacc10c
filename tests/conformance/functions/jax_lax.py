# SPDX-License-Identifier: Apache-2.0
"""Rows of jax.lax: operations and control flow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from conformance.functions.samples import (
    XA,
    XI,
    XP,
    XU,
    M,
    Row,
    X,
    above_one,
    by,
    of_integers,
    positive,
    real,
    same,
    well_conditioned,
    whole,
)


def rows() -> Iterator[Row]:
    yield from _elements()
    yield from _integers()
    yield from _sorts_and_sums()
    yield from _slices()
    yield from _windows()
    yield from _products()
    yield from _control()
    yield from _collectives()


def _elements() -> Iterator[Row]:
    yield from same(
        lax,
        "abs neg sign floor ceil round exp exp2 expm1 sin cos tan sinh cosh tanh asinh atan cbrt "
        "square erf erfc bessel_i0e bessel_i1e logistic is_finite optimization_barrier",
    )
    yield from same(lax, "log log1p sqrt rsqrt reciprocal lgamma digamma", XP)
    yield from same(lax, "erf_inv asin acos atanh", XI)
    yield from same(lax, "acosh", XA)
    yield from same(lax, "add sub mul div rem max min atan2 eq ne ge gt le lt nextafter", X, X)
    yield from same(lax, "pow igamma igammac", XP, XP)
    yield from same(lax, "igamma_grad_a random_gamma_grad", XP, XP)
    yield from same(lax, "zeta", above_one(3, 4), XP)
    yield "polygamma", lambda x: lax.polygamma(jnp.ones_like(x), x), (XP,)
    yield "betainc", lax.betainc, (XP, XP, XU)
    yield "integer_pow", lambda x: lax.integer_pow(x, 3), (X,)
    yield "clamp", lambda x: lax.clamp(-0.7, x, 0.9), (X,)
    yield "complex", lambda x, y: lax.complex(x, y) ** 2, (X, X)
    yield from by(lax, "real imag conj", lambda f, x: f(lax.complex(x, jnp.sin(x)) ** 2), X)
    yield "select", lambda x, y: lax.select(x > y, x, y), (X, X)
    yield "select_n", lambda x, y: lax.select_n(x > y, x, y), (X, X)
    yield "reduce_precision", lambda x: lax.reduce_precision(x, 8, 7), (X,)
    yield "stop_gradient", lambda x: x * lax.stop_gradient(x), (X,)
    yield "convert_element_type", lambda x: lax.convert_element_type(x, jnp.float16), (X,)
    yield "bitcast_convert_type", lambda x: lax.bitcast_convert_type(x, jnp.int32), (X,)
    yield "full_like", lambda x: lax.full_like(x, 2.0) * x, (X,)


def _integers() -> Iterator[Row]:
    yield from of_integers(
        lax,
        "bitwise_and bitwise_or bitwise_xor shift_left shift_right_arithmetic shift_right_logical "
        "mulhi",
        2,
    )
    yield from of_integers(lax, "bitwise_not clz population_count", 1)


def _sorts_and_sums() -> Iterator[Row]:
    yield from by(lax, "cumsum cumprod cummax cummin cumlogsumexp", lambda f, x: f(x, 1), X)
    yield "cumsum (reverse)", lambda x: lax.cumsum(x, 1, reverse=True), (X,)
    yield from by(lax, "reduce_sum reduce_prod reduce_max reduce_min", lambda f, x: f(x, (1,)), X)
    yield from by(lax, "reduce_and reduce_or reduce_xor", lambda f, x: f(x > 0, (1,)), X)
    yield "reduce", lambda x: lax.reduce(x, 0.0, lax.add, (1,)), (X,)
    yield "reduce (no monoid)", lambda x: lax.reduce(x, 1.0, lambda a, b: a * b + 1, (1,)), (X,)
    yield from by(lax, "argmax argmin", lambda f, x: f(x, 1, jnp.int32), X)
    yield "sort", lambda x: lax.sort(x, dimension=1), (X,)
    yield "sort (operands)", lambda x, y: lax.sort((x, y), num_keys=1), (X, X)
    yield "sort_key_val", lax.sort_key_val, (X, X)
    yield "top_k", lambda x: lax.top_k(x, 2)[0], (X,)
    yield from by(lax, "approx_max_k approx_min_k", lambda f, x: f(x, 2)[0], X)


def _slices() -> Iterator[Row]:
    yield "slice", lambda x: lax.slice(x, (1, 0), (3, 4), (1, 2)), (X,)
    yield "slice_in_dim", lambda x: lax.slice_in_dim(x, 1, 3), (X,)
    yield "index_in_dim", lambda x: lax.index_in_dim(x, 1), (X,)
    yield "index_take", lambda x: lax.index_take(x, (jnp.array([1, 0]),), (0,)), (X,)
    yield "dynamic_slice", lambda x: lax.dynamic_slice(x, _place(x), (2, 2)), (X,)
    yield (
        "dynamic_update_slice",
        lambda x, y: lax.dynamic_update_slice(x, y, _place(x)),
        (X, real(2, 2)),
    )
    yield "dynamic_slice_in_dim", lambda x: lax.dynamic_slice_in_dim(x, _place(x)[0], 2), (X,)
    yield "dynamic_index_in_dim", lambda x: lax.dynamic_index_in_dim(x, _place(x)[0]), (X,)
    yield from by(
        lax,
        "dynamic_update_slice_in_dim dynamic_update_index_in_dim",
        lambda f, x, y: f(x, y, _place(x)[0], 0),
        *(X, real(1, 4)),
    )
    yield "gather", _gather, (X,)
    yield from by(
        lax,
        "scatter scatter_add scatter_sub scatter_mul scatter_max",
        lambda f, x, y: _scatter(f, x, y),
        X,
        real(2, 4),
    )
    yield "scatter_min", lambda x, y: _scatter(lax.scatter_min, x, y), (X, real(2, 4))
    yield "scatter_apply", _scatter_apply, (X,)
    yield from _shapes()


def _place(x: Any) -> tuple[Any, Any]:
    """Where a slice begins, as a value that is known when the model runs."""
    return jnp.argmax(x.sum(1)), 1


def _gather(x: Any) -> Any:
    numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    return lax.gather(x, jnp.array([[2], [0], [2]]), numbers, (1, 4))


_ROWS = lax.ScatterDimensionNumbers((1,), (0,), (0,))


def _scatter(function: Any, x: Any, y: Any) -> Any:
    return function(x, jnp.array([[2], [0]]), y, _ROWS)


def _scatter_apply(x: Any) -> Any:
    return lax.scatter_apply(x, jnp.array([[2], [0]]), jnp.sin, _ROWS, update_shape=(2, 4))


def _shapes() -> Iterator[Row]:
    yield "broadcast", lambda x: lax.broadcast(x, (2,)), (X,)
    yield "broadcast_in_dim", lambda x: lax.broadcast_in_dim(x, (3, 2, 4), (0, 2)), (X,)
    yield "broadcast_to_rank", lambda x: lax.broadcast_to_rank(x, 3), (X,)
    yield "broadcast_like", lambda x, y: lax.broadcast_like(y, x), (X, real(4))
    yield "collapse", lambda x: lax.collapse(x, 0), (X,)
    yield "concatenate", lambda x, y: lax.concatenate([x, y], 1), (X, X)
    yield "expand_dims", lambda x: lax.expand_dims(x, (1,)), (X,)
    yield "pad", lambda x: lax.pad(x, 0.5, ((1, 0, 1), (0, -1, 0))), (X,)
    yield "reshape", lambda x: lax.reshape(x, (2, 6), (1, 0)), (X,)
    yield "rev", lambda x: lax.rev(x, (1,)), (X,)
    yield "split", lambda x: lax.split(x, (1, 3), 1), (X,)
    yield "squeeze", lambda x: lax.squeeze(x[None], (0,)), (X,)
    yield "stack", lambda x, y: lax.stack([x, y], 1), (X, X)
    yield "tile", lambda x: lax.tile(x, (2, 1)), (X,)
    yield "transpose", lambda x: lax.transpose(x, (1, 0)), (X,)
    yield "unstack", lambda x: lax.unstack(x, 1), (X,)


def _windows() -> Iterator[Row]:
    image, kernel = real(1, 5, 5, 2), real(3, 3, 2, 3)
    numbers = ("NHWC", "HWIO", "NHWC")
    for suffix, options in (
        ("", {}),
        (" (dilated)", {"rhs_dilation": (2, 2)}),
        (" (strided)", {"window_strides": (2, 2)}),
    ):
        yield (
            f"conv_general_dilated{suffix}",
            lambda x, w, o=options: lax.conv_general_dilated(
                x, w, **{"window_strides": (1, 1), **o}, padding="SAME", dimension_numbers=numbers
            ),
            (image, kernel),
        )
    yield (
        "conv_general_dilated (groups)",
        lambda x, w: lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=numbers, feature_group_count=2
        ),
        (image, real(3, 3, 1, 4)),
    )
    yield "conv", lambda x, w: lax.conv(x, w, (1, 1), "SAME"), (real(1, 2, 4, 4), real(3, 2, 3, 3))
    yield (
        "conv_transpose",
        lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=numbers),
        (image, kernel),
    )
    yield (
        "conv_with_general_padding",
        lambda x, w: lax.conv_with_general_padding(x, w, (1,), ((2, 1),), (2,), (1,)),
        (real(1, 2, 4), real(3, 2, 3)),
    )
    yield (
        "conv_general_dilated_patches",
        lambda x: lax.conv_general_dilated_patches(x, (2,), (1,), "SAME"),
        (real(1, 2, 4),),
    )
    yield (
        "conv_general_dilated_local",
        lambda x, w: lax.conv_general_dilated_local(x, w, (1,), "VALID", (2,)),
        (real(1, 2, 4), real(3, 4, 3)),
    )
    for name, first, function in (
        ("add", 0.0, lax.add),
        ("max", -jnp.inf, lax.max),
        ("min", jnp.inf, lax.min),
        ("mul", 1.0, lax.mul),
    ):
        yield (
            f"reduce_window ({name})",
            lambda x, i=first, f=function: lax.reduce_window(x, i, f, (2, 2), (1, 2), "VALID"),
            (M,),
        )


def _products() -> Iterator[Row]:
    yield from same(lax, "dot", X, real(4, 2))
    yield from same(lax, "batch_matmul", real(2, 3, 4), real(2, 4, 2))
    yield (
        "dot_general",
        lambda x, y: lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))),
        (real(2, 3, 4), real(2, 4, 2)),
    )
    yield (
        "ragged_dot",
        lambda x, w: lax.ragged_dot(x, w, jnp.array([2, 1])),
        (X, real(2, 4, 3)),
    )
    yield "fft", lambda x: lax.fft(x.astype(jnp.complex64), "FFT", (4,)), (X,)
    yield (
        "custom_linear_solve",
        lambda a, b: lax.custom_linear_solve(
            lambda v: well_conditioned(a) @ v,
            b,
            lambda _, v: jnp.linalg.solve(well_conditioned(a), v),
            symmetric=True,
        ),
        (M, real(4)),
    )
    yield (
        "custom_root",
        lambda x: lax.custom_root(
            lambda y: y**3 - x,
            jnp.ones_like(x),
            lambda f, y: lax.fori_loop(0, 20, lambda _, v: v - f(v) / (3 * v**2), y),
            lambda g, y: y / g(jnp.ones_like(y)),
        ),
        (positive(4),),
    )


def _control() -> Iterator[Row]:
    yield "associative_scan", lambda x: lax.associative_scan(jnp.multiply, x), (X,)
    yield "map", lambda x: lax.map(lambda row: jnp.sin(row).sum(), x), (X,)
    yield "cond", lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), (X,)
    branches = [jnp.sin, jnp.cos, jnp.tanh]
    yield "switch", lambda x: lax.switch(whole(x.sum()), branches, x), (X,)
    yield (
        "scan",
        lambda x: lax.scan(lambda c, row: (jnp.tanh(c + row), c * row), x[0], x),
        (X,),
    )
    yield (
        "scan (reverse)",
        lambda x: lax.scan(lambda c, row: (c * row, jnp.sin(c)), x[0], x, reverse=True),
        (X,),
    )
    yield "fori_loop", lambda x: lax.fori_loop(0, 3, lambda i, v: jnp.sin(v) + i, x), (X,)
    yield (
        "while_loop",
        lambda x: lax.while_loop(lambda v: v.sum() < 30, lambda v: v + 1.5, x),
        (X,),
    )
    yield "composite", lambda x: lax.composite(jnp.sin, "my.sine")(x), (X,)
    yield (
        "platform_dependent",
        lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.sin),
        (X,),
    )


def _collectives() -> Iterator[Row]:
    """Over the axis of a vmap inside of the function."""

    def mapped(fn: Any) -> Any:
        return jax.vmap(lambda row: fn(row) * row, axis_name="i")

    sums = "psum pmean pmax pmin"
    yield from by(lax, sums, lambda f, x: mapped(lambda row: f(row, "i"))(x), X)
    yield "all_gather", mapped(lambda row: lax.all_gather(row, "i").sum(0)), (X,)
    yield "ppermute", mapped(lambda row: lax.ppermute(row, "i", [(0, 1), (1, 2), (2, 0)])), (X,)
    yield "pshuffle", mapped(lambda row: lax.pshuffle(row, "i", [1, 2, 0])), (X,)
    yield "axis_index", mapped(lambda row: lax.axis_index("i").astype(row.dtype)), (X,)
    yield "all_to_all", mapped(lambda row: lax.all_to_all(row, "i", 0, 0)), (M,)
    yield "pswapaxes", mapped(lambda row: lax.pswapaxes(row, "i", 0)), (M,)
    yield "psum_scatter", mapped(lambda row: lax.psum_scatter(row, "i")), (M,)

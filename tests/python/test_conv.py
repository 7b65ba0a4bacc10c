# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pooling."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from support.cases import case, check, f32, f64, i8, i32, parity

NHWC = ("NHWC", "HWIO", "NHWC")
NCHW = ("NCHW", "OIHW", "NCHW")


def conv_1d(x, w):
    return lax.conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))


def conv(name, inputs, also=(), **parameters):
    parameters = {
        "window_strides": (1, 1),
        "padding": "VALID",
        "dimension_numbers": NHWC,
        **parameters,
    }
    return case(
        f"conv {name}",
        lambda x, w: lax.conv_general_dilated(x, w, **parameters),
        inputs,
        also,
        tolerance="sum",
    )


CONVOLUTIONS = [
    conv(
        "NHWC",
        [f32(2, 8, 7, 3), f32(3, 3, 3, 4)],
        also=[[f32("B", 8, 7, 3), f32(3, 3, 3, 4)]],
    ),
    conv("NCHW", [f32(2, 3, 8, 7), f32(4, 3, 3, 3)], dimension_numbers=NCHW),
    conv(
        "mixed layout",
        [f32(2, 3, 8, 7), f32(3, 3, 3, 4)],
        dimension_numbers=("NCHW", "HWIO", "NHWC"),
    ),
    conv("strides", [f32("B", 8, 9, 3), f32(2, 3, 3, 4)], window_strides=(2, 3)),
    conv("SAME", [f32("B", 7, 8, 3), f32(3, 2, 3, 4)], window_strides=(2, 2), padding="SAME"),
    conv("uneven padding", [f32(1, 7, 8, 3), f32(3, 2, 3, 4)], padding=((0, 2), (1, 0))),
    conv("negative padding", [f32(1, 7, 8, 3), f32(3, 2, 3, 4)], padding=((-1, 2), (1, -1))),
    conv("kernel dilation", [f32(1, 9, 9, 3), f32(3, 2, 3, 4)], rhs_dilation=(2, 3)),
    conv(
        "input dilation",
        [f32(1, 4, 4, 3), f32(3, 3, 3, 4)],
        lhs_dilation=(2, 3),
        padding=((1, 1), (2, 2)),
    ),
    conv("groups", [f32("B", 6, 6, 4), f32(3, 3, 2, 6)], feature_group_count=2),
    conv("depthwise", [f32(2, 6, 6, 4), f32(3, 3, 1, 8)], feature_group_count=4),
    conv("patches", [f32("B", 8, 8, 3), f32(4, 4, 3, 5)], window_strides=(4, 4)),
    conv("symbolic image", [f32("B", "H + 2", "W + 2", 3), f32(3, 3, 3, 4)]),
    conv(
        "1d",
        [f32(2, 9, 3), f32(3, 3, 4)],
        window_strides=(2,),
        dimension_numbers=("NWC", "WIO", "NWC"),
    ),
    conv(
        "3d",
        [f32(1, 5, 6, 7, 2), f32(2, 3, 2, 2, 3)],
        window_strides=(1, 2, 1),
        dimension_numbers=("NDHWC", "DHWIO", "NDHWC"),
    ),
    case(
        "conv_transpose",
        lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=NHWC),
        [f32(1, 4, 5, 3), f32(3, 3, 3, 2)],
        tolerance="sum",
    ),
    # Without a kernel of ONNX Runtime a convolution is a product, which pads for itself.
    *(
        conv(
            f"SAME of {name} along a symbolic axis, strides {strides}",
            [dtype(1, "N", 8, 2), dtype(3, 2, 2, 3)],
            also=[[dtype(1, "N", "M", 2), dtype(2, 3, 2, 3)]],
            window_strides=strides,
            padding="SAME",
        )
        for name, dtype in (("i8", i8), ("f64", f64))
        for strides in ((1, 1), (2, 2), (2, 1), (1, 3))
    ),
    # Dims of one element that lax.pad made are not the dims that it was given.
    case(
        "conv of a cropped batch",
        lambda x, w: conv_1d(lax.pad(x, 0.0, ((0, -1, 0), (1, 1, 0), (0, 0, 0))), w),
        [f32(2, 5, 3), f32(3, 3, 4)],
        tolerance="sum",
    ),
    case(
        "conv of a cropped image and no batch",
        lambda x, w: conv_1d(lax.pad(x, 0.0, ((0, 0, 0), (0, -2, 0), (0, 0, 0))), w),
        [f32(1, 3, 2), f32(1, 2, 1)],
        tolerance="sum",
    ),
    case(
        "conv of a batch that was moved away",
        lambda x, w: conv_1d(lax.pad(x, 0.0, ((1, -1, 0), (0, 0, 0), (0, 0, 0))), w),
        [f32(1, 5, 3), f32(3, 3, 4)],
        tolerance="sum",
    ),
    case(
        "gradient of a convolution",
        jax.grad(
            lambda x, w: lax.conv_general_dilated(
                x, w, (2, 2), "SAME", dimension_numbers=NHWC
            ).sum(),
            argnums=(0, 1),
        ),
        [f32(2, 6, 6, 3), f32(3, 3, 3, 4)],
        tolerance="sum",
    ),
]


def window(x, initial, op, size, strides, padding):
    return lax.reduce_window(x, initial, op, (1, *size, 1), (1, *strides, 1), padding)


CONVOLUTIONS += [
    case(
        "batch groups",
        lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "VALID", batch_group_count=2),
        [f32(4, 3, 6, 5), f32(6, 3, 2, 3)],
        tolerance="sum",
    ),
    case(
        "gradient by the kernel of grouped features",
        lambda x, w: jax.grad(
            lambda v: lax.conv_general_dilated(x, v, (2, 1), "SAME", feature_group_count=2).sum()
        )(w),
        [f32(2, 4, 6, 5), f32(6, 2, 3, 3)],
        tolerance="sum",
    ),
    case(
        "narrow integers wrap",
        lambda x, w: lax.conv_general_dilated(x, w, (1, 2), "SAME"),
        [i8(1, 2, 5, 6, lo=-99, hi=99), i8(3, 2, 3, 2, lo=-99, hi=99)],
    ),
    case(
        "a kernel larger than the image",
        lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "VALID"),
        [f32(2, 3, 4, 5), f32(3, 3, 5, 2)],
    ),
]

POOLING = [
    case(
        "max_pool",
        lambda x: window(x, -jnp.inf, lax.max, (2, 3), (2, 1), "VALID"),
        [f32(2, 8, 7, 3)],
        also=[[f32("B", 8, 7, 3)]],
    ),
    case(
        "max_pool SAME",
        lambda x: window(x, -jnp.inf, lax.max, (3, 3), (2, 2), "SAME"),
        [f32("B", 7, 8, 3)],
    ),
    case(
        # ONNX Runtime would take the zeros for padding of the window.
        "max_pool SAME of padded numbers below zero",
        lambda x: window(
            jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0))), -jnp.inf, lax.max, (3, 3), (2, 2), "SAME"
        ),
        [f32(2, 6, 5, 3, lo=-3, hi=-1)],
    ),
    case(
        "max_pool of integers",
        lambda x: window(x, jnp.iinfo(jnp.int32).min, lax.max, (2, 2), (1, 1), "VALID"),
        [i32(1, 4, 4, 2)],
    ),
    case(
        "min_pool",
        lambda x: window(x, jnp.inf, lax.min, (2, 2), (1, 2), "VALID"),
        [f32(2, 5, 6, 3)],
    ),
    case(
        "sum_pool",
        lambda x: window(x, 0.0, lax.add, (2, 3), (2, 1), "VALID"),
        [f32("B", 8, 7, 3)],
        tolerance="sum",
    ),
    case(
        "avg_pool SAME",
        lambda x: window(x, 0.0, lax.add, (3, 3), (2, 2), "SAME") / 9,
        [f32(2, 7, 8, 3)],
        tolerance="sum",
    ),
    case("global average", lambda x: x.mean((1, 2)), [f32("B", 4, 4, 3)], tolerance="sum"),
    case(
        "max_pool with dilated window",
        lambda x: lax.reduce_window(
            x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 1, 1, 1), "VALID", window_dilation=(1, 2, 3, 1)
        ),
        [f32(1, 6, 7, 2)],
    ),
    case(
        "max_pool over the leading axes",
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 3), (1, 2), ((1, 0), (0, 1))),
        [f32(5, 6)],
    ),
]


@parity(CONVOLUTIONS + POOLING)
def test_numbers_are_jax_s(case, capfd):
    check(case, capfd)

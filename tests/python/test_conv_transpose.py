# SPDX-License-Identifier: Apache-2.0
"""Convolutions over dilated inputs: which become ConvTranspose, and the numbers of all.

raising/idioms.py has the layers of the libraries.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxport
from support.cases import bf16, case, check, f16, f32, f64, i8, parity, structs

NHWC = ("NHWC", "HWIO", "NHWC")
NCHW = ("NCHW", "OIHW", "NCHW")
NWC = ("NWC", "WIO", "NWC")
NDHWC = ("NDHWC", "DHWIO", "NDHWC")
IMAGE = [f32(2, 6, 5, 4)]
LAYER = "Transpose ConvTranspose Transpose"
ALL_OPSETS = range(16, 27)


def wave(*shape):
    return np.sin(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape)


def row(name, fn, inputs, ops, also=(), opsets=(16, 23), **options):
    """The cases of `fn`, and the nodes of the first one, or the one that it must have or not."""
    return case(name, fn, inputs, also, tolerance="sum", opsets=opsets, **options), ops


def dilated(
    name,
    kernel,
    ops,
    also=(),
    inputs=IMAGE,
    numbers=NHWC,
    opsets=(16, 23),
    sizes=(1, 7),
    **parameters,
):
    """A convolution with a constant kernel, with a bias."""
    rank = len(kernel) - 2
    parameters = {"window_strides": (1,) * rank, "padding": ((1, 1),) * rank, **parameters}
    features = kernel[numbers[1].index("O")]
    at = [1] * (rank + 2)
    at[numbers[2].index("C")] = features

    def fn(x):
        w = jnp.asarray(wave(*kernel), x.dtype)
        y = lax.conv_general_dilated(x, w, dimension_numbers=numbers, **parameters)
        return y + jnp.asarray(wave(features).reshape(at), y.dtype)

    return row(name, fn, inputs, ops, also, opsets, sizes=sizes)


FIRES = [
    dilated(
        "2-D",
        (3, 2, 4, 3),
        LAYER,
        lhs_dilation=(2, 3),
        also=[[f32("B", "H", "W", 4)], [f16(2, 6, 5, 4)], [bf16(2, 6, 5, 4)], [f32(0, 6, 5, 4)]],
        opsets=ALL_OPSETS,
    ),
    dilated(
        "NCHW",
        (3, 6, 2, 2),
        "ConvTranspose",
        numbers=NCHW,
        inputs=[f32(2, 6, 5, 4)],
        lhs_dilation=(2, 2),
    ),
    dilated("1-D", (4, 3, 5), LAYER, numbers=NWC, inputs=[f32(2, 7, 3)], lhs_dilation=(2,)),
    dilated(
        "3-D",
        (2, 3, 1, 3, 5),
        LAYER,
        numbers=NDHWC,
        inputs=[f32(1, 3, 4, 5, 3)],
        lhs_dilation=(2, 1, 3),
        padding=((1, 0), (2, 1), (0, 0)),
    ),
    dilated("groups", (3, 3, 2, 6), LAYER, lhs_dilation=(2, 2), feature_group_count=2),
    dilated("depthwise", (3, 3, 1, 4), LAYER, lhs_dilation=(2, 2), feature_group_count=4),
    dilated("depthwise, pairs", (3, 3, 1, 8), LAYER, lhs_dilation=(2, 2), feature_group_count=4),
    dilated("dilated kernel", (3, 2, 4, 3), LAYER, lhs_dilation=(2, 2), rhs_dilation=(2, 3)),
    dilated(
        "a kernel of one pixel", (1, 1, 4, 3), LAYER, lhs_dilation=(2, 2), padding=((0, 0), (0, 1))
    ),
    dilated("uneven padding", (4, 3, 4, 3), LAYER, lhs_dilation=(2, 2), padding=((0, 3), (2, 1))),
    dilated("cropped", (3, 3, 4, 3), LAYER, lhs_dilation=(2, 2), padding=((-3, 1), (0, -4))),
    dilated("output padding", (3, 3, 4, 3), LAYER, lhs_dilation=(2, 2), padding=((2, 3), (1, 2))),
    # Where the kernel reaches no element the result is the bias.
    dilated(
        "padding beyond the reach of the kernel",
        (3, 2, 4, 3),
        "Transpose Pad ConvTranspose Transpose",
        lhs_dilation=(2, 3),
        padding=((5, 2), (1, 9)),
    ),
]

FLIPPED_INPUTS = [f32(1, 4, 3, 3), f32(4, 3, 3)]
FIRES += [
    row(
        "groups of a kernel that was turned around as another array",
        lambda x, k: lax.conv_general_dilated(
            x,
            jnp.flip(k, (1, 2)).reshape(2, 2, 3, 3),
            (1, 1),
            [(2, 2), (2, 2)],
            lhs_dilation=(2, 2),
            feature_group_count=2,
        ),
        FLIPPED_INPUTS,
        "ConvTranspose",
    ),
]

KERNEL_INPUTS = [f32(2, 6, 5, 4), f32(3, 3, 4, 3)]
FIRES += [
    row(
        "a kernel that is an input",
        lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"),
        KERNEL_INPUTS,
        "Transpose Slice Transpose ConvTranspose Transpose",
    ),
    row(
        "a kernel that is an input, reversed along one axis after the other",
        lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME", transpose_kernel=True),
        [f32(2, 6, 5, 4), f32(3, 3, 3, 4)],
        "Transpose Transpose ConvTranspose Transpose",
    ),
    row(
        "a kernel that is an input, reversed along one axis only",
        lambda x, w: lax.conv_transpose(x, w[::-1], (2, 2), "SAME"),
        KERNEL_INPUTS,
        "ConvTranspose",
    ),
    row(
        "a kernel that is an input, reversed along its features too",
        lambda x, w: lax.conv_transpose(x, w[::-1, ::-1, ::-1], (2, 2), "SAME"),
        KERNEL_INPUTS,
        "ConvTranspose",
    ),
    row(
        "gradient of a strided convolution",
        lambda y: jax.vjp(
            lambda x: lax.conv_general_dilated(
                x, wave(3, 3, 3, 4), (2, 2), "SAME", dimension_numbers=NHWC
            ),
            np.zeros((2, 12, 10, 3), np.float32),
        )[1](y)[0],
        IMAGE,
        LAYER,
    ),
    row(
        "gradient of a strided convolution in groups",
        lambda y: jax.vjp(
            lambda x: lax.conv_general_dilated(
                x, wave(3, 3, 3, 4), (2, 2), "VALID", dimension_numbers=NHWC, feature_group_count=2
            ),
            np.zeros((2, 13, 12, 6), np.float32),
        )[1](y)[0],
        IMAGE,
        LAYER,
    ),
    row(
        "vmap of kernels",
        jax.vmap(lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME")),
        [f32(3, 2, 6, 5, 4), f32(3, 3, 2, 4, 3)],
        "ConvTranspose",
    ),
]
# What ConvTranspose has no attribute, no kernel or no use for.
STAYS = [
    dilated(
        "strides beside the dilation",
        (3, 3, 4, 3),
        "Conv",
        lhs_dilation=(2, 2),
        window_strides=(1, 2),
    ),
    dilated("no dilation", (3, 3, 4, 3), "Conv", lhs_dilation=(1, 1)),
    dilated("batch groups", (3, 3, 4, 4), "Conv", lhs_dilation=(2, 2), batch_group_count=2),
    dilated("f64", (3, 3, 4, 3), "MatMul", inputs=[f64(2, 6, 5, 4)], lhs_dilation=(2, 2)),
    dilated("integers", (3, 3, 4, 3), "MatMul", inputs=[i8(2, 6, 5, 4)], lhs_dilation=(2, 2)),
    dilated(
        "a size that may be 0",
        (4, 3, 4, 3),
        "Conv",
        inputs=[f32(2, "H + 1", 5, 4)],
        sizes=(2, 7),
        lhs_dilation=(2, 2),
        padding=((0, 0), (1, 1)),
    ),
]


def cases(rows):
    return [row for row, _ in rows]


@parity(cases(FIRES) + cases(STAYS))
def test_numbers_are_jax_s(case, capfd):
    check(case, capfd)


def op_types(case, **options):
    double = case.needs_double_precision
    model = jaxport.to_onnx(
        case.fn, structs(case.inputs), enable_double_precision=double, **options
    )
    return [node.op_type for node in model.graph.node]


@pytest.mark.parametrize(("cases", "ops"), FIRES, ids=[row[0].name for row, _ in FIRES])
def test_becomes_conv_transpose(cases, ops):
    have = op_types(cases[0])
    assert ops in (" ".join(have), "ConvTranspose")
    assert "Conv" not in have
    assert have.count("ConvTranspose") == 1


@pytest.mark.parametrize(("cases", "ops"), STAYS, ids=[row[0].name for row, _ in STAYS])
def test_stays_a_convolution(cases, ops):
    have = op_types(cases[0])
    assert ops in have
    assert "ConvTranspose" not in have


def test_the_specification_has_it_in_f64():
    f64_case = next(row[0] for row, _ in STAYS if row[0].name == "f64")
    assert "ConvTranspose" in op_types(f64_case, target="onnx")


def test_nan_and_infinities_reach_their_neighbours_only():
    w = np.ones((2, 2, 1, 1), np.float32)
    x = np.zeros((1, 3, 3, 1), np.float32)
    x[0, 0, 0], x[0, 2, 2] = np.nan, np.inf

    def fn(x):
        return lax.conv_transpose(x, w, (2, 2), "VALID")

    assert jaxport.allclose(fn, jaxport.to_onnx(fn, [x.shape]), [x])[0]

# SPDX-License-Identifier: Apache-2.0
"""Small idioms: numbers in other dtypes, sizes and opsets, and the nodes they become, in order.

raising/ has more spellings.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx
from jax import lax

import jaxport
from support.cases import (
    Case,
    bf16,
    boolean,
    case,
    check,
    f16,
    f32,
    f64,
    i8,
    i32,
    i64,
    parity,
    structs,
    u8,
    u32,
    u64,
)

X = [f32(4, 8)]
OTHER_FLOATS = [[f32("B", 8)], [bf16(4, 8)], [f16(4, 8)], [f64(4, 8)]]


def idiom(name, fn, inputs, ops, also=(), *, tolerance="function", opsets=(17, 23)):
    """A row: the cases of `fn`, and the nodes of the first one at the newest opset."""
    return case(name, fn, inputs, also, tolerance=tolerance, opsets=opsets), ops


def activation(name, fn, ops, also=OTHER_FLOATS, **options):
    return idiom(name, fn, X, ops, also, **options)


def linen_prelu():
    layer = linen.PReLU()
    variables = layer.init(jax.random.key(0), jnp.ones((4, 8)))
    return lambda x: layer.apply(variables, x)


SLOPES = np.linspace(-0.5, 1.5, 8, dtype=np.float32)

ACTIVATIONS = [
    activation("sigmoid by hand", lambda x: 1 / (1 + jnp.exp(-x)), "Sigmoid"),
    activation("silu by hand", lambda x: x / (1 + jnp.exp(-x)), "Sigmoid Mul"),
    activation("clip", lambda x: jnp.clip(x, -0.5, 0.75), "Clip"),
    activation("clip below", lambda x: jnp.clip(x, -0.5), "Clip"),
    activation("minimum", lambda x: jnp.minimum(x, 0.75), "Clip"),
    activation("max of min", lambda x: jnp.maximum(jnp.minimum(x, 0.5), -1), "Clip", also=[]),
    activation("bounds cross", lambda x: jnp.maximum(jnp.minimum(x, -1), 0.5), "Clip Clip"),
    activation("where relu", lambda x: jnp.where(x > 0, x, 0), "ThresholdedRelu"),
    activation("thresholded", lambda x: jnp.where(x > 1.5, x, 0), "ThresholdedRelu"),
    activation("leaky by where", lambda x: jnp.where(x > 0, x, 0.125 * x), "LeakyRelu"),
    activation("leaky by maximum", lambda x: jnp.maximum(x, 0.125 * x), "LeakyRelu"),
    activation("celu", lambda x: jax.nn.celu(x, 0.5), ""),
    activation("hard_sigmoid", jax.nn.hard_sigmoid, "HardSigmoid", tolerance="sum"),
    activation("sparse_sigmoid", jax.nn.sparse_sigmoid, "HardSigmoid"),
    activation("another slope", lambda x: jnp.clip(0.25 * x + 0.5, 0, 1), "HardSigmoid"),
    activation("sparse_plus", jax.nn.sparse_plus, None),
    activation("squareplus", jax.nn.squareplus, "Mul Add Sqrt Mean"),
    activation("glu", jax.nn.glu, "Split Sigmoid Mul"),
    activation("prelu", lambda x: jnp.where(x >= 0, x, SLOPES * x), "PRelu", also=[]),
    activation(
        "keras prelu",
        lambda x: jax.nn.relu(x) - SLOPES * jax.nn.relu(-x),
        "PRelu",
        also=[],
    ),
    activation("linen prelu", linen_prelu(), "LeakyRelu", also=[]),
]
if hasattr(nnx, "PReLU"):  # Flax 0.12
    ACTIVATIONS.append(activation("nnx prelu", nnx.PReLU(), "LeakyRelu", also=[]))

IMAGE = [f32(2, 8, 8, 3)]
NHWC = "Transpose {} Transpose"


def pool(name, fn, op, also=(), inputs=IMAGE, ops=NHWC):
    return idiom(name, fn, inputs, ops.format(op), also, tolerance="sum")


def average(module, padding, counts_padding=True):
    def fn(x):
        return module.avg_pool(
            x, (3, 3), strides=(2, 2), padding=padding, count_include_pad=counts_padding
        )

    return fn


def haiku_average(x):
    """The spelling of hk.avg_pool."""
    window, strides = (1, 3, 3, 1), (1, 2, 2, 1)
    total = lax.reduce_window(x, 0.0, lax.add, window, strides, "SAME")
    ones = jnp.ones((1, *x.shape[1:3], 1), x.dtype)
    return total / lax.reduce_window(ones, 0.0, lax.add, window, strides, "SAME")


def dilated(x):
    window = lax.reduce_window(
        x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "VALID", window_dilation=(1, 2, 2, 1)
    )
    return window / 9


POOLS = [
    pool("linen average", average(linen, "VALID"), "AveragePool", [[f32("B", "H+7", 8, 3)]]),
    pool("nnx average", average(nnx, "SAME"), "AveragePool", [[f32("B", "H+2", 8, 3)]]),
    pool("nnx without padding", average(nnx, "SAME", False), "AveragePool", [[f32("B", 9, 8, 3)]]),
    pool("valid without padding", average(linen, "VALID", False), "AveragePool"),
    pool(
        "haiku average",
        haiku_average,
        "AveragePool",
        [[f32("B", "H+2", "H+2", 3)], [bf16(1, 7, 8, 2)]],
    ),
    pool("dilated average", dilated, "AveragePool", [[f64(2, 8, 8, 3)]]),
    pool(
        "one dim",
        lambda x: linen.avg_pool(x, (2,), strides=(2,)),
        "AveragePool",
        inputs=[f32(2, 8, 3)],
    ),
    pool(
        "three dims",
        lambda x: linen.avg_pool(x, (2, 2, 2)),
        "AveragePool",
        inputs=[f32(2, 4, 5, 6, 3)],
    ),
    pool(
        "equinox",
        eqx.nn.AvgPool2d(2, 2),
        "AveragePool",
        inputs=[f32(3, 8, 8)],
        ops="Reshape {} Reshape",
    ),
    pool(
        "equinox under vmap",
        jax.vmap(eqx.nn.AvgPool2d(3, 2, padding=1)),
        "AveragePool",
        inputs=[f32("B", 3, 8, 8)],
        ops="{}",
    ),
    pool(
        "equinox rounds up",
        jax.vmap(eqx.nn.AvgPool2d(3, 2, padding=1, use_ceil=True)),
        "AveragePool",
        inputs=[f32(2, 3, 8, 8)],
        ops="{}",
    ),
    pool(
        "equinox maximum rounds up",
        jax.vmap(eqx.nn.MaxPool2d(3, 2, padding=1, use_ceil=True)),
        "MaxPool",
        inputs=[f32(2, 3, 8, 8)],
        ops="{}",
    ),
    pool(
        "another divisor",
        lambda x: average(linen, "VALID")(x) * 0.5,
        "AveragePool",
        ops="Transpose {} Transpose Mul",
    ),
]


def border(fill=0.0, amounts=((0, 0), (1, 1), (0, 2), (0, 0))):
    return lambda x: jnp.pad(x, amounts, constant_values=fill)


def conv_of(padded, padding="VALID"):
    kernel = jnp.cos(jnp.arange(3 * 3 * 3 * 4.0)).reshape(3, 3, 3, 4)
    dims = ("NHWC", "HWIO", "NHWC")
    return lambda x: lax.conv_general_dilated(
        padded(x), kernel, (2, 2), padding, dimension_numbers=dims
    )


def largest_of(padded, padding="VALID"):
    return lambda x: nnx.max_pool(padded(x), (3, 3), strides=(2, 2), padding=padding)


def rectified(x):
    return border()(jax.nn.relu(x))


def twice(x):
    return border(-1.0)(border()(x))


BATCHES = [[f32("B", 8, 8, 3)], [f32("B", "H + 2", 8, 3)]]
PADDED = [
    pool("pad and convolution", conv_of(border()), "Conv", BATCHES),
    pool("pad and padded convolution", conv_of(border(), [(1, 0), (2, 1)]), "Conv", BATCHES),
    pool("pads one by one", conv_of(lambda x: border()(border()(x))), "Conv", BATCHES),
    pool("pad and average", lambda x: average(linen, "VALID")(border()(x)), "AveragePool", BATCHES),
    pool("pad and maximum", largest_of(border(-jnp.inf)), "MaxPool", BATCHES),
    pool(
        "positive numbers, pad and maximum",
        largest_of(rectified),
        "Relu MaxPool",
        BATCHES,
        ops="Transpose {} Transpose",
    ),
    # What the window would not pad with stays a Pad.
    pool("pad with ones", conv_of(border(1.0)), "Conv", BATCHES, ops="Transpose Pad {} Transpose"),
    pool(
        "pad of the channels",
        conv_of(border(0.0, ((0, 0), (1, 1), (0, 0), (1, 1)))),
        "Conv",
        inputs=[f32(2, 8, 8, 1)],
        ops="Pad Transpose {} Transpose",
    ),
    pool(
        "pad with zeros and maximum",
        largest_of(border()),
        "MaxPool",
        BATCHES,
        ops="Transpose Pad {} Transpose",
    ),
    pool(
        "pads with different numbers",
        conv_of(twice),
        "Conv",
        BATCHES,
        ops="Transpose Pad Pad {} Transpose",
    ),
    pool(
        "windows that see only the pad",
        largest_of(border(-jnp.inf, ((0, 0), (3, 3), (0, 0), (0, 0)))),
        "MaxPool",
        ops="Transpose Pad {} Transpose",
    ),
]


def index(name, fn, inputs, ops, also=(), **options):
    return idiom(name, fn, inputs, ops, also, tolerance="exact", **options)


TABLE = f32(9, 4)
IDS = i32(2, 5, lo=-9, hi=8)
FAR = i32(2, 5, lo=-30, hi=30)
ROW = i32(lo=-6, hi=6)
EMBED = nnx.Embed(9, 4, rngs=nnx.Rngs(0))
FILL = "Clip Gather Equal Reshape Where"
SCATTER = "Clip Equal Reshape Where Cast Reshape ScatterND"

INDICES = [
    index(
        "table[i]",
        lambda x, i: x[i],
        [TABLE, IDS],
        "Clip Gather",
        [[TABLE, i32(3, lo=-30, hi=30)], [TABLE, i64("B", "T", lo=-30, hi=30)]],
    ),
    index(
        "narrow indices",
        lambda x, i: x[i],
        [TABLE, u8(5, lo=0, hi=20)],
        "Cast Clip Gather",
        [[TABLE, i8(5)], [TABLE, u32(5)], [TABLE, u64(5)]],
    ),
    index("indices of few bits", lambda x, i: x[i], [f32(256, 2), u8(5)], "Cast Gather"),
    index("a symbolic table", lambda x, i: x[i], [f32("N", 4), FAR], None),
    index("take", lambda x, i: jnp.take(x, i, axis=0), [TABLE, FAR], FILL),
    index(
        "take of integers",
        lambda x, i: jnp.take(x, i, axis=1),
        [i32(4, 9), FAR],
        FILL.replace(" Reshape", ""),
        [[u8(4, 9), FAR], [boolean(4, 9), FAR]],
    ),
    index("nnx.Embed", EMBED, [i32("B", "T", lo=0, hi=8)], FILL.replace("Reshape", "Unsqueeze")),
    index(
        "row of an argmax",
        lambda x, y: x[jnp.argmax(y, -1)],
        [f32(8, 4), f32(5, 8)],
        "ReduceSum IsNaN If Cast Gather",
    ),
    index("rows by position", lambda x, y: x[jnp.arange(y.shape[0])], [f32(16, 4), f32(5)], None),
    index("one row", lambda x, i: x[i], [f32(4, 3), ROW], "Clip Gather"),
    index(
        "one column", lambda x, i: x[:, i], [f32(4, 3), ROW], "Clip Gather", [[f32("B", 3), ROW]]
    ),
    index("one element", lambda x, i, j: x[i, j], [f32(4, 3), ROW, ROW], "Clip Gather Clip Gather"),
    index(
        "points", lambda x, i, j: x[i, j], [f32(4, 5, 3), IDS, IDS], None, [[f32(4, 5), FAR, FAR]]
    ),
    index(
        "points, filled",
        lambda x, i, j: x.at[i, j].get(mode="fill", fill_value=7),
        [f32(4, 5, 3), FAR, FAR],
        None,
    ),
    index(
        "points by position",
        lambda x, i: x[jnp.arange(2), i],
        [f32(2, 5, 3), i32(2, lo=-9, hi=9)],
        None,
    ),
    index("diagonal", jnp.diagonal, [f32(5, 4)], "GatherND"),
    index(
        "take_along_axis",
        lambda x, i: jnp.take_along_axis(x, i, 1),
        [f32(2, 9), FAR],
        "Clip GatherElements Equal Where",
        [[f32("B", 9), i32("B", 2, lo=-30, hi=30)]],
    ),
    index(
        "along a middle axis",
        lambda x, i: jnp.take_along_axis(x, i, 1, mode="clip"),
        [f32(2, 9, 3), i32(2, 5, 3, lo=-12, hi=12)],
        "Clip GatherElements",
    ),
    index(
        "vmap of a row",
        jax.vmap(lambda x, i: x[i]),
        [f32(3, 5), i32(3, lo=-9, hi=9)],
        "Clip Reshape GatherElements Reshape",
    ),
    index(
        "vmap of rows",
        jax.vmap(lambda x, i: x[i]),
        [f32("B", 5, 4), i32("B", 3, lo=-9, hi=9)],
        None,
        [[f32(3, 5, 4), i32(3, 2, 2, lo=-9, hi=9)]],
    ),
    index(
        "vmap of points",
        jax.vmap(lambda x, i, j: x[i, j]),
        [f32(3, 5, 4, 2), i32(3, 2, lo=-9, hi=9), i32(3, 2, lo=-9, hi=9)],
        None,
    ),
    index(
        "a gradient's rows",
        lambda x, i: jax.vjp(lambda y: y[i], x)[1](jnp.ones((2, 5, 4)))[0],
        [TABLE, FAR],
        None,
    ),
]

UPDATES = [
    index(
        "set a row",
        lambda x, y: x.at[1].set(y),
        [f32(4, 3), f32(3)],
        None,
        [[f32(4, "B"), f32("B")], [i8(4, 3), i8(3)]],
    ),
    index("set a column", lambda x: x.at[:, 0].set(0), [f32("B", 8)], None),
    index("set the last column", lambda x: x.at[:, -1].set(0), [f32("B", "T")], None),
    index(
        "set columns",
        lambda x, y: x.at[:, 2:5].set(y),
        [f32(4, 8), f32(4, 3)],
        "Slice Slice Concat",
    ),
    index("set a block", lambda x, y: x.at[1:3, 2:].set(y), [f32(4, 5), f32(2, 3)], None),
    index("set all", lambda x, y: x.at[:].set(y), [f32(4, 5), f32(4, 5)], "Identity"),
    index("add to rows", lambda x: x.at[1:3].add(1), [f32(5, 3)], None),
    index("multiply a column", lambda x: x.at[:, 0].multiply(2), [f32(4, 3)], None, [[f64(4, 3)]]),
    index("maximum of a column", lambda x: x.at[:, 1].max(0), [f32(4, 3)], None),
    index(
        "a known window",
        lambda x, y: lax.dynamic_update_slice(x, y, (1, 9)),
        [f32(4, 5), f32(2, 3)],
        None,
    ),
    index(
        "set at an index",
        lambda x, i, y: x.at[i].set(y),
        [f32(4, 8), ROW, f32(8)],
        "Clip Gather Equal Where Cast Reshape ScatterND",
        [[f32(4, "B"), ROW, f32("B")]],
    ),
    index(
        "set rows at indices",
        lambda x, i, y: x.at[i].set(y),
        [f32(9, 4), i32(1, lo=-20, hi=20), f32(1, 4)],
        None,
    ),
    index(
        "maximum at indices",
        lambda x, i, y: x.at[i].max(y),
        [TABLE, FAR, f32(2, 5, 4)],
        SCATTER,
        opsets=(18, 23),
    ),
    index(
        "integer maximum",
        lambda x, i, y: x.at[i].max(y),
        [i32(9, 4), FAR, i32(2, 5, 4)],
        None,
        opsets=(18, 23),
    ),
    index(
        "add one to points",
        lambda x, i, j: x.at[i, j].add(1),
        [f32(4, 5, lo=0, hi=0), FAR, FAR],
        None,
    ),
    index("set, clipped", lambda x, i: x.at[i].set(0, mode="clip"), [TABLE, FAR], None),
]

DYNAMIC = [
    index(
        "a row at a position",
        lambda x, i: lax.dynamic_index_in_dim(x, i, 0),
        [f32(4, 8), ROW],
        None,
    ),
    index(
        "columns at a position",
        lambda x, i: lax.dynamic_slice_in_dim(x, i, 2, 1),
        [f32(4, 8), ROW],
        "Less Add Where Cast Clip Reshape Add Slice",
        [[f32("B", 8), ROW]],
    ),
    index(
        "two positions",
        lambda x, i, j: lax.dynamic_slice(x, (i, j), (2, 3)),
        [f32(4, 8), ROW, ROW],
        None,
    ),
    index(
        "a cache",
        lambda x, y, i: lax.dynamic_update_slice(x, y, (0, i, 0, 0)),
        [f32(2, 16, 2, 4), f32(2, 1, 2, 4), i32(lo=0, hi=15)],
        "Less Add Where Cast Clip Reshape Concat Add ScatterND",
        [[f32("B", 16, 2, 4), f32("B", 3, 2, 4), ROW]],
    ),
    index(
        "a cache, heads first",
        lambda x, y, i: lax.dynamic_update_slice(x, y, (0, 0, i, 0)),
        [f32(2, 2, 16, 4), f32(2, 2, 3, 4), ROW],
        None,
    ),
    index(
        "a cache under vmap",
        jax.vmap(lambda x, y, i: lax.dynamic_update_slice(x, y, (i, 0))),
        [f32(2, 16, 4), f32(2, 1, 4), i32(2, lo=0, hi=15)],
        None,
    ),
]

SQUARE = [f32("B", "T", "T")]
MATRIX = [f32("T", "S")]


def blocks_to_space(first):
    """Pixels from blocks of [N, C, H, W] whose place is the first or the second part of C."""

    def fn(x):
        n, c, h, w = x.shape
        if first:
            y = x.reshape(n, 2, 2, c // 4, h, w).transpose(0, 3, 4, 1, 5, 2)
        else:
            y = x.reshape(n, c // 4, 2, 2, h, w).transpose(0, 1, 4, 2, 5, 3)
        return y.reshape(n, c // 4, 2 * h, 2 * w)

    return fn


def space_to_blocks(x):
    n, c, h, w = x.shape
    y = x.reshape(n, c, h // 3, 3, w // 3, 3).transpose(0, 3, 5, 1, 2, 4)
    return y.reshape(n, 9 * c, h // 3, w // 3)


SHAPES = [
    index(
        "eye",
        lambda x: x + jnp.eye(*x.shape, dtype=x.dtype),
        MATRIX,
        "Shape ConstantOfShape EyeLike Add",
        [[t("T", "S")] for t in (bf16, f64, i32, u8)],
    ),
    index(
        "eye of a transpose",
        lambda x: x.mT * jnp.eye(x.shape[1], x.shape[0], 1),
        MATRIX,
        "Shape Shape Concat ConstantOfShape EyeLike Transpose Mul",
    ),
    index(
        "eye, below the diagonal",
        lambda x: x @ jnp.eye(x.shape[1], 4, -2),
        MATRIX,
        "Shape Concat ConstantOfShape EyeLike MatMul",
        [[f32(3, "S")]],
    ),
    index("tril", jnp.tril, SQUARE, "Trilu", [[f32("T", "S")], [bf16("T", 3)]]),
    index("tril, lower", lambda x: jnp.tril(x, -2), SQUARE, "Trilu"),
    index("triu", lambda x: jnp.triu(x, 1), SQUARE, "Trilu", [[f64("T", "S")]]),
    index("triu of a transpose", lambda x: jnp.triu(x.mT, -1), SQUARE, "Trilu Transpose"),
    index("static tril", jnp.tril, [f32(2, 5, 5)], "Where"),
    index(
        "pixel shuffle",
        blocks_to_space(False),
        [f32(2, 8, 3, 4)],
        "DepthToSpace",
        [[f32(1, 4, 3, 4)], [f32("B", 8, 3, 4)], [f16(2, 8, 3, 4)]],
    ),
    index(
        "depth to space",
        blocks_to_space(True),
        [f32(2, 8, 3, 4)],
        "DepthToSpace",
        [[f32(1, 4, 3, 4)]],
    ),
    index(
        "space to depth", space_to_blocks, [f32(2, 3, 6, 9)], "SpaceToDepth", [[f32(1, 3, 6, 9)]]
    ),
]

TABLES = [
    *ACTIVATIONS,
    *POOLS,
    *PADDED,
    *INDICES,
    *UPDATES,
    *DYNAMIC,
    *SHAPES,
]


@parity([rows for rows, _ in TABLES])
def test_numbers_are_jax_s(case, capfd):
    check(case, capfd)


@pytest.mark.parametrize(
    ("case", "ops"),
    [(rows[0], ops) for rows, ops in TABLES if ops],
    ids=lambda v: getattr(v, "name", ""),
)
def test_an_idiom_becomes_these_nodes(case, ops):
    # Versions up to 1.24 count padding wrongly and get a Pad in front of an AveragePool.
    assert " ".join(nodes(case, target="onnxruntime>=1.25")) == ops


def nodes(case: Case, **options) -> list[str]:
    model = jaxport.to_onnx(case.fn, structs(case.inputs), opset=max(case.opsets), **options)
    return [node.op_type for node in model.graph.node]


@pytest.mark.parametrize(
    ("fn", "op"),
    [
        (lambda x: jax.nn.logsumexp(x, -1), "ReduceLogSumExp"),
        (lambda x: jnp.where(x >= 0, x, SLOPES * x), "PRelu"),
    ],
)
def test_an_op_that_onnx_runtime_runs_slowly_is_left_to_other_runtimes(fn, op):
    model = jaxport.to_onnx(fn, [(4, 8)], target="onnx")
    assert [node.op_type for node in model.graph.node] == [op]
    equal, message = jaxport.allclose(fn, model, [np.linspace(-3, 3, 32).reshape(4, 8)], rtol=1e-6)
    assert equal, message

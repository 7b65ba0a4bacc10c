# SPDX-License-Identifier: Apache-2.0
"""Symbolic sizes anywhere in a program: as values, in expressions, in windows and in loops."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from flax import linen, nnx
from jax import lax

import jaxport
from raising.libraries import nnx_module
from support.cases import case, check, f32, i32, parity, structs
from support.models import NnxCnn, NnxViT, module_list


def symbolic(name, fn, inputs, tolerance="sum", sizes=(1, 2, 7, 64)):
    return case(name, fn, inputs, tolerance=tolerance, opsets=[23], sizes=sizes)


def conv_same(x, w):
    return lax.conv_general_dilated(
        x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def pool(reduction, init, padding="SAME"):
    return lambda x: lax.reduce_window(x, init, reduction, (1, 3, 3), (1, 2, 2), padding)


VALUES = [
    symbolic("a size as a number", lambda x: x * x.shape[0] + x.shape[1], [f32("B", "T")]),
    symbolic("an expression as a number", lambda x: x * (2 * x.shape[0] + 1), [f32("B")]),
    symbolic("shape", lambda x: jnp.asarray(x.shape), [f32("B", 3, "T")]),
    symbolic("part of a shape", lambda x: jnp.asarray([*x.shape[1:], 7]), [f32("B", 3, "T")]),
    symbolic("sizes and a number", lambda x, n: jnp.stack([x.shape[0], n]), [f32("B"), i32()]),
    symbolic("number of elements", lambda x: jnp.asarray(x.size), [f32("B", 3, "T")]),
    symbolic("twice the elements", lambda x: jnp.asarray(2 * x.size), [f32("B", 3)]),
    symbolic("mean", jnp.mean, [f32("B", "T")]),
    symbolic("variance", lambda x: x.var(axis=0), [f32("B", "T")]),
    symbolic("clip at a size", lambda x: jnp.clip(x, 0, x.shape[0]), [f32("B", 3)]),
    symbolic("quotient and remainder", lambda x: x + x.shape[0] // 2 + x.shape[0] % 3, [f32("B")]),
]

ARRAYS = [
    symbolic("arange", lambda x: jnp.arange(x.shape[0]), [f32("B", 2)]),
    symbolic("arange of an expression", lambda x: jnp.arange(1, 2 * x.shape[0] + 1), [f32("B")]),
    symbolic("float arange", lambda x: jnp.arange(x.shape[0], dtype=jnp.float32) * 2, [f32("B")]),
    symbolic("eye", lambda x: jnp.eye(x.shape[0]) + x, [f32("B", "B")]),
    symbolic("eye of two sizes", lambda x: jnp.eye(*x.shape) * x, [f32("B", "T")]),
    symbolic("tril", jnp.tril, [f32("B", "T")]),
    symbolic("triu above the diagonal", lambda x: jnp.triu(x, 1), [f32("B", "T")]),
    symbolic("diagonal", jnp.diagonal, [f32("B", "B")]),
    symbolic("diagonal matrix", jnp.diag, [f32("B")]),
    symbolic("one_hot", lambda x: jax.nn.one_hot(x.argmax(-1), x.shape[-1]), [f32("B", "T")]),
    symbolic("meshgrid", jnp.meshgrid, [f32("B"), f32("T")]),
    symbolic("zeros of a remainder", lambda x: jnp.zeros(x.shape[0] % 3 + 1), [f32("B")]),
    symbolic("ones of a rounded half", lambda x: jnp.ones(-(-x.shape[0] // 2)), [f32("B")]),
]

MOVES = [
    symbolic("tile by a size", lambda x: jnp.tile(x, (x.shape[0], 1)), [f32("B", 3)]),
    symbolic("tile both dims", lambda x: jnp.tile(x, (2, x.shape[0])), [f32("B", 3)]),
    symbolic("pad", lambda x: jnp.pad(x, ((1, 2), (0, 0))), [f32("B", 3)]),
    symbolic("pad by a size", lambda x: jnp.pad(x, ((0, x.shape[0]), (1, 0))), [f32("B", 3)]),
    symbolic("pad to a multiple", lambda x: jnp.pad(x, (0, -x.shape[0] % 4)), [f32("B")]),
    symbolic(
        "pad with the edge", lambda x: jnp.pad(x, ((1, 2), (0, 0)), mode="edge"), [f32("B", 3)]
    ),
    symbolic("tile by a size", lambda x: jnp.tile(x, (x.shape[1], 1)), [f32("B", "T")]),
    symbolic("repeat", lambda x: jnp.repeat(x, 3, axis=0), [f32("B", "T")]),
    symbolic("concatenate with a part", lambda x: jnp.concatenate([x, x[:1], x]), [f32("B", 2)]),
    symbolic("first half", lambda x: x[: (x.shape[0] + 1) // 2], [f32("B", 3)]),
    symbolic("every other one", lambda x: x[::2], [f32("B", 3)]),
    symbolic("every third one after the first", lambda x: x[:, 1::3], [f32("B", "T + 1")]),
    symbolic("every other one backwards", lambda x: x[::-2], [f32("B", 3)]),
    symbolic("crop", lambda x: x[:, 1:, 1:-1], [f32("B", 5, "T + 3", 2)]),
    symbolic("corner and edge", lambda x: (x[:, 0, 0], x[:, -1, 1:]), [f32("B", 4, "T + 1")]),
    symbolic("every other pixel", lambda x: x[:, ::2, 1::2], [f32("B", 6, 7, 2)]),
    symbolic("row and every other pixel", lambda x: x[0, 1:, ..., ::2], [f32("B", "T", 3, 5)]),
    symbolic(
        "places of a diagonal", lambda x: x[:, jnp.arange(3), jnp.arange(3)], [f32("B", 3, 4)]
    ),
    symbolic("known rows", lambda x: x[jnp.array([0, 2, 4])], [f32("B + 4", 3)]),
    symbolic("backwards", lambda x: x[::-1, ::-1], [f32("B", "T")]),
    symbolic("roll by a size", lambda x: jnp.roll(x, x.shape[1], axis=0), [f32("B", "T")]),
    symbolic(
        "dynamic_slice of a size",
        lambda x: lax.dynamic_slice(x, (1, 0), (x.shape[0] - 1, 2)),
        [f32("B + 1", 3)],
    ),
    symbolic(
        "dynamic_update_slice",
        lambda x, y: lax.dynamic_update_slice(x, y, (1, 0)),
        [f32("B + 1", 3), f32("B", 3)],
    ),
    symbolic("split", lambda x: jnp.split(x, 2), [f32("2*B", 3)]),
    symbolic("merge and split", lambda x: x.reshape(-1, 2).T.reshape(x.shape), [f32("B", "2*T")]),
    symbolic(
        "a size that a product determines",
        lambda x, y: x.reshape(y.shape[0], -1) * y[:, None],
        [f32("B*T"), f32("B")],
    ),
    symbolic(
        "sizes that determine each other in turn",
        lambda x, y, z: x.reshape(y.shape[0], -1) + z.shape[0],
        [f32("2*B*T"), f32("B"), f32("T*C + B + 1")],
    ),
]

WINDOWS = [
    symbolic("same convolution", conv_same, [f32("B", "H", "W", 2), f32(3, 3, 2, 4)]),
    symbolic("same sums", pool(lax.add, 0.0), [f32("B", "H", "W")]),
    symbolic("same maxima", pool(lax.max, -jnp.inf), [f32("B", "H", "W")]),
    symbolic("same minima", pool(lax.min, jnp.inf), [f32("B", "H", "W")]),
    symbolic("valid maxima", pool(lax.max, -jnp.inf, "VALID"), [f32("B", "H + 2", "W + 2")]),
    symbolic("resize", lambda x: jax.image.resize(x, (2 * x.shape[0], 6), "linear"), [f32("B", 3)]),
]

ORDER = [
    symbolic("sort", lambda x: jnp.sort(x, 0), [f32("B", 3)], "exact"),
    symbolic("argsort", lambda x: jnp.argsort(x, 1), [f32("B", "T")], "exact"),
    symbolic("cumsum", lambda x: jnp.cumsum(x, 0), [f32("B", 3)]),
    symbolic("last row", lambda x: x.at[-1].add(1.0)[-1], [f32("B", 3)]),
    symbolic(
        "write every row in a loop",
        lambda x: lax.fori_loop(
            0, x.shape[0], lambda i, c: c.at[i].set(x[i] * i), jnp.zeros_like(x)
        ),
        [f32("B", "T")],
    ),
    symbolic(
        "sizes inside of a scan",
        lambda x: lax.scan(
            lambda c, row: (c + row.shape[0], jnp.pad(row, (0, x.shape[0])) + c), 0.0, x
        ),
        [f32("B", "T")],
    ),
]


def flax_pool(x):
    return linen.avg_pool(x, (2, 2), (2, 2))


def transposed_conv(x, w):
    return lax.conv_transpose(x, w, (2,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))


def strided(x):
    """Every second row of the first T - 1, by a slice whose end is an expression."""
    return lax.slice_in_dim(x, 0, x.shape[0] - 1, 2)


def attention(x):
    """Causal attention over symbolic sequences."""
    q = x.reshape(*x.shape[:2], 2, -1)
    return jax.nn.dot_product_attention(q, q, q, is_causal=True).reshape(x.shape)


EXPRESSIONS = [
    symbolic("input of 2*T + 1", lambda x: x[1:].reshape(2, -1), [f32("2*T + 1")]),
    symbolic("input of H*W", lambda x, y: x.reshape(y.shape) + y, [f32("H*W"), f32("H", "W")]),
    symbolic("half of T", lambda x: x[: x.shape[0] // 2], [f32("T + 1", 3)]),
    symbolic("the remainder", lambda x: x[: x.shape[0] % 4 + 1], [f32("T + 4")]),
    symbolic(
        "the larger of two",
        lambda x, y: jnp.zeros(jax.core.max_dim(x.shape[0], y.shape[0])),
        [f32("B"), f32("T")],
    ),
    symbolic(
        "the smaller of two",
        lambda x, y: x[: jax.core.min_dim(x.shape[0], y.shape[0])],
        [f32("B"), f32("T")],
    ),
    symbolic("a square", lambda x: jnp.ones(x.shape[0] * x.shape[0]) * x.sum(), [f32("B")]),
    symbolic("a difference", lambda x, y: x[y.shape[0] :], [f32("B + T"), f32("T")]),
    symbolic("ceiling", lambda x: jnp.zeros((x.shape[0] + 3) // 4), [f32("B")]),
]

SHAPES = [
    symbolic("flatten", lambda x: x.reshape(x.shape[0], -1), [f32("B", "T", 3)]),
    symbolic("flatten all", jnp.ravel, [f32("B", "T", 3)]),
    symbolic("unflatten", lambda x: x.reshape(x.shape[0], x.shape[1], 2, 3), [f32("B", "T", 6)]),
    symbolic(
        "merge leading axes",
        lambda x: x.reshape(-1, x.shape[-1]) @ jnp.ones((4, 2)),
        [f32("B", "T", 4)],
    ),
    symbolic(
        "swap and merge", lambda x: x.transpose(1, 0, 2).reshape(x.shape[1], -1), [f32("B", "T", 2)]
    ),
    symbolic("group rows", lambda x: x.reshape(-1, 4, x.shape[1]).sum(1), [f32("4*B", "T")]),
    symbolic("unit axes", lambda x: x[:, None, :, None].squeeze(1), [f32("B", "T")]),
    symbolic("stack", lambda x: jnp.stack([x, x * 2], axis=1), [f32("B", "T")]),
    symbolic(
        "concatenate of three", lambda x, y: jnp.concatenate([x, y, x]), [f32("B", 2), f32("T", 2)]
    ),
    symbolic(
        "broadcast_to",
        lambda x, y: jnp.broadcast_to(x, (y.shape[0], *x.shape)),
        [f32("B"), f32("T")],
    ),
    symbolic("outer", jnp.outer, [f32("B"), f32("T")]),
    symbolic("kron", jnp.kron, [f32("B"), f32("T")]),
    symbolic("tile both ways", lambda x: jnp.tile(x, (2, x.shape[0])), [f32("B", "T")]),
    symbolic("repeat by a size", lambda x, y: jnp.repeat(x, y.shape[0]), [f32("B"), f32("T")]),
    symbolic("moveaxis", lambda x: jnp.moveaxis(x, 0, -1), [f32("B", "T", 3)]),
    symbolic("strided slice", strided, [f32("T + 1", 3)]),
    symbolic("drop both ends", lambda x: x[1:-1], [f32("T + 2", 3)]),
    symbolic("flip", lambda x: jnp.flip(x, 1), [f32("B", "T")]),
    symbolic(
        "space to depth",
        lambda x: x.reshape(x.shape[0] // 2, 2, x.shape[1] // 2, 2).swapaxes(1, 2),
        [f32("2*H", "2*W")],
    ),
    symbolic("linspace", lambda x: jnp.linspace(0.0, 1.0, x.shape[0] + 1) * x.sum(), [f32("B")]),
    symbolic(
        "linspace without its end",
        lambda x: jnp.linspace(0.0, 1.0, x.shape[0], endpoint=False),
        [f32("B + 1")],
    ),
    symbolic("full", lambda x: jnp.full((x.shape[0], 2), x.shape[1]), [f32("B", "T")]),
]

GATHERS = [
    symbolic("take rows", lambda x: x[jnp.arange(x.shape[0]) // 2], [f32("B", 3)]),
    symbolic(
        "take along", lambda x: jnp.take_along_axis(x, x.argmax(1)[:, None], 1), [f32("B", "T")]
    ),
    symbolic("embedding", lambda i, w: w[i], [i32("B", "T", lo=0, hi=0), f32("V", 3)]),
    symbolic(
        "scatter rows",
        lambda x: jnp.zeros((x.shape[0], 3)).at[jnp.arange(x.shape[0])].set(x),
        [f32("B", 3)],
    ),
    symbolic(
        "segment sums",
        lambda x: jax.ops.segment_sum(x, jnp.arange(x.shape[0]) % 2, 2),
        [f32("B", 3)],
    ),
    symbolic("one column of each row", lambda x: x[jnp.arange(x.shape[0]), 1], [f32("B", 3)]),
    symbolic(
        "where", lambda x: jnp.where(jnp.arange(x.shape[1]) < x.shape[0], x, 0), [f32("B", "T")]
    ),
    symbolic(
        "top_k of a size", lambda x: lax.top_k(x, x.shape[1] // 2 + 1), [f32("B", "T")], "exact"
    ),
    symbolic("top_k of two", lambda x: lax.top_k(x, 2), [f32("B", "T + 1")], "exact"),
    symbolic("argmax of all", jnp.argmax, [f32("B", "T")], "exact"),
    symbolic("cumulative maximum", lambda x: lax.cummax(x, 1), [f32("B", "T")], "exact"),
    symbolic("median", lambda x: jnp.median(x, 0), [f32("B", 3)]),
]

LINEAR = [
    symbolic(
        "einsum",
        lambda x, y: jnp.einsum("bti,bsi->bts", x, y),
        [f32("B", "T", 3), f32("B", "S", 3)],
    ),
    symbolic("einsum over a symbol", lambda x: jnp.einsum("bt,ct->bc", x, x), [f32("B", "T")]),
    symbolic("matmul of symbols", jnp.matmul, [f32("B", "T"), f32("T", "C")]),
    symbolic("softmax", jax.nn.softmax, [f32("B", "T")]),
    symbolic("logsumexp", lambda x: jax.nn.logsumexp(x, 0), [f32("B", "T")]),
    symbolic(
        "standardise",
        lambda x: (x - x.mean(1, keepdims=True)) / (x.std(1, keepdims=True) + 1),
        [f32("B", "T")],
    ),
    symbolic("attention", attention, [f32("B", "T", 8)]),
    symbolic(
        "vmap of a matrix product",
        jax.vmap(lambda x, y: x @ y.T),
        [f32("B", "T", 3), f32("B", "S", 3)],
    ),
    symbolic("gradient of a mean", jax.grad(lambda x: (jnp.tanh(x) ** 2).mean()), [f32("B", "T")]),
    symbolic(
        "gradient of a product",
        jax.grad(lambda w, x: jnp.sum((x @ w) ** 2)),
        [f32("C", 3), f32("B", "C")],
    ),
    symbolic(
        "convolution in one dimension",
        lambda x, w: lax.conv(x, w, (1,), "SAME"),
        [f32("B", 2, "T"), f32(4, 2, 3)],
    ),
    symbolic(
        "strided convolution",
        lambda x, w: lax.conv(x, w, (2,), "VALID"),
        [f32("B", 2, "T + 2"), f32(4, 2, 3)],
    ),
    symbolic("average pooling", lambda x: flax_pool(x), [f32("B", "2*H", "2*W", 3)]),
    symbolic("global average", lambda x: x.mean((1, 2)), [f32("B", "H", "W", 3)]),
    symbolic(
        "nearest resize",
        lambda x: jax.image.resize(x, (2 * x.shape[0], 2 * x.shape[1]), "nearest"),
        [f32("H", "W")],
    ),
    symbolic(
        "resize to another input",
        lambda x, y: jax.image.resize(x, y.shape, "linear"),
        [f32("H", "W"), f32("U", "V")],
    ),
    symbolic(
        "rfft-free cosine table",
        lambda x: x * jnp.cos(jnp.arange(x.shape[0])[:, None] / 10),
        [f32("T", 3)],
    ),
]

NARROW = [
    symbolic("same sums of integers", pool(lax.add, 0), [i32("B", "H", "W")], "exact"),
    symbolic("same maxima of integers", pool(lax.max, -100), [i32("B", "H", "W")], "exact"),
    symbolic("transposed convolution", transposed_conv, [f32("B", "T", 2), f32(3, 2, 4)]),
    symbolic(
        "windows of a dilated operand",
        lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 3), (1, 2), "SAME", (1, 2)),
        [f32("B", "T")],
    ),
    symbolic(
        "windows of a user's function",
        lambda x: lax.reduce_window(x, 2, lax.mul, (1, 3), (1, 2), "SAME"),
        [i32("B", "T", lo=-2, hi=2)],
        "exact",
    ),
]

# JAX takes a symbol to be at least 1, so what it decides for such sizes is all that can be asked.
EMPTY = [
    symbolic("empty rows", lambda x: jnp.tanh(x) @ jnp.ones((3, 2)), [f32("B", 3)], sizes=(0,)),
    symbolic("empty sum", lambda x: x.sum(0), [f32("B", 3)], sizes=(0,)),
    symbolic("empty arange", lambda x: jnp.arange(x.shape[0]), [f32("B")], sizes=(0,)),
    symbolic("empty concatenate", lambda x: jnp.concatenate([x, x * 2]), [f32("B", 3)], sizes=(0,)),
    symbolic("empty reshape", lambda x: x.reshape(x.shape[0], 6), [f32("B", 2, 3)], sizes=(0,)),
    symbolic("empty sort", lambda x: jnp.sort(x, 1), [f32("B", 3)], sizes=(0,)),
    symbolic("empty pad", lambda x: jnp.pad(x, ((1, 2), (0, 0))), [f32("B", 3)], sizes=(0,)),
    symbolic("empty gather", lambda x: x[jnp.arange(x.shape[0])], [f32("B", 3)], sizes=(0,)),
]


@parity(
    VALUES
    + ARRAYS
    + MOVES
    + WINDOWS
    + ORDER
    + EXPRESSIONS
    + SHAPES
    + GATHERS
    + LINEAR
    + NARROW
    + EMPTY
)
def test_numbers_are_jax_s(case, capfd):
    check(case, capfd)


@pytest.mark.parametrize("fn", [pool(lax.add, 0.0), pool(lax.max, -jnp.inf)], ids=["sum", "max"])
def test_same_padding_of_symbolic_sizes_is_not_computed(fn):
    model = jaxport.to_onnx(fn, [("B", "H", "W")], return_mode="model")
    assert not {"Shape", "Pad"} & model.stats()["ops"].keys()


@pytest.mark.parametrize(
    "fn", [lambda x: x[1:], lambda x: x[::2], lambda x: x[:, 1::3], lambda x: x[::-1]]
)
def test_a_slice_up_to_the_end_does_not_compute_it(fn):
    model = jaxport.to_onnx(fn, [("B + 1", "T + 1")], return_mode="model")
    assert model.stats()["ops"] == {"Slice": 1}


@pytest.mark.parametrize(
    "fn", [lambda x: x[:, 1:, 1:], lambda x: x[:, ::2, 1::2], lambda x: x[0, ..., ::-1]]
)
def test_known_indices_are_slices_beside_symbolic_sizes(fn):
    model = jaxport.to_onnx(fn, [("B", 6, "T + 1", 4)], return_mode="model")
    assert model.stats()["ops"].keys() <= {"Gather", "Slice"}
    assert model.stats()["nodes"] <= 2


def test_a_mean_over_symbolic_axes_is_one_node():
    shape = ("B", "H + 1", "2*W + 3", 3)  # never empty
    model = jaxport.to_onnx(lambda x: x.mean((1, 2)), [shape], return_mode="model")
    assert model.stats()["ops"] == {"ReduceMean": 1}


def test_a_mean_over_what_may_be_empty_is_a_quotient():
    model = jaxport.to_onnx(lambda x: x.mean(1), [("B", "T", 3)], return_mode="model")
    assert "ReduceMean" not in model.stats()["ops"]


def test_the_count_of_another_axis_gives_no_mean():
    model = jaxport.to_onnx(lambda x: x.sum(1) / x.shape[0], [("B", "H")], return_mode="model")
    assert "ReduceMean" not in model.stats()["ops"]


def test_each_size_is_computed_once():
    def fn(x, y):
        z = jnp.pad(x, ((0, y.shape[0]), (0, 0)))
        rows = jnp.arange(x.shape[0] + y.shape[0])
        return z * rows[:, None], jnp.zeros((x.shape[0] + y.shape[0], 2)), x.shape[0] + y.shape[0]

    model = jaxport.to_onnx(fn, [("B", 3), ("T",)])
    nodes = [(n.op_type, *n.input, *map(str, n.attribute)) for n in model.graph.node]
    assert len(set(nodes)) == len(nodes)
    assert sum(node[0] == "Shape" for node in nodes) == 2
    assert sum(node[0] == "Add" for node in nodes) == 1


def test_names_of_sizes_are_the_user_s_and_readable():
    model = jaxport.to_onnx(lambda x: jnp.concatenate([x, x, x[:1]]), [("T", 3)])
    (given,), (derived,) = model.graph.input, model.graph.output
    assert given.type.tensor_type.shape.dim[0].dim_param == "T"
    assert derived.type.tensor_type.shape.dim[0].dim_param.replace(" ", "") == "2*T+1"


def test_constraints_decide_and_are_kept():
    (size,) = jax.export.symbolic_shape("T", constraints=["T >= 4"])
    spec = jax.ShapeDtypeStruct((size, 3), jnp.float32)
    model = jaxport.to_onnx(lambda x: x[:4].reshape(2, 2, 3) if x.shape[0] > 3 else x, [spec])
    assert [dim.dim_value for dim in model.graph.output[0].type.tensor_type.shape.dim] == [2, 2, 3]
    assert any("T >= 4" in entry.value for entry in model.metadata_props), model.metadata_props


class Decoder(nnx.Module):
    """Token embedding and causal blocks."""

    def __init__(self, rngs, width=16, layers=4):
        self.embedding = nnx.Embed(11, width, rngs=rngs)
        self.norms = module_list([nnx.RMSNorm(width, rngs=rngs) for _ in range(2 * layers)])
        self.project = module_list([nnx.Linear(width, 3 * width, rngs=rngs) for _ in range(layers)])
        self.expand = module_list([nnx.Linear(width, 4 * width, rngs=rngs) for _ in range(layers)])
        self.contract = module_list(
            [nnx.Linear(4 * width, width, rngs=rngs) for _ in range(layers)]
        )

    def __call__(self, tokens):
        x = self.embedding(tokens)
        for i in range(len(self.project)):
            q, k, v = jnp.split(self.project[i](self.norms[2 * i](x)), 3, axis=-1)
            q, k, v = (y.reshape(*y.shape[:2], 4, -1) for y in (q, k, v))
            attended = jax.nn.dot_product_attention(q, k, v, is_causal=True)
            x = x + attended.reshape(x.shape)
            x = x + self.contract[i](nnx.silu(self.expand[i](self.norms[2 * i + 1](x))))
        return x @ self.embedding.embedding[...].T


def node_count(model, spec):
    return jaxport.to_onnx(model, [spec], return_mode="model").stats()["nodes"]


@pytest.mark.parametrize(
    ("model", "static", "symbolic"),
    [
        (nnx_module(NnxViT), f32(2, 16, 16, 3), f32("B", 16, 16, 3)),
        (nnx_module(NnxCnn), f32(2, 8, 8, 3), f32("B", 8, 8, 3)),
        (nnx_module(Decoder), i32(2, 6), i32("B", "T")),
    ],
    ids=["ViT", "CNN", "decoder"],
)
def test_symbolic_models_are_as_small_as_static_ones(model, static, symbolic):
    small, large = (node_count(model, structs([spec])[0]) for spec in (static, symbolic))
    assert large <= 1.1 * small

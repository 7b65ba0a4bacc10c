# SPDX-License-Identifier: Apache-2.0
"""Symbolic sizes anywhere in a program: as values, in expressions, in windows and in loops."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import jaxport
from support.cases import case, check, f32, parity


def symbolic(name, fn, inputs, tolerance="sum"):
    return case(name, fn, inputs, tolerance=tolerance)


def conv_same(x, w):
    return lax.conv_general_dilated(
        x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def pool(reduction, init, padding="SAME"):
    return lambda x: lax.reduce_window(x, init, reduction, (1, 3, 3), (1, 2, 2), padding)


VALUES = [
    symbolic("a size as a number", lambda x: x * x.shape[0] + x.shape[1], [f32("B", "T")]),
    symbolic("an expression as a number", lambda x: x * (2 * x.shape[0] + 1), [f32("B")]),
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


@parity(VALUES + ARRAYS + MOVES + WINDOWS + ORDER)
def test_dims(case, capfd):
    check(case, capfd)


@pytest.mark.parametrize("fn", [pool(lax.add, 0.0), pool(lax.max, -jnp.inf)], ids=["sum", "max"])
def test_same_padding_of_symbolic_sizes_is_not_computed(fn):
    model = jaxport.to_onnx(fn, [("B", "H", "W")], return_mode="ir")
    assert not {"Shape", "Pad"} & model.stats()["ops"].keys()


def test_a_mean_over_symbolic_axes_is_one_node():
    model = jaxport.to_onnx(lambda x: x.mean((1, 2)), [("B", "H", "W", 3)], return_mode="ir")
    assert model.stats()["ops"] == {"ReduceMean": 1}


def test_the_count_of_another_axis_gives_no_mean():
    model = jaxport.to_onnx(lambda x: x.sum(1) / x.shape[0], [("B", "H")], return_mode="ir")
    assert "ReduceMean" not in model.stats()["ops"]

# SPDX-License-Identifier: Apache-2.0
"""Rotary embeddings: tables, positions, dtypes and sizes, and a decoder with them.

raising/ has the spellings of JAX and its libraries: one node each, with JAX's numbers.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxport
from support.cases import bf16, c64, case, check, f16, f32, f64, i32, load, parity, structs

KEY = jax.random.key(0)
SIZE = 8  # of a head


def frequencies(size):
    return 1.0 / 10000.0 ** (jnp.arange(0, size, 2) / size)


def tables(count, size):
    angles = jnp.arange(count)[:, None] * frequencies(size)
    return jnp.cos(angles), jnp.sin(angles)


def tables_of(x):
    """For x of shape [batch, time, heads, size]."""
    cos, sin = tables(x.shape[1], x.shape[-1])
    return cos[:, None], sin[:, None]


def rotated(x, cos, sin):
    low, high = jnp.split(x, 2, -1)
    return jnp.concatenate([low * cos - high * sin, high * cos + low * sin], -1)


def halves(x):
    return rotated(x, *tables_of(x))


def rotate_half(x):
    cos, sin = (jnp.concatenate([table, table], -1) for table in tables_of(x))
    low, high = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return x * cos + jnp.concatenate([-high, low], -1) * sin


def scaled(x):
    cos, sin = tables_of(x)
    return rotated(x, cos * 1.25, sin * 1.25)


def interleaved(x):
    cos, sin = tables_of(x)
    even, odd = x[..., ::2], x[..., 1::2]
    return jnp.stack([even * cos - odd * sin, odd * cos + even * sin], -1).reshape(x.shape)


def complex_numbers(x):
    angles = jnp.arange(x.shape[1])[:, None] * frequencies(x.shape[-1])
    pairs = x.reshape(*x.shape[:-1], -1, 2)
    turned = jax.lax.complex(pairs[..., 0], pairs[..., 1]) * jnp.exp(1j * angles)[:, None]
    return jnp.stack([turned.real, turned.imag], -1).reshape(x.shape)


def heads_first(x):
    return jnp.swapaxes(halves(jnp.swapaxes(x, 1, 2)), 1, 2)


def at_positions(x, positions):
    angles = positions[..., None] * frequencies(x.shape[-1])
    return rotated(x, jnp.cos(angles)[:, :, None], jnp.sin(angles)[:, :, None])


COS, SIN = (np.asarray(table) for table in tables(32, SIZE))
FULL_COS, FULL_SIN = np.concatenate([COS, COS], -1), np.concatenate([SIN, SIN], -1)


def from_cache(x, positions):
    return rotated(
        x, jnp.asarray(COS)[positions][:, :, None], jnp.asarray(SIN)[positions][:, :, None]
    )


def full_constant_tables(x):
    low, high = jnp.split(x, 2, -1)
    turned = jnp.concatenate([-high, low], -1)
    count = x.shape[1]
    return x * FULL_COS[:count, None] + turned * FULL_SIN[:count, None]


def in_f32(x):
    return halves(x.astype(jnp.float32)).astype(x.dtype)


def halves_in_f32(x):
    low, high = (half.astype(jnp.float32) for half in jnp.split(x, 2, -1))
    cos, sin = tables_of(x)
    turned = [low * cos - high * sin, high * cos + low * sin]
    return jnp.concatenate(turned, -1).astype(x.dtype)


def partial(rope, size):
    """Rotates the first `size` elements of each head."""
    return lambda x: jnp.concatenate([rope(x[..., :size]), x[..., size:]], -1)


ROPE = eqx.nn.RotaryPositionalEmbedding(SIZE)
ATTENTION = eqx.nn.MultiheadAttention(3, 3 * SIZE, key=KEY)


def equinox_attention(x):
    rope = jax.vmap(ROPE, in_axes=1, out_axes=1)
    return ATTENTION(x, x, x, process_heads=lambda q, k, v: (rope(q), rope(k), v))


def weight(name, *shape):
    random = np.random.default_rng(sum(map(ord, name)))
    return random.standard_normal(shape, np.float32) * np.float32(0.1)


def projected(x):
    """A projection with a bias: the sum below the rotation is no part of it."""
    q = x @ weight("q", x.shape[-1], 2 * SIZE) + jnp.arange(2.0 * SIZE)
    return halves(q.reshape(*x.shape[:-1], 2, SIZE))


def row(name, fn, inputs, also=(), opsets=(17, 23)):
    return case(name, fn, inputs, also, tolerance="network", opsets=opsets)


def newest(name, fn, inputs):
    return row(name, fn, inputs, opsets=(23,))


X = [f32(2, 6, 3, SIZE)]
SYMBOLIC = [f32("B", "T", 3, SIZE)]
ONE_NODE = [
    row("halves", halves, X, also=[[f32("B", 6, 3, SIZE)], [f32(1, 6, 1, 2)]]),
    row("interleaved", interleaved, X, also=[SYMBOLIC]),
    row("scaled tables", scaled, X),
    row("heads first", heads_first, [f32(2, 3, 6, SIZE)]),
    row("positions", at_positions, [*X, i32(2, 6)], also=[[*SYMBOLIC, i32("B", "T")]]),
    row("cached tables", from_cache, [*X, i32(2, 6, lo=0)]),
    row("full constant tables", full_constant_tables, X),
    row("f32 inside f16", in_f32, [f16(2, 6, 3, SIZE)]),
    row("halves in f32 inside bf16", halves_in_f32, [bf16(2, 6, 3, SIZE)]),
    row("half of each head", partial(halves, 4), X, also=[SYMBOLIC]),
    row("part of each head", partial(rotate_half, 4), [f32(2, 6, 3, 14)]),
    row("part of each head, interleaved", partial(interleaved, 4), [f32(2, 6, 3, 12)]),
    row("projection", projected, [f32(2, 6, 5)]),
    newest("rotate_half, symbolic", rotate_half, SYMBOLIC),
    newest("complex numbers, symbolic", complex_numbers, SYMBOLIC),
]
OTHERS = [
    newest("equinox attention", jax.vmap(equinox_attention), [f32("B", 6, 3 * SIZE)]),
    row("f64", rotated, [f64(2, 6, 3, SIZE), f64(6, 1, 4), f64(6, 1, 4)]),
]


@parity([*ONE_NODE, *OTHERS])
def test_numbers_are_jax_s(case, capfd):
    check(case, capfd)


def ops_of(fn, inputs, **options):
    return jaxport.to_onnx(fn, structs(inputs), return_mode="model", **options).stats()["ops"]


@pytest.mark.parametrize("case", [rows[0] for rows in ONE_NODE], ids=lambda case: case.name)
def test_a_rotation_is_one_node(case):
    ops = ops_of(case.fn, case.inputs)
    assert ops.get("RotaryEmbedding") == 1
    assert not {"Split", "Neg", "Sub", "Transpose"} & set(ops)


HOSTILE = np.float32([1, -1, 0, -0.0, np.inf, -np.inf, np.nan, 3e38])


@pytest.mark.parametrize(
    ("rope", "nodes"),
    [(halves, 5), (rotate_half, 5), (interleaved, 9), (partial(halves, 4), 7)],
    ids=["halves", "rotate_half", "interleaved", "partial"],
)
@pytest.mark.parametrize("sizes", [(2, 6, 3, SIZE), ("B", 6, 3, SIZE)], ids=str)
def test_known_tables_rotate_the_whole_where_there_is_no_op(rope, nodes, sizes):
    model = jaxport.to_onnx(rope, [sizes], opset=17)
    assert len(model.graph.node) == nodes
    x = np.random.default_rng(0).choice(HOSTILE, (2, 6, 3, SIZE))
    with jax.disable_jit():  # compiled, XLA may make one operation of a product and a sum
        expected = np.asarray(rope(x))
    (have,) = load(model, 17).run(None, {"x": x})
    np.testing.assert_allclose(have, expected, rtol=1e-6)


# --- what the op cannot say


def tables_of_full_size(x, cos, sin):
    low, high = jnp.split(x, 2, -1)
    return x * cos + jnp.concatenate([-high, low], -1) * sin


def other_half(x, cos, sin):
    low, high = jnp.split(x, 2, -1)
    return jnp.concatenate([low * cos - high * sin, low * cos + high * sin], -1)


def halves_of_two_values(x, cos, sin):
    low, high = jnp.split(x, 2, -1)[0], jnp.split(x * x, 2, -1)[1]
    return jnp.concatenate([low * cos - high * sin, high * cos + low * sin], -1)


HALF = [f32(6, 1, 4), f32(6, 1, 4)]
NEAR_MISSES = [
    newest("tables of full size", tables_of_full_size, [*X, f32(6, 1, 8), f32(6, 1, 8)]),
    newest("the other half", other_half, [*X, *HALF]),
    newest("halves of two values", halves_of_two_values, [*X, *HALF]),
    newest("complex product", lambda z, w: z * w, [c64(2, 6), c64(6)]),
]


@parity(NEAR_MISSES)
def test_something_similar_is_no_rotation(case, capfd):
    check(case, capfd)
    assert "RotaryEmbedding" not in ops_of(case.fn, case.inputs)


# --- a decoder


def rms_norm(x, weight):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * weight


def decoder_block(x, rope, layer):
    heads, shared, width = 8, 2, x.shape[-1]
    h = rms_norm(x, weight(f"norm{layer}", width) + 1)

    def projection(name, count):
        return (h @ weight(f"{name}{layer}", width, count * SIZE)).reshape(
            *x.shape[:2], count, SIZE
        )

    q, k, v = projection("q", heads), projection("k", shared), projection("v", shared)
    mixed = jax.nn.dot_product_attention(rope(q), rope(k), v, is_causal=True)
    x = x + mixed.reshape(*x.shape[:2], -1) @ weight(f"out{layer}", heads * SIZE, width)
    h = rms_norm(x, weight(f"gain{layer}", width) + 1)
    gate, up = h @ weight(f"gate{layer}", width, 128), h @ weight(f"up{layer}", width, 128)
    return x + (jax.nn.silu(gate) * up) @ weight(f"down{layer}", 128, width)


def decoder(x, rope=halves, layers=2):
    for layer in range(layers):
        x = decoder_block(x, rope, layer)
    return x


MOVING = {
    "Concat",
    "Expand",
    "Gather",
    "Reshape",
    "Slice",
    "Split",
    "Squeeze",
    "Transpose",
    "Unsqueeze",
}


@pytest.mark.parametrize("rope", [halves, rotate_half, interleaved, complex_numbers])
@pytest.mark.parametrize("batch", [1, 2])
def test_a_decoder_with_grouped_heads_moves_no_data(rope, batch):
    ops = ops_of(lambda x: decoder(x, rope), [f32(batch, 6, 64)])
    assert ops["RotaryEmbedding"] == 4
    assert ops["Attention"] == 2
    assert ops["RMSNormalization"] == 4
    assert not MOVING & set(ops)


def test_layers_share_their_tables():
    one = jaxport.to_onnx(lambda x: decoder(x, layers=1), [("B", "T", 64)], return_mode="model")
    two = jaxport.to_onnx(decoder, [("B", "T", 64)], return_mode="model")
    for op in ("Cos", "Sin", "Expand", "Range"):
        assert one.stats()["ops"][op] == two.stats()["ops"][op] == 1


@parity([row("decoder", decoder, [f32(2, 6, 64)], also=[[f32("B", "T", 64)]])])
def test_a_decoder_has_jax_s_numbers(case, capfd):
    check(case, capfd)

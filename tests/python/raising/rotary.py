# SPDX-License-Identifier: Apache-2.0
"""Rotary position embeddings, alone and in attention."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from raising.libraries import KEY, over_batch, with_equinox
from raising.table import Row
from support.cases import bf16, f32

X = [f32(2, 6, 4, 8)]  # batch, time, heads, size
BHTD = [f32(2, 4, 6, 8)]
SPLIT_HEADS = 2
ROWS: list[Row] = []


def spelled(name, inputs=X, moves=SPLIT_HEADS, **ops):
    """Adds a function to the rows."""

    def add(fn):
        wanted = {"RotaryEmbedding": 1, **ops}
        ROWS.append(Row("rotary", "by hand", name, fn, inputs, wanted, moves))
        return fn

    return add


def angles(length, size, base=10000.0):
    """The angle of each position and pair of features: (length, size / 2)."""
    inverse = 1.0 / base ** (jnp.arange(0, size, 2) / size)
    return jnp.arange(length)[:, None] * inverse[None]


def rotate_half(x):
    lo, hi = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([-hi, lo], axis=-1)


@spelled("rotate_half with full tables")
def half_full_tables(x):
    table = jnp.concatenate([angles(6, 8)] * 2, -1)[:, None]
    return x * jnp.cos(table) + rotate_half(x) * jnp.sin(table)


@spelled("rotate_half by tile", BHTD, moves=0)
def half_tile(x):
    table = jnp.tile(angles(6, 8), (1, 2))
    return x * jnp.cos(table) + rotate_half(x) * jnp.sin(table)


@spelled("halves with half tables")
def half_split(x):
    cos, sin = (f(angles(6, 8))[None, :, None] for f in (jnp.cos, jnp.sin))
    lo, hi = jnp.split(x, 2, -1)
    return jnp.concatenate([lo * cos - hi * sin, hi * cos + lo * sin], -1)


@spelled("halves by slices", BHTD, moves=0)
def half_slices(x):
    cos, sin = jnp.cos(angles(6, 8)), jnp.sin(angles(6, 8))
    lo, hi = x[..., :4], x[..., 4:]
    return jnp.concatenate((lo * cos - hi * sin, lo * sin + hi * cos), axis=-1)


@spelled("halves by reshape")
def half_reshape(x):
    cos, sin = (f(angles(6, 8))[:, None] for f in (jnp.cos, jnp.sin))
    pairs = x.reshape(2, 6, 4, 2, 4)
    lo, hi = pairs[..., 0, :], pairs[..., 1, :]
    return jnp.stack([lo * cos - hi * sin, hi * cos + lo * sin], -2).reshape(x.shape)


@spelled("interleaved by ::2 and stack")
def interleaved(x):
    cos, sin = (f(angles(6, 8))[None, :, None] for f in (jnp.cos, jnp.sin))
    even, odd = x[..., ::2], x[..., 1::2]
    return jnp.stack([even * cos - odd * sin, odd * cos + even * sin], -1).reshape(x.shape)


@spelled("interleaved by reshape", BHTD, moves=0)
def interleaved_reshape(x):
    cos, sin = jnp.cos(angles(6, 8)), jnp.sin(angles(6, 8))
    pairs = x.reshape(*x.shape[:-1], -1, 2)
    even, odd = pairs[..., 0], pairs[..., 1]
    return jnp.stack([even * cos - odd * sin, even * sin + odd * cos], -1).reshape(x.shape)


@spelled("interleaved with repeated tables")
def interleaved_repeat(x):
    cos, sin = (jnp.repeat(f(angles(6, 8)), 2, -1)[:, None] for f in (jnp.cos, jnp.sin))
    turned = jnp.stack([-x[..., 1::2], x[..., ::2]], -1).reshape(x.shape)
    return x * cos + turned * sin


@spelled("complex numbers")
def complex_product(x):
    pairs = x.reshape(2, 6, 4, 4, 2)
    turned = jax.lax.complex(pairs[..., 0], pairs[..., 1]) * jnp.exp(1j * angles(6, 8))[:, None]
    return jnp.stack([turned.real, turned.imag], -1).reshape(x.shape)


@spelled("complex numbers, halves")
def complex_halves(x):
    lo, hi = jnp.split(x, 2, -1)
    turned = (lo + 1j * hi) * jnp.exp(1j * angles(6, 8))[None, :, None]
    return jnp.concatenate([jnp.real(turned), jnp.imag(turned)], -1)


@spelled("interleaved by at[..., ::2].set", BHTD, moves=0)
def interleaved_updates(x):
    cos, sin = jnp.cos(angles(6, 8)), jnp.sin(angles(6, 8))
    even, odd = x[..., ::2], x[..., 1::2]
    y = jnp.zeros_like(x).at[..., ::2].set(even * cos - odd * sin)
    return y.at[..., 1::2].set(odd * cos + even * sin)


@spelled("halves by at[..., :4].set", BHTD, moves=0)
def half_updates(x):
    cos, sin = jnp.cos(angles(6, 8)), jnp.sin(angles(6, 8))
    lo, hi = x[..., :4], x[..., 4:]
    return x.at[..., :4].set(lo * cos - hi * sin).at[..., 4:].set(hi * cos + lo * sin)


@spelled("halves by roll and a sign", BHTD, moves=0)
def half_roll(x):
    table = jnp.tile(angles(6, 8), (1, 2))
    sign = jnp.repeat(jnp.array([-1.0, 1.0]), 4)
    return x * jnp.cos(table) + jnp.roll(x, 4, -1) * (sign * jnp.sin(table))


@spelled("a part of the features", [f32(2, 4, 6, 12)], moves=2)
def partial(x):
    cos, sin = jnp.cos(angles(6, 8)), jnp.sin(angles(6, 8))
    lo, hi, rest = x[..., :4], x[..., 4:8], x[..., 8:]
    return jnp.concatenate([lo * cos - hi * sin, hi * cos + lo * sin, rest], -1)


@spelled("one sequence", [f32(6, 8)], moves=2)
def one_sequence(x):
    table = jnp.concatenate([angles(6, 8)] * 2, -1)
    return x * jnp.cos(table) + rotate_half(x) * jnp.sin(table)


@spelled("f32 inside bf16", [bf16(2, 6, 4, 8)])
def wide(x):
    cos, sin = (f(angles(6, 8))[:, None] for f in (jnp.cos, jnp.sin))
    lo, hi = jnp.split(x.astype(jnp.float32), 2, -1)
    out = jnp.concatenate([lo * cos - hi * sin, hi * cos + lo * sin], -1)
    return out.astype(x.dtype)


@spelled("dynamic length", [f32("B", "T", 4, 8)], moves=12)
def dynamic(x):
    cos, sin = (f(angles(x.shape[1], 8))[None, :, None] for f in (jnp.cos, jnp.sin))
    lo, hi = jnp.split(x, 2, -1)
    return jnp.concatenate([lo * cos - hi * sin, hi * cos + lo * sin], -1)


@spelled("tables as inputs", [*X, f32(6, 4), f32(6, 4)], moves=4)
def given_tables(x, cos, sin):
    cos, sin = cos[:, None], sin[:, None]
    lo, hi = jnp.split(x, 2, -1)
    return jnp.concatenate([lo * cos - hi * sin, hi * cos + lo * sin], -1)


@spelled("inverse rotation")
def inverse(x):
    cos, sin = (f(angles(6, 8))[None, :, None] for f in (jnp.cos, jnp.sin))
    lo, hi = jnp.split(x, 2, -1)
    return jnp.concatenate([lo * cos + hi * sin, hi * cos - lo * sin], -1)


@spelled("vmap over batch and heads", X)
def vmapped(x):
    cos, sin = jnp.cos(angles(6, 8)), jnp.sin(angles(6, 8))

    def one(x):
        lo, hi = jnp.split(x, 2, -1)
        return jnp.concatenate([lo * cos - hi * sin, hi * cos + lo * sin], -1)

    return jax.vmap(jax.vmap(one, 1, 1))(x)


@spelled("q and k of attention", [f32(2, 6, 4, 8)] * 3, moves=4, RotaryEmbedding=2, Attention=1)
def in_attention(q, k, v):
    return jax.nn.dot_product_attention(half_split(q), half_split(k), v, is_causal=True)


ROTARY = eqx.nn.RotaryPositionalEmbedding


def equinox_row(name, make, call, inputs, moves, **ops):
    wanted = {"RotaryEmbedding": 1, **ops}
    fn = with_equinox(make, call)
    return Row("rotary", "equinox", name, fn, inputs, wanted, moves)


def rotated_attention(module, x):
    attention, rotary = module

    def process(q, k, v):
        return jax.vmap(rotary, 1, 1)(q), jax.vmap(rotary, 1, 1)(k), v

    return attention(x, x, x, process_heads=process)


def two_layers(module, x):
    (first, second), rotary = module
    return rotated_attention((second, rotary), rotated_attention((first, rotary), x))


def attention():
    return eqx.nn.MultiheadAttention(4, 32, key=KEY)


EQUINOX = [
    equinox_row("RotaryPositionalEmbedding", lambda: ROTARY(8), None, [f32(6, 8)], moves=2),
    equinox_row(
        "RotaryPositionalEmbedding, vmap of heads",
        lambda: ROTARY(8),
        lambda m, x: jax.vmap(m, 1, 1)(x),
        [f32(6, 4, 8)],
        moves=2,
    ),
    equinox_row(
        "RotaryPositionalEmbedding, vmap of batch and heads",
        lambda: ROTARY(8),
        lambda m, x: jax.vmap(jax.vmap(m, 1, 1))(x),
        X,
        moves=2,
    ),
    equinox_row(
        "process_heads",
        lambda: (attention(), ROTARY(8)),
        rotated_attention,
        [f32(6, 32)],
        moves=2,
        RotaryEmbedding=2,
        Attention=1,
    ),
    equinox_row(
        "process_heads, vmap",
        lambda: (attention(), ROTARY(8)),
        over_batch(rotated_attention),
        [f32(2, 6, 32)],
        moves=0,
        RotaryEmbedding=2,
        Attention=1,
    ),
    equinox_row(
        "two layers share their tables",
        lambda: ((attention(), attention()), ROTARY(8)),
        over_batch(two_layers),
        [f32(2, 6, 32)],
        moves=0,
        RotaryEmbedding=4,
        Attention=2,
    ),
]
ROWS += EQUINOX

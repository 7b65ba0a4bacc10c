# SPDX-License-Identifier: Apache-2.0
"""More attention by hand: masks, groups, scales and normalisations in places where few put them.

Unless a row says otherwise q, k and v are (batch, heads, time, size).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from raising.table import Row
from support.cases import bf16, boolean, f16, f32, i32

softmax, exp = jax.nn.softmax, jnp.exp
QKV = [f32(2, 4, 5, 8), f32(2, 4, 7, 8), f32(2, 4, 7, 8)]
SELF = [f32(2, 4, 6, 8)] * 3
SYMBOLIC = [f32("B", 4, "T", 8)] * 3
MASKED = [*QKV, boolean(5, 7)]
GROUPED = [f32(2, 8, 5, 8), f32(2, 2, 7, 8), f32(2, 2, 7, 8)]
INFINITY = jnp.inf
LOWEST = {dtype: float(jnp.finfo(dtype).min) for dtype in (jnp.float32, jnp.float16, jnp.bfloat16)}
ROWS: list[Row] = []


def hand(name, fn, inputs=QKV, moves=0):
    wanted = {"Attention": 1, "Softmax": 0, "MatMul": 0}
    ROWS.append(Row("attention", "by hand", name, fn, inputs, wanted, moves))


def scores(q, k):
    return jnp.einsum("bhtd,bhsd->bhts", q, k)


def values(weights, v):
    return jnp.einsum("bhts,bhsd->bhtd", weights, v)


def masked(keep, fill):
    """Attention of scores that are `fill` where `keep` is false."""
    return lambda q, k, v: values(softmax(jnp.where(keep(q, k), scores(q, k) / 3, fill)), v)


def given_mask(fill):
    return lambda q, k, v, keep: masked(lambda q, k: keep, fill)(q, k, v)


def positions(keep, fill=-1e9):
    """Attention with a mask that compares positions of queries and keys."""
    return masked(lambda q, k: keep(jnp.arange(q.shape[2])[:, None], jnp.arange(k.shape[2])), fill)


def without_row_2(keep):
    return keep & (jnp.arange(5)[:, None] != 2)


# --- axes

hand(
    "vmap of vmap of vmap of 2-D",
    jax.vmap(jax.vmap(jax.vmap(lambda q, k, v: softmax(q @ k.T / 3) @ v))),
    [f32(2, 3, 4, 5, 8)] * 3,
    moves=4,
)
hand(
    "vmap of other axes",
    jax.vmap(jax.vmap(lambda q, k, v: softmax(q @ k.T) @ v, 2, 0), 1, 3),
    [f32(5, 2, 8, 3)] * 3,
    moves=4,
)
hand("q, k and v are one tensor", lambda x: softmax(x @ x.mT / 3) @ x, [f32(2, 5, 8)])
hand(
    "keys and values transposed, softmax down",
    lambda q, k, v: (v @ softmax(k.T @ q, axis=0)).T,
    [f32(8, 5), f32(8, 7), f32(8, 7)],
    moves=7,
)

# --- scales

hand("fourth root on both", lambda q, k, v: values(softmax(scores(q * 0.6, k * 0.6)), v))
hand("rsqrt of the size", lambda q, k, v: values(softmax(scores(q, k) * lax.rsqrt(8.0)), v))
hand("negative scale", lambda q, k, v: values(softmax(-scores(q, k)), v))
hand(
    "a temperature for each head",
    lambda q, k, v, t: values(softmax(scores(q, k) * t), v),
    [*QKV, f32(4, 1, 1, lo=0.5, hi=2)],
)
hand(
    "a temperature on q and a scale on k",
    lambda q, k, v, t: values(softmax(scores(q / t, k / 3)), v),
    [*QKV, f32(lo=0.5, hi=2)],
)
hand(
    "cosine similarity",
    lambda q, k, v: values(softmax(scores(*map(unit, (q, k))) * 10), v),
)


def unit(x):
    return x / jnp.linalg.norm(x, axis=-1, keepdims=True)


# --- masks

hand("finfo.min, f16", given_mask(LOWEST[jnp.float16]), [*[f16(2, 4, 5, 8)] * 3, boolean(5, 5)])
hand("finfo.min, bf16", given_mask(LOWEST[jnp.bfloat16]), [*[bf16(2, 4, 5, 8)] * 3, boolean(5, 5)])
hand("half of finfo.min", given_mask(LOWEST[jnp.float32] / 2), MASKED)
for fill in (-INFINITY, -1e10, -1e4):
    hand(
        f"a row without keys, {fill}",
        lambda q, k, v, keep, fill=fill: given_mask(fill)(q, k, v, without_row_2(keep)),
        MASKED,
    )
hand(
    "a row without keys, (1 - m) * -1e9",
    lambda q, k, v, m: values(softmax(scores(q, k) + (1.0 - without_row_2(m)) * -1e9), v),
    MASKED,
)
hand(
    "nan_to_num of a row without keys",
    lambda q, k, v, m: values(
        jnp.nan_to_num(softmax(jnp.where(without_row_2(m), scores(q, k), -INFINITY))), v
    ),
    MASKED,
)
hand("row 0 without keys", positions(lambda t, s: t > s), SELF)
hand("row 0 without keys, -inf", positions(lambda t, s: t > s, -INFINITY), SELF)
hand("from the diagonal on", positions(lambda t, s: t <= s, -INFINITY), SELF)
hand(
    "fewer keys than queries, causal",
    positions(lambda t, s: t >= s, -INFINITY),
    [QKV[1], *SELF[:2]],
)
hand("causal from the end", positions(lambda t, s: t + 2 >= s, -INFINITY))
hand("a window by abs", positions(lambda t, s: jnp.abs(t - s) < 3), SELF)
hand("blocks, causal", positions(lambda t, s: t // 2 >= s // 2), SELF)
hand(
    "causal by tri, symbolic", masked(lambda q, k: jnp.tri(q.shape[2], dtype=bool), -1e9), SYMBOLIC
)
hand(
    "two wheres, causal and padding",
    lambda q, k, v, m: values(
        softmax(
            jnp.where(
                m[:, None, None],
                jnp.where(jnp.tri(6, dtype=bool), scores(q, k), -1e9),
                -1e9,
            )
        ),
        v,
    ),
    [*SELF, boolean(2, 6)],
    moves=1,
)
hand(
    "segments",
    lambda q, k, v, ids: given_mask(-1e9)(q, k, v, (ids[:, :, None] == ids[:, None])[:, None]),
    [*SELF, i32(2, 6, lo=0, hi=2)],
    moves=2,
)
hand(
    "a prefix that all see",
    lambda q, k, v, n: positions(lambda t, s: (t >= s) | (s < n))(q, k, v),
    [*SELF, i32(lo=1, hi=4)],
)
hand(
    "lengths of the batch",
    lambda q, k, v, n: given_mask(-1e9)(q, k, v, (jnp.arange(6) < n[:, None])[:, None, None]),
    [*SELF, i32(2, lo=0, hi=6)],
    moves=2,
)
hand(
    "where(m, s, s - 1e9)",
    lambda q, k, v, m: (lambda s: values(softmax(jnp.where(m, s, s - 1e9)), v))(scores(q, k) / 3),
    MASKED,
)
hand(
    "where(m, s - 1e9, s), causal",
    lambda q, k, v: (lambda s: values(softmax(jnp.where(~jnp.tri(6, dtype=bool), s - 1e9, s)), v))(
        scores(q, k)
    ),
    SELF,
)

# --- biases

RELATIVE = np.random.default_rng(0).standard_normal((11, 4)).astype(np.float32)
DISTANCE = np.arange(6)[:, None] - np.arange(6)
hand(
    "T5: a constant table by distance",
    lambda q, k, v: values(softmax(scores(q, k) + RELATIVE[DISTANCE + 5].transpose(2, 0, 1)), v),
    SELF,
)
hand(
    "T5: a given table by clipped distance",
    lambda q, k, v, table: values(
        softmax(scores(q, k) + table[jnp.clip(DISTANCE + 4, 0, 7)].transpose(2, 0, 1)), v
    ),
    [*SELF, f32(8, 4)],
    moves=2,
)


# --- groups of heads

hand(
    "repeat of heads",
    lambda q, k, v: values(softmax(scores(q, jnp.repeat(k, 4, 1)) / 3), jnp.repeat(v, 4, 1)),
    GROUPED,
)
hand(
    "repeat of heads and a bias for each",
    lambda q, k, v, b: values(softmax(scores(q, jnp.repeat(k, 4, 1)) + b), jnp.repeat(v, 4, 1)),
    [*GROUPED, f32(8, 5, 7)],
)
hand(
    "tile of heads",
    lambda q, k, v: values(softmax(scores(q, tiled(k)) / 3), tiled(v)),
    GROUPED,
    moves=6,
)
hand(
    "a group axis by reshape",
    lambda q, k, v: (
        softmax(q.reshape(2, 2, 4, 5, 8) @ k[:, :, None].mT / 3) @ v[:, :, None]
    ).reshape(2, 8, 5, 8),
    GROUPED,
)
hand(
    "groups in the time axis",
    lambda q, k, v: (softmax(q.reshape(2, 2, 20, 8) @ k.mT / 3) @ v).reshape(2, 2, 4, 5, 8),
    [f32(2, 2, 4, 5, 8), f32(2, 2, 7, 8), f32(2, 2, 7, 8)],
    moves=2,
)
hand(
    "one head of keys by broadcasting",
    lambda q, k, v: softmax(q @ k.mT / 3) @ v,
    [f32(2, 4, 5, 8), f32(2, 1, 7, 8), f32(2, 1, 7, 8)],
    moves=2,
)


def tiled(x):
    return jnp.tile(x, (1, 4, 1, 1))


# --- caps and normalisations

hand(
    "Gemma 2: cap, mask, f32 softmax in bf16",
    lambda q, k, v: values(
        softmax(
            jnp.where(
                jnp.tri(6, dtype=bool),
                jnp.tanh(scores(q, k).astype(jnp.float32) / 3 / 50) * 50,
                -2.3819763e38,
            )
        ).astype(jnp.bfloat16),
        v,
    ),
    [bf16(2, 4, 6, 8)] * 3,
)


def normalised(e):
    return e / e.sum(-1, keepdims=True)


def normalised_late(e, v):
    return values(e, v) / e.sum(-1, keepdims=True)


def shifted(q, k):
    s = scores(q, k)
    return s - s.max(-1, keepdims=True)


hand("late, with the maximum", lambda q, k, v: normalised_late(exp(shifted(q, k)), v))
hand(
    "late, by a product with ones",
    lambda q, k, v: (lambda e: values(e, v) / (e @ jnp.ones((7, 1))))(exp(scores(q, k))),
)
hand(
    "late, masked scores",
    lambda q, k, v, m: normalised_late(exp(jnp.where(m, scores(q, k), -1e9)), v),
    MASKED,
)
hand(
    "exponentials times a mask",
    lambda q, k, v, m: values(normalised(exp(shifted(q, k)) * m), v),
    MASKED,
)
hand(
    "exponentials set to zero",
    lambda q, k, v, m: values(normalised(jnp.where(m, exp(shifted(q, k)), 0.0)), v),
    MASKED,
)
hand(
    "exponentials times a mask, late",
    lambda q, k, v, m: normalised_late(exp(shifted(q, k)) * m, v),
    MASKED,
)
hand(
    "exponentials set to zero, late, causal",
    lambda q, k, v: normalised_late(jnp.where(jnp.tri(6, dtype=bool), exp(scores(q, k)), 0.0), v),
    SELF,
)
hand("weights times 1.25", lambda q, k, v: values(softmax(scores(q, k) / 3) * 1.25, v))

# --- a step of a decoder


@jax.vmap
def with_row(cache, row, at):
    return lax.dynamic_update_slice(cache, row[None], (at, 0, 0))


def decoded(q, k, v, keep):
    weights = softmax(jnp.where(keep, jnp.einsum("bhd,bshd->bhs", q, k) / 3, -1e9))
    return jnp.einsum("bhs,bshd->bhd", weights, v)


def decode(q, k, v, cached_k, cached_v, at):
    k, v = (
        lax.dynamic_update_slice(c, x, (0, at, 0, 0)) for c, x in ((cached_k, k), (cached_v, v))
    )
    return decoded(q, k, v, jnp.arange(16) <= at)


def decode_batch(q, k, v, cached_k, cached_v, at):
    k, v = with_row(cached_k, k, at), with_row(cached_v, v, at)
    return decoded(q, k, v, (jnp.arange(16) <= at[:, None])[:, None])


CACHES = [f32(2, 16, 4, 8)] * 2
hand(
    "a step with a cache",
    decode,
    [f32(2, 4, 8), *[f32(2, 1, 4, 8)] * 2, *CACHES, i32(lo=0, hi=15)],
    moves=7,
)
hand(
    "a step with a cache, places of a batch",
    decode_batch,
    [*[f32(2, 4, 8)] * 3, *CACHES, i32(2, lo=0, hi=15)],
    moves=17,
)

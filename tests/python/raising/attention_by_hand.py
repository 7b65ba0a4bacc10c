# SPDX-License-Identifier: Apache-2.0
"""Attention as people write it themselves."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import lax

from raising.table import Row
from support.cases import bf16, boolean, f16, f32

softmax = jax.nn.softmax
BTHD = [f32(2, 5, 4, 8), f32(2, 7, 4, 8), f32(2, 7, 4, 8)]
BHTD = [f32(2, 4, 5, 8), f32(2, 4, 7, 8), f32(2, 4, 7, 8)]
SELF = [f32(2, 5, 4, 8)] * 3
SPLIT_HEADS = 4
ROWS: list[Row] = []


def spelled(name, inputs=BHTD, moves=0, **ops):
    """Adds a function to the rows."""

    def add(fn):
        wanted = {"Attention": 1, "Softmax": 0, **ops}
        at_most = {"Transpose": 0} if moves <= SPLIT_HEADS else {}
        ROWS.append(Row("attention", "by hand", name, fn, inputs, wanted, moves, at_most=at_most))
        return fn

    return add


def scores_of(q, k):
    """bthd, bshd -> bhts, scaled."""
    return jnp.einsum("bthd,bshd->bhts", q, k) / math.sqrt(q.shape[-1])


def values_of(weights, v):
    return jnp.einsum("bhts,bshd->bthd", weights, v)


# --- layouts


@spelled("2-D, q @ k.T", [f32(5, 8), f32(7, 8), f32(7, 8)], moves=4, MatMul=0)
def two_dimensional(q, k, v):
    return softmax(q @ k.T / jnp.sqrt(8.0)) @ v


@spelled("3-D, batched matmul", [f32(2, 5, 8), f32(2, 7, 8), f32(2, 7, 8)], MatMul=0)
def one_head(q, k, v):
    return softmax(q @ k.swapaxes(-1, -2) * 8**-0.5, axis=-1) @ v


@spelled("einsum bthd,bshd->bhts", BTHD, SPLIT_HEADS)
def heads_inside(q, k, v):
    return values_of(softmax(scores_of(q, k)), v)


@spelled("einsum bhtd,bhsd->bhts")
def heads_outside(q, k, v):
    scores = jnp.einsum("bhtd,bhsd->bhts", q, k) / math.sqrt(8)
    return jnp.einsum("bhts,bhsd->bhtd", softmax(scores, -1), v)


@spelled("einsum with other letters", BTHD, SPLIT_HEADS)
def other_letters(q, k, v):
    scores = jnp.einsum("...qhd,...khd->...hqk", q, k) * 0.35
    return jnp.einsum("...hqk,...khd->...qhd", softmax(scores), v)


@spelled("k first in the contraction", BTHD, SPLIT_HEADS)
def keys_first(q, k, v):
    scores = jnp.einsum("bshd,bthd->bhst", k, q) / math.sqrt(8)
    return jnp.einsum("bshd,bhst->bthd", v, softmax(scores, axis=2))


@spelled("matmul and swapaxes")
def matmuls(q, k, v):
    return jnp.matmul(softmax(jnp.matmul(q, jnp.swapaxes(k, 2, 3)) / 2.8, -1), v)


@spelled("transpose, matmul, transpose", BTHD, SPLIT_HEADS)
def transposed(q, k, v):
    q, k, v = (x.transpose(0, 2, 1, 3) for x in (q, k, v))
    out = softmax(q @ k.transpose(0, 1, 3, 2) / jnp.sqrt(q.shape[-1]), -1) @ v
    return out.transpose(0, 2, 1, 3)


@spelled("lax.dot_general")
def dot_generals(q, k, v):
    scores = lax.dot_general(q, k, (((3,), (3,)), ((0, 1), (0, 1)))) * 0.35
    return lax.dot_general(softmax(scores, -1), v, (((3,), (2,)), ((0, 1), (0, 1))))


@spelled("time first, tbhd", [f32(5, 2, 4, 8), f32(7, 2, 4, 8), f32(7, 2, 4, 8)], moves=8)
def time_first(q, k, v):
    weights = softmax(jnp.einsum("tbhd,sbhd->bhts", q, k) * 0.35, -1)
    return jnp.einsum("bhts,sbhd->tbhd", weights, v)


@spelled("batch and heads merged", [f32(8, 5, 6), f32(8, 7, 6), f32(8, 7, 6)])
def merged_batch(q, k, v):
    weights = softmax(jnp.einsum("ntd,nsd->nts", q, k) / 2.4, -1)
    return jnp.einsum("nts,nsd->ntd", weights, v)


@spelled("5-D, two batch axes", [f32(2, 3, 5, 4, 8)] * 3, SPLIT_HEADS)
def five_dimensional(q, k, v):
    weights = softmax(jnp.einsum("abthd,abshd->abhts", q, k) / 3.0, -1)
    return jnp.einsum("abhts,abshd->abthd", weights, v)


@spelled("6-D, a grid of windows", [f32(2, 2, 3, 4, 5, 6)] * 3, moves=4)
def six_dimensional(q, k, v):
    weights = softmax(q @ k.swapaxes(-1, -2) / 2.5, -1)
    return weights @ v


@spelled("tokens of two axes", [f32(2, 3, 4, 4, 8)] * 3, SPLIT_HEADS)
def token_grid(q, k, v):
    scores = jnp.einsum("bxyhd,buvhd->bhxyuv", q, k) / 2.8
    weights = softmax(scores.reshape(*scores.shape[:4], -1), -1).reshape(scores.shape)
    return jnp.einsum("bhxyuv,buvhd->bxyhd", weights, v)


@spelled("projection of qkv at once", [f32(2, 5, 16)], moves=3)
def fused_projection(x):
    weight = jnp.sin(jnp.arange(16 * 48.0)).reshape(16, 48)
    q, k, v = jnp.split((x @ weight).reshape(2, 5, 3, 4, 4).transpose(2, 0, 3, 1, 4), 3)
    out = softmax(q[0] @ k[0].swapaxes(-1, -2) / 2.0) @ v[0]
    return out.swapaxes(1, 2).reshape(2, 5, 16)


@spelled("qkv by index, symbolic", [f32("B", "T", 16)], moves=6)
def indexed_projection(x):
    weight = jnp.sin(jnp.arange(16 * 48.0)).reshape(16, 48)
    qkv = (x @ weight).reshape(*x.shape[:2], 3, 4, 4)
    q, k, v = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
    return values_of(softmax(scores_of(q, k)), v).reshape(x.shape)


@spelled("vmap over heads of 2-D", BTHD, SPLIT_HEADS)
def vmapped_heads(q, k, v):
    def head(q, k, v):
        return softmax(q @ k.T / math.sqrt(8)) @ v

    return jax.vmap(jax.vmap(head, in_axes=1, out_axes=1))(q, k, v)


@spelled("vmap over batch of 3-D, symbolic", [f32("B", "T", 4, 8)] * 3, moves=8)
def vmapped_batch(q, k, v):
    def one(q, k, v):
        return jnp.einsum("hts,shd->thd", softmax(jnp.einsum("thd,shd->hts", q, k) / 3.0), v)

    return jax.vmap(one)(q, k, v)


# --- scale


@spelled("scale on q")
def scale_on_q(q, k, v):
    return softmax((q / math.sqrt(8)) @ k.mT) @ v


@spelled("scale on k")
def scale_on_k(q, k, v):
    return softmax(q @ (k * 0.35).mT) @ v


@spelled("scale split between q and k")
def scale_on_both(q, k, v):
    root = 8**-0.25
    return softmax((q * root) @ (k * root).mT) @ v


@spelled("no scale")
def no_scale(q, k, v):
    return softmax(q @ k.mT) @ v


@spelled("scale after the bias", [*BHTD, f32(4, 5, 7)], moves=1)
def scale_after_bias(q, k, v, bias):
    return softmax((q @ k.mT + bias) * 0.35) @ v


# --- masks


@spelled("where, -1e9", [*BTHD, boolean(2, 1, 5, 7)], SPLIT_HEADS)
def where_large(q, k, v, keep):
    return values_of(softmax(jnp.where(keep, scores_of(q, k), -1e9)), v)


@spelled("where, finfo.min", [*BTHD, boolean(5, 7)], SPLIT_HEADS)
def where_min(q, k, v, keep):
    scores = scores_of(q, k)
    return values_of(softmax(jnp.where(keep, scores, jnp.finfo(scores.dtype).min)), v)


@spelled("where, -inf, causal", SELF, SPLIT_HEADS)
def where_infinite(q, k, v):
    keep = jnp.tril(jnp.ones((5, 5), bool))
    return values_of(softmax(jnp.where(keep, scores_of(q, k), -jnp.inf)), v)


@spelled("where with the arms swapped", [*BTHD, boolean(2, 1, 5, 7)], SPLIT_HEADS)
def where_drop(q, k, v, drop):
    return values_of(softmax(jnp.where(drop, -1e30, scores_of(q, k))), v)


@spelled("mask == 0, -1e4", [*BTHD, f32(2, 1, 1, 7)], SPLIT_HEADS + 1)
def mask_of_floats(q, k, v, mask):
    return values_of(softmax(jnp.where(mask > 0, scores_of(q, k), -1e4)), v)


@spelled("additive mask as an input", [*BTHD, f32(1, 1, 5, 7)], SPLIT_HEADS)
def additive(q, k, v, mask):
    return values_of(softmax(scores_of(q, k) + mask), v)


@spelled("(1 - mask) * -1e9", [*BTHD, f32(2, 7, lo=1, hi=1)], SPLIT_HEADS + 2)
def one_minus_mask(q, k, v, mask):
    return values_of(softmax(scores_of(q, k) + (1.0 - mask[:, None, None]) * -1e9), v)


@spelled("where(mask, 0, -inf) added", SELF, SPLIT_HEADS)
def additive_causal(q, k, v):
    mask = jnp.where(jnp.tril(jnp.ones((5, 5))) == 1, 0.0, -jnp.inf)
    return values_of(softmax(scores_of(q, k) + mask), v)


@spelled("causal by arange", SELF, SPLIT_HEADS)
def causal_arange(q, k, v):
    i = jnp.arange(5)
    return values_of(softmax(jnp.where(i[:, None] >= i[None], scores_of(q, k), -1e9)), v)


@spelled("causal by broadcasted_iota, symbolic", [f32("B", "T", 4, 8)] * 3, moves=8)
def causal_iota(q, k, v):
    scores = scores_of(q, k)
    rows = lax.broadcasted_iota(jnp.int32, scores.shape, 2)
    columns = lax.broadcasted_iota(jnp.int32, scores.shape, 3)
    return values_of(softmax(jnp.where(columns <= rows, scores, -1e30)), v)


@spelled("causal by triu(k=1)", SELF, SPLIT_HEADS)
def causal_triu(q, k, v):
    mask = jnp.triu(jnp.full((5, 5), -1e9), k=1)
    return values_of(softmax(scores_of(q, k) + mask), v)


@spelled("causal by tri of numpy", SELF, SPLIT_HEADS)
def causal_tri(q, k, v):
    import numpy as np

    return values_of(softmax(jnp.where(np.tri(5, dtype=bool), scores_of(q, k), -1e10)), v)


@spelled("causal and bias", [*SELF, f32(4, 5, 5)], SPLIT_HEADS + 1)
def causal_and_bias(q, k, v, bias):
    scores = jnp.where(jnp.tri(5, dtype=bool), scores_of(q, k) + bias, jnp.finfo(jnp.float32).min)
    return values_of(softmax(scores), v)


@spelled("causal and padding", [*SELF, boolean(2, 5)], SPLIT_HEADS + 2)
def causal_and_padding(q, k, v, keep):
    keep = keep[:, None, None, :] & jnp.tri(5, dtype=bool)
    return values_of(softmax(jnp.where(keep, scores_of(q, k), -1e9)), v)


@spelled("a window", SELF, SPLIT_HEADS)
def window(q, k, v):
    distance = jnp.arange(5)[:, None] - jnp.arange(5)
    return values_of(softmax(jnp.where(jnp.abs(distance) <= 2, scores_of(q, k), -1e9)), v)


@spelled("a causal window", SELF, SPLIT_HEADS)
def causal_window(q, k, v):
    i, j = jnp.arange(5)[:, None], jnp.arange(5)
    keep = (j <= i) & (j > i - 3)
    return values_of(softmax(jnp.where(keep, scores_of(q, k), -1e9)), v)


@spelled("ALiBi", SELF, SPLIT_HEADS)
def alibi(q, k, v):
    distance = jnp.arange(5) - jnp.arange(5)[:, None]
    bias = (2.0 ** -jnp.arange(1, 5))[:, None, None] * distance
    scores = jnp.where(distance <= 0, scores_of(q, k) + bias, -1e9)
    return values_of(softmax(scores), v)


@spelled("relative position table", [f32(2, 4, 5, 8)] * 3)
def relative_positions(q, k, v):
    table = jnp.cos(jnp.arange(4 * 9.0)).reshape(4, 9)
    index = jnp.arange(5)[:, None] - jnp.arange(5) + 4
    return softmax(q @ k.mT / 2.8 + table[:, index]) @ v


@spelled("softmax(where=)", [*BTHD, boolean(2, 1, 5, 7)], SPLIT_HEADS)
def softmax_where(q, k, v, keep):
    return values_of(softmax(scores_of(q, k), where=keep), v)


@spelled("weights of masked keys set to zero", [*BTHD, boolean(2, 1, 5, 7)], SPLIT_HEADS)
def guarded(q, k, v, keep):
    weights = softmax(jnp.where(keep, scores_of(q, k), -1e9))
    return values_of(jnp.where(keep, weights, 0.0), v)


# --- softmax


@spelled("soft cap, causal", SELF, SPLIT_HEADS)
def soft_cap(q, k, v):
    scores = 30.0 * jnp.tanh(scores_of(q, k) / 30.0)
    return values_of(softmax(jnp.where(jnp.tri(5, dtype=bool), scores, -1e9)), v)


@spelled("exp, sum and division", BTHD, SPLIT_HEADS)
def by_exp(q, k, v):
    scores = scores_of(q, k)
    e = jnp.exp(scores - scores.max(-1, keepdims=True))
    return values_of(e / e.sum(-1, keepdims=True), v)


@spelled("exp without the maximum", [f32(*s.shape, lo=-1, hi=1) for s in BTHD], SPLIT_HEADS)
def by_exp_only(q, k, v):
    e = jnp.exp(scores_of(q, k))
    return values_of(e / jnp.sum(e, -1, keepdims=True), v)


@spelled("exp(x - logsumexp(x))", BTHD, SPLIT_HEADS)
def by_logsumexp(q, k, v):
    scores = scores_of(q, k)
    return values_of(jnp.exp(scores - jax.nn.logsumexp(scores, -1, keepdims=True)), v)


@spelled("exp(log_softmax(x))", BTHD, SPLIT_HEADS)
def by_log_softmax(q, k, v):
    return values_of(jnp.exp(jax.nn.log_softmax(scores_of(q, k))), v)


@spelled("normalised after the values", BTHD, SPLIT_HEADS)
def late(q, k, v):
    scores = scores_of(q, k)
    e = jnp.exp(scores - scores.max(-1, keepdims=True))
    return values_of(e, v) / e.sum(-1).swapaxes(1, 2)[..., None]


@spelled("normalised after the values, matmul")
def late_matmul(q, k, v):
    scores = q @ k.mT / 2.8
    e = jnp.exp(scores - lax.stop_gradient(jnp.max(scores, -1, keepdims=True)))
    return (e @ v) / jnp.sum(e, -1, keepdims=True)


@spelled("f32 softmax in bf16", [bf16(2, 5, 4, 8)] * 3, SPLIT_HEADS)
def wide_softmax_bf16(q, k, v):
    weights = softmax(scores_of(q, k).astype(jnp.float32)).astype(jnp.bfloat16)
    return values_of(weights, v)


@spelled("f32 softmax in f16", [f16(2, 4, 5, 8)] * 3)
def wide_softmax_f16(q, k, v):
    weights = softmax((q @ k.mT * 0.35).astype(jnp.float32)).astype(q.dtype)
    return weights @ v


@spelled("f32 scores from bf16", [bf16(2, 5, 4, 8)] * 3, SPLIT_HEADS)
def wide_scores(q, k, v):
    scores = jnp.einsum("bthd,bshd->bhts", q, k, preferred_element_type=jnp.float32) * 0.35
    return values_of(softmax(scores).astype(q.dtype), v)


# --- grouped heads


@spelled("repeat of k and v", [f32(2, 5, 4, 8), *[f32(2, 7, 2, 8)] * 2], SPLIT_HEADS)
def repeated(q, k, v):
    k, v = (jnp.repeat(x, 2, axis=2) for x in (k, v))
    return values_of(softmax(scores_of(q, k)), v)


@spelled("broadcast of k and v", [f32(2, 4, 5, 8), *[f32(2, 2, 7, 8)] * 2])
def broadcast(q, k, v):
    k, v = (jnp.broadcast_to(x[:, :, None], (2, 2, 2, 7, 8)).reshape(2, 4, 7, 8) for x in (k, v))
    return softmax(q @ k.mT / 2.8) @ v


@spelled("a group axis in q", [f32(2, 5, 6, 8), *[f32(2, 7, 3, 8)] * 2], SPLIT_HEADS)
def group_axis(q, k, v):
    q = q.reshape(2, 5, 3, 2, 8)
    weights = softmax(jnp.einsum("btkgd,bskd->bkgts", q, k) / 2.8)
    return jnp.einsum("bkgts,bskd->btkgd", weights, v).reshape(2, 5, 6, 8)


@spelled("one head of keys", [f32(2, 5, 4, 8), *[f32(2, 7, 8)] * 2], moves=2)
def multi_query(q, k, v):
    weights = softmax(jnp.einsum("bthd,bsd->bhts", q, k) / 2.8)
    return jnp.einsum("bhts,bsd->bthd", weights, v)


@spelled("repeat, causal, symbolic", [f32("B", "T", 4, 8), *[f32("B", "T", 2, 8)] * 2], moves=8)
def repeated_symbolic(q, k, v):
    k, v = (jnp.repeat(x, 2, axis=2) for x in (k, v))
    scores = scores_of(q, k)
    keep = jnp.tri(q.shape[1], dtype=bool)
    return values_of(softmax(jnp.where(keep, scores, -1e9)), v)


# --- uses


@spelled("Perceiver: queries without a batch", [f32(2, 7, 4, 8)] * 2, moves=5)
def perceiver(k, v):
    latents = jnp.sin(jnp.arange(5 * 4 * 8.0)).reshape(5, 4, 8)
    weights = softmax(jnp.einsum("thd,bshd->bhts", latents, k) / 2.8)
    return values_of(weights, v)


@spelled("decode: one query and a cache", [f32(2, 4, 8), *[f32(2, 7, 4, 8)] * 2], moves=5)
def decode_step(q, k, v):
    weights = softmax(jnp.einsum("bhd,bshd->bhs", q, k) / 2.8)
    return jnp.einsum("bhs,bshd->bhd", weights, v)


@spelled("pooling: one learned query", [f32(2, 7, 8)], moves=3)
def attention_pooling(x):
    query = jnp.sin(jnp.arange(8.0))
    return jnp.einsum("bs,bsd->bd", softmax(x @ query / 2.8), x)


@spelled("checkpoint", BTHD, SPLIT_HEADS)
def checkpointed(q, k, v):
    return jax.checkpoint(lambda q, k, v: values_of(softmax(scores_of(q, k)), v))(q, k, v)


@spelled("channel attention: tokens are features", [f32(2, 4, 5, 8)] * 3, moves=6)
def transposed_attention(q, k, v):
    weights = softmax(q.mT @ k / math.sqrt(5))
    return (weights @ v.mT).mT


@spelled("dropout that is off", BHTD)
def dropout_off(q, k, v):
    weights = softmax(q @ k.mT / 2.8)
    keep = jnp.ones(weights.shape, bool)
    return jnp.where(keep, weights / 1.0, 0.0) @ v

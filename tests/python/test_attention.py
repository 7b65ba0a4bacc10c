# SPDX-License-Identifier: Apache-2.0
"""Attention in many spellings: one node, JAX's numbers, little data movement."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxport
from support.cases import bf16, boolean, case, check, f16, f32, f64, i32, parity, structs

KEY = jax.random.key(0)
DPA = jax.nn.dot_product_attention
softmax = jax.nn.softmax


def scores(q, k):
    return jnp.einsum("bthd,bshd->bhts", q, k)


def values(weights, v):
    return jnp.einsum("bhts,bshd->bthd", weights, v)


def attend(q, k, v, change=lambda s: s):
    """Heads after positions; `change` is done to the scores."""
    return values(softmax(change(scores(q, k) / math.sqrt(q.shape[-1])), -1), v)


def positions(q, k):
    return jnp.arange(q.shape[1])[:, None], jnp.arange(k.shape[1])[None, :]


# --- contractions


def heads_first(q, k, v):
    weights = softmax(jnp.einsum("bhtd,bhsd->bhts", q / math.sqrt(q.shape[-1]), k), -1)
    return jnp.einsum("bhts,bhsd->bhtd", weights, v)


def matmuls(q, k, v):
    return jnp.matmul(softmax(jnp.matmul(q, jnp.swapaxes(k * 0.5, -1, -2)), -1), v)


def transposed_scores(q, k, v):
    weights = softmax(jnp.einsum("bshd,bthd->bhst", k, q), axis=-2)
    return jnp.einsum("bshd,bhst->bthd", v, weights)


def split_scale(q, k, v):
    root = q.shape[-1] ** -0.25
    return values(softmax(scores(q * root, k * root), -1), v)


def scale_of_heads(q, k, v, scale):
    return attend(q, k, v, lambda s: s * scale[:, None, None])


def temperature(q, k, v, scale):
    return attend(q, k, v, lambda s: s / scale)


def negative(q, k, v):
    return attend(q, k, v, jnp.negative)


def one_query(q, k, v):
    return jnp.einsum("bhs,bshd->bhd", softmax(jnp.einsum("bhd,bshd->bhs", q, k), -1), v)


def one_query_in_groups(q, k, v):
    q = q.reshape(q.shape[0], k.shape[2], -1, q.shape[-1])
    return jnp.einsum("bkgs,bskd->bkgd", softmax(jnp.einsum("bkgd,bskd->bkgs", q, k), -1), v)


def latents(q, k, v):
    return values(softmax(jnp.einsum("thd,bshd->bhts", q, k), -1), v)


def token_grid(x):
    tokens = x.reshape(x.shape[0], -1, x.shape[-1])
    weights = softmax(jnp.einsum("btd,bsd->bts", tokens, tokens), -1)
    return jnp.einsum("bts,bsd->btd", weights, tokens).reshape(x.shape)


def two_key_axes(q, k, v):
    weights = softmax(jnp.einsum("bthd,buwhd->bhtuw", q, k), (-2, -1))
    return jnp.einsum("bhtuw,buwhd->bthd", weights, v)


# --- groups of heads that share keys


def grouped(q, k, v):
    q = q.reshape(*q.shape[:2], k.shape[2], -1, q.shape[-1])
    weights = softmax(jnp.einsum("btkgd,bskd->bkgts", q, k), -1)
    return jnp.einsum("bkgts,bskd->btkgd", weights, v)


def repeated(q, k, v):
    times = q.shape[2] // k.shape[2]
    return attend(q, jnp.repeat(k, times, axis=2), jnp.repeat(v, times, axis=2))


def broadcast(q, k, v):
    times = q.shape[2] // k.shape[2]

    def more(x):
        b, s, h, d = x.shape
        return jnp.broadcast_to(x[:, :, :, None], (b, s, h, times, d)).reshape(b, s, h * times, d)

    return attend(q, more(k), more(v))


def vmap_over_groups(q, k, v):
    q = q.reshape(*q.shape[:2], k.shape[2], -1, q.shape[-1])
    return jax.vmap(attend, in_axes=(3, None, None), out_axes=3)(q, k, v)


def one_key_head(q, k, v):
    weights = softmax(jnp.einsum("bthd,bsd->bhts", q, k), -1)
    return jnp.einsum("bhts,bsd->bthd", weights, v)


# --- the softmax


def naive(q, k, v):
    e = jnp.exp(scores(q, k))
    return values(e / e.sum(-1, keepdims=True), v)


def base_two(q, k, v):
    s = scores(q, k) * math.log2(math.e)
    e = jnp.exp2(s - s.max(-1, keepdims=True))
    return values(e / e.sum(-1, keepdims=True), v)


def minus_logsumexp(q, k, v):
    s = scores(q, k)
    return values(jnp.exp(s - jax.nn.logsumexp(s, -1, keepdims=True)), v)


def late_normalisation(q, k, v):
    s = scores(q, k)
    e = jnp.exp(s - s.max(-1, keepdims=True))
    return values(e, v) / jnp.swapaxes(e.sum(-1), 1, 2)[..., None]


def late_reciprocal(q, k, v):
    s = scores(q, k)
    e = jnp.exp(s - s.max(-1, keepdims=True))
    return values(e, v) * (1 / jnp.swapaxes(e.sum(-1), 1, 2)[..., None])


def capped(q, k, v):
    return attend(q, k, v, lambda s: 5.0 * jnp.tanh(s / 5.0))


def wide_softmax(q, k, v):
    """In a narrow model, scores and weights are f32."""
    s = scores(q, k).astype(jnp.float32) / math.sqrt(q.shape[-1])
    return values(softmax(s, -1).astype(v.dtype), v)


def wide_scores(q, k, v):
    s = jnp.einsum("bthd,bshd->bhts", q, k, preferred_element_type=jnp.float32)
    return values(softmax(s, -1).astype(v.dtype), v)


# --- masks


def where_mask(fill):
    return lambda q, k, v, keep: attend(q, k, v, lambda s: jnp.where(keep, s, fill))


def added_mask(fill):
    return lambda q, k, v, keep: attend(q, k, v, lambda s: s + jnp.where(keep, 0.0, fill))


def one_minus_mask(q, k, v, keep):
    return attend(q, k, v, lambda s: s + (1.0 - keep.astype(jnp.float32)) * -1e9)


def two_masks(q, k, v, keep):
    row, column = positions(q, k)
    return attend(q, k, v, lambda s: jnp.where(keep, jnp.where(column <= row, s, -jnp.inf), -1e9))


def guarded(fill):
    def fn(q, k, v, keep):
        weights = softmax(jnp.where(keep, scores(q, k), fill), -1)
        return values(jnp.where(keep, weights, 0), v)

    return fn


def guarded_rows(q, k, v, keep):
    weights = softmax(jnp.where(keep, scores(q, k), -1e30), -1)
    return values(jnp.where(keep.any(-1, keepdims=True), weights, 0), v)


def guarded_product(q, k, v, keep):
    weights = softmax(jnp.where(keep, scores(q, k), -1e30), -1)
    return values(weights * keep, v)


def without_nan(replace):
    def fn(q, k, v, keep):
        return values(replace(softmax(jnp.where(keep, scores(q, k), -jnp.inf), -1)), v)

    return fn


def gated(q, k, v, gate):
    return values(softmax(scores(q, k), -1) * gate[:, None, None] / 0.9, v)


def vmap_over_masks(q, k, v, keep):
    return jax.vmap(lambda one: DPA(q, k, v, mask=one))(keep)


def where_argument(q, k, v, keep):
    return values(softmax(scores(q, k), -1, where=keep), v)


def lengths(q, k, v, length):
    keep = jnp.arange(k.shape[1]) < length[:, None, None, None]
    return attend(q, k, v, lambda s: jnp.where(keep, s, -jnp.inf))


def of_positions(keep, fill=-1e9):
    """A mask that compares positions."""

    def fn(q, k, v):
        return attend(q, k, v, lambda s: jnp.where(keep(*positions(q, k)), s, fill))

    return fn


def causal_tril(q, k, v):
    keep = jnp.tril(jnp.ones((q.shape[1], k.shape[1]), bool))
    return attend(q, k, v, lambda s: jnp.where(keep, s, jnp.finfo(s.dtype).min))


def causal_triu(q, k, v):
    mask = jnp.triu(jnp.full((q.shape[1], k.shape[1]), -jnp.inf), 1)
    return attend(q, k, v, lambda s: s + mask)


def causal_with_bias(q, k, v, bias):
    row, column = positions(q, k)
    return attend(q, k, v, lambda s: jnp.where(column > row, -jnp.inf, s + bias))


def causal_capped(q, k, v):
    row, column = positions(q, k)
    return attend(q, k, v, lambda s: jnp.where(column <= row, 5 * jnp.tanh(s / 5), -1e9))


TRIANGLE = np.tril(np.ones((5, 5), bool))
ADDED_TRIANGLE = np.where(TRIANGLE, 0, -np.inf).astype(np.float32)


def linear_bias(q, k, v):
    slopes = 2.0 ** -jnp.arange(1, q.shape[2] + 1)
    row, column = positions(q, k)
    return attend(q, k, v, lambda s: s + slopes[:, None, None] * (column - row))


def dpa(**arguments: Any):
    return lambda q, k, v: DPA(q, k, v, **arguments)


def dpa_with(*names: str, **fixed: Any):
    """The further inputs are arguments of these names."""
    return lambda q, k, v, *more: DPA(q, k, v, **dict(zip(names, more, strict=True)), **fixed)


QKV = [f32(2, 5, 3, 4), f32(2, 6, 3, 4), f32(2, 6, 3, 4)]
SELF = [f32(2, 5, 3, 4)] * 3
SYMBOLIC = [f32("B", "T", 3, 4), f32("B", "S", 3, 4), f32("B", "S", 3, 4)]
SYMBOLIC_SELF = [f32("B", "T", 3, 4)] * 3
GROUPS = [f32(2, 5, 6, 4), f32(2, 7, 3, 4), f32(2, 7, 3, 4)]
SYMBOLIC_GROUPS = [f32("B", "T", 6, 4), f32("B", "S", 3, 4), f32("B", "S", 3, 4)]
NARROW = [[make(2, 5, 3, 4, lo=-1, hi=1)] * 3 for make in (bf16, f16)]
DOUBLE = [f64(2, 5, 3, 4)] * 3
MASK = boolean(2, 1, 5, 6)


def row(name, fn, inputs, also=()):
    return case(name, fn, inputs, also, tolerance="network", opsets=(17, 23))


CASES = [
    row("dot_product_attention", DPA, QKV, [SYMBOLIC, NARROW[0]]),
    row("no batch", DPA, [f32(5, 3, 4), f32(6, 3, 4), f32(6, 3, 4)]),
    row("vmap", jax.vmap(DPA), [f32(3, 2, 5, 3, 4)] * 3, [[f32("N", 2, "T", 3, 4)] * 3]),
    row("vmap twice", jax.vmap(jax.vmap(dpa(is_causal=True))), [f32(2, 3, 2, 5, 3, 4)] * 3),
    row("vmap over heads", jax.vmap(jax.vmap(lambda q, k, v: softmax(q @ k.T) @ v, 1, 1)), QKV),
    row("vmap over the last but one", jax.vmap(DPA, 2, 3), [f32(2, 5, 3, 2, 4)] * 3),
    row("two dims", lambda q, k, v: softmax(q @ k.T) @ v, [f32(5, 4), f32(6, 4), f32(6, 4)]),
    row("heads first", heads_first, [f32(2, 3, 5, 4), f32(2, 3, 6, 4), f32(2, 3, 6, 4)]),
    row("matmuls", matmuls, [f32(2, 3, 5, 4)] * 3),
    row("transposed scores", transposed_scores, QKV),
    row("split scale", split_scale, QKV),
    row("scale of heads", scale_of_heads, [*QKV, f32(3)]),
    row("temperature", temperature, [*QKV, f32(lo=1, hi=2)]),
    row("negative scores", negative, QKV),
    row("other size of values", attend, [*QKV[:2], f32(2, 6, 3, 7)]),
    row("equal keys and values", lambda q, k: attend(q, k, k), QKV[:2], [SYMBOLIC[:2]]),
    row("one query", one_query, [f32(2, 3, 4), *QKV[1:]], [[f32("B", 3, 4), *SYMBOLIC[1:]]]),
    row("one query in groups", one_query_in_groups, [f32(2, 6, 4), *GROUPS[1:]]),
    row("query of length 1", DPA, [f32(2, 1, 3, 4), *QKV[1:]]),
    row("latents", latents, [f32(5, 3, 4), *QKV[1:]], [[f32(5, 3, 4), *SYMBOLIC[1:]]]),
    row("token grid", token_grid, [f32(2, 4, 3, 8)], [[f32("B", 4, 3, 8)]]),
    row("two key axes", two_key_axes, [f32(2, 5, 3, 4), *[f32(2, 3, 2, 3, 4)] * 2]),
    row("remat", jax.checkpoint(dpa(is_causal=True)), SELF),
    row("groups", grouped, GROUPS, [SYMBOLIC_GROUPS]),
    row("groups of dot_product_attention", DPA, GROUPS, [SYMBOLIC_GROUPS]),
    row("repeated heads", repeated, GROUPS, [SYMBOLIC_GROUPS]),
    row("broadcast heads", broadcast, GROUPS),
    row("vmap over groups", vmap_over_groups, GROUPS),
    row("one key head", one_key_head, [QKV[0], f32(2, 6, 4), f32(2, 6, 4)]),
    row("multi-query", DPA, [QKV[0], f32(2, 6, 1, 4), f32(2, 6, 1, 4)]),
    row("naive softmax", naive, QKV),
    row("base two", base_two, QKV),
    row("logsumexp", minus_logsumexp, QKV),
    row("late normalisation", late_normalisation, QKV, [SYMBOLIC, DOUBLE]),
    row("late reciprocal", late_reciprocal, QKV),
    row("soft cap", capped, QKV),
    row("softmax in f32", wide_softmax, NARROW[0], [NARROW[1]]),
    row("scores in f32", wide_scores, NARROW[0], [NARROW[1]]),
    row("scores in 16 bits", attend, NARROW[0], [NARROW[1]]),
    row("filled with the lowest", where_mask(jnp.finfo(jnp.float32).min), [*QKV, MASK]),
    row("filled with -1e9", where_mask(-1e9), [*QKV, MASK], [[*SYMBOLIC, boolean("T", "S")]]),
    row("filled with -inf", where_mask(-jnp.inf), [*QKV, MASK]),
    row("added -1e9", added_mask(-1e9), [*QKV, boolean(5, 6)]),
    row("added -1e4", added_mask(-1e4), [*QKV, boolean(5, 6)]),
    row("added -inf", added_mask(-jnp.inf), [*QKV, boolean(5, 6)]),
    row("one minus mask", one_minus_mask, [*QKV, boolean(2, 1, 1, 6)]),
    row("two masks", two_masks, [*QKV, MASK]),
    row("guarded weights", guarded(-jnp.inf), [*QKV, MASK], [[*SYMBOLIC, boolean("T", "S")]]),
    row("guarded weights after -1e9", guarded(-1e9), [*QKV, MASK]),
    row("guarded rows", guarded_rows, [*QKV, MASK]),
    row("guarded by a product", guarded_product, [*QKV, MASK]),
    row("nan_to_num", without_nan(jnp.nan_to_num), [*QKV, MASK]),
    row("NaN is zero", without_nan(lambda w: jnp.where(jnp.isnan(w), 0, w)), [*QKV, MASK]),
    row("gated weights", gated, [*QKV, f32(3)]),
    row(
        "vmap over masks",
        vmap_over_masks,
        [*(f32(n, 3, 4) for n in (5, 6, 6)), boolean(2, 3, 5, 6)],
    ),
    row("softmax with where", where_argument, [*QKV, MASK]),
    row("lengths", lengths, [*QKV, i32(2, lo=0, hi=6)], [[*SYMBOLIC, i32("B", lo=1, hi=6)]]),
    row("causal", dpa(is_causal=True), SELF, [SYMBOLIC_SELF, QKV, NARROW[0]]),
    row("causal tril", causal_tril, SELF, [SYMBOLIC_SELF, DOUBLE]),
    row("causal triu", causal_triu, SELF, [SYMBOLIC_SELF]),
    row("causal difference", of_positions(lambda i, j: i - j >= 0, -jnp.inf), SELF, [QKV]),
    row("causal constant", lambda q, k, v: DPA(q, k, v, mask=TRIANGLE[None, None]), SELF),
    row("causal added constant", lambda *x: attend(*x, lambda s: s + ADDED_TRIANGLE), SELF),
    row("causal and bias", causal_with_bias, [*SELF, f32(3, 5, 5)]),
    row("causal and soft cap", causal_capped, SELF),
    row("causal groups", dpa(is_causal=True), [f32(2, 5, 6, 4), *SELF[1:]]),
    row("after a prefix", of_positions(lambda i, j: j <= i + 1), QKV, [SYMBOLIC]),
    row("window", of_positions(lambda i, j: abs(i - j) <= 1), SELF, [SYMBOLIC_SELF]),
    row("empty first row", of_positions(lambda i, j: i > j), SELF),
    row("empty first row, NaN", of_positions(lambda i, j: i > j, -jnp.inf), SELF),
    row("linear bias", linear_bias, QKV, [SYMBOLIC]),
    row("scale=", dpa(scale=0.3), QKV),
    row("bias=", dpa_with("bias"), [*QKV, f32(1, 3, 5, 6)], [[*QKV, f32(2, 1, 5, 6)]]),
    row("mask=", dpa_with("mask"), [*QKV, MASK], [[*SYMBOLIC, boolean("B", 1, "T", "S")]]),
    row("mask= of keys", dpa_with("mask"), [*QKV, boolean(2, 1, 1, 6)]),
    row("query_seq_lengths=", dpa_with("query_seq_lengths"), [*QKV, i32(2, lo=0, hi=5)]),
    row("key_value_seq_lengths=", dpa_with("key_value_seq_lengths"), [*QKV, i32(2, lo=0, hi=6)]),
    row("local_window_size=", dpa(local_window_size=(2, 1)), SELF),
    row(
        "all arguments",
        dpa_with(
            "bias",
            "mask",
            "query_seq_lengths",
            "key_value_seq_lengths",
            scale=0.4,
            is_causal=True,
            local_window_size=(3, 1),
        ),
        [*SELF, f32(2, 3, 5, 5), boolean(2, 3, 5, 5), i32(2, lo=1, hi=5), i32(2, lo=1, hi=5)],
    ),
]


@parity(CASES)
def test_attention(case, capfd):
    check(case, capfd)


def ops_of(fn, inputs, **options):
    double = any(spec.dtype == "float64" for spec in inputs)
    options = {"enable_double_precision": double, **options}
    return jaxport.to_onnx(fn, structs(inputs), return_mode="ir", **options).stats()["ops"]


@pytest.mark.parametrize("case", [rows[0] for rows in CASES], ids=lambda case: case.name)
def test_attention_is_one_node(case):
    ops = ops_of(case.fn, case.inputs)
    assert ops.get("Attention") == 1
    assert not {"Softmax", "MatMul", "Exp"} & ops.keys()


@pytest.mark.parametrize(("scale", "count"), [(4.0, 1), (0.25, 1), (2.0, 0), (0.125, 0), (0.3, 0)])
def test_scales_of_doubles_have_a_root_in_f32(scale, count):
    """The definition of the op multiplies with the root, as f32."""
    ops = ops_of(lambda q, k, v: jax.nn.softmax(q @ k.mT * scale) @ v, DOUBLE, target="onnx")
    assert ops.get("Attention", 0) == count


CAUSAL = [rows[0] for rows in CASES if rows[0].name.startswith("causal")]


@pytest.mark.parametrize("case", CAUSAL, ids=lambda case: case.name)
def test_causal_masks_are_an_attribute(case):
    (node,) = (
        node
        for node in jaxport.to_onnx(case.fn, structs(case.inputs)).graph.node
        if node.op_type == "Attention"
    )
    assert {attr.name: attr.i for attr in node.attribute}.get("is_causal") == 1
    assert len(node.input) == (4 if case.name == "causal and bias" else 3)


# --- what is moved


MOVED = {  # name of a row -> Transpose, Reshape
    "dot_product_attention": (0, 4),
    "heads first": (0, 0),
    "matmuls": (0, 0),
    "two dims": (0, 4),
    "vmap twice": (0, 4),
    "groups": (0, 4),
    "repeated heads": (0, 4),
    "one query": (0, 4),
    "one query in groups": (0, 4),
    "late normalisation": (0, 4),
    "causal": (0, 4),
}


@pytest.mark.parametrize("name", MOVED)
def test_attention_moves_no_data(name):
    (case,) = (rows[0] for rows in CASES if rows[0].name == name)
    ops = ops_of(case.fn, case.inputs)
    assert (ops.get("Transpose", 0), ops.get("Reshape", 0)) == MOVED[name]


def test_layers_share_one_mask():
    def layers(x, length):
        for _ in range(3):
            x = x + DPA(x, x, x, key_value_seq_lengths=length, local_window_size=(2, 1))
        return x

    ops = ops_of(layers, [f32("B", 5, 3, 4), i32("B")])
    assert ops["Attention"] == 3
    assert ops["Where"] == 1


# --- what stays apart


def weights_too(q, k, v):
    weights = softmax(scores(q, k), -1)
    return values(weights, v), weights


def narrow_weights_too(q, k, v):
    weights = softmax(scores(q, k).astype(jnp.float32), -1).astype(q.dtype)
    return values(weights, v), weights


def along_queries(q, k, v):
    return values(softmax(scores(q, k), -2), v)


def guarded_otherwise(q, k, v, keep):
    weights = softmax(jnp.where(keep, scores(q, k), -1e9), -1)
    return values(jnp.where(keep[:, :, ::-1], weights, 0), v)


def cap_of_a_mask(q, k, v, keep):
    return attend(q, k, v, lambda s: 5 * jnp.tanh(jnp.where(keep, s, -1e9) / 5))


def moderate_fill(q, k, v, keep):
    return attend(q, k, v, lambda s: jnp.where(keep, s, -20.0))


def weighted_keys(q, k, v, factor):
    return values(softmax(scores(q, k), -1) * factor, v)


def factor_of_pairs(q, k, v, factor):
    return attend(q, k, v, lambda s: s * factor)


def other_denominator(q, k, v):
    e = jnp.exp(scores(q, k))
    return values(e, v) / jnp.swapaxes((e + 1).sum(-1), 1, 2)[..., None]


def rough_scores(q, k, v):
    return attend(q, k, v, lambda s: s.astype(jnp.bfloat16).astype(s.dtype))


def rough_weights(q, k, v):
    return values(softmax(scores(q, k), -1).astype(jnp.bfloat16).astype(v.dtype), v)


def no_scores(q, k, v):
    return values(softmax(jnp.abs(scores(q, k)), -1), v)


APART = [
    row("weights are returned", weights_too, QKV),
    row("narrow weights are returned", narrow_weights_too, NARROW[0]),
    row("softmax along queries", along_queries, QKV),
    row("guard of another mask", guarded_otherwise, [*QKV, MASK]),
    row("cap of a mask", cap_of_a_mask, [*QKV, MASK]),
    row("moderate fill", moderate_fill, [*QKV, MASK]),
    row("weights of keys", weighted_keys, [*QKV, f32(6)]),
    row("factor of pairs", factor_of_pairs, [*QKV, f32(5, 6)]),
    row("other denominator", other_denominator, [f32(2, 5, 3, 4, lo=-1, hi=1)] * 3),
    row("scores are rounded", rough_scores, [f32(2, 5, 3, 4, lo=0, hi=1)] * 3),
    row("weights are rounded", rough_weights, [f32(2, 5, 3, 4, lo=0, hi=1)] * 3),
    row("function of the scores", no_scores, QKV),
    row("gradient", jax.grad(lambda q, k, v: DPA(q, k, v).sum() ** 2, (0, 1, 2)), QKV),
    row(
        "gradient with masks",
        jax.grad(lambda q, k, v: (DPA(q, k, v, is_causal=True) ** 2).sum(), (0, 1, 2)),
        SELF,
        [SYMBOLIC_SELF],
    ),
]


@parity(APART)
def test_something_similar_has_its_own_numbers(case, capfd):
    check(case, capfd)


@pytest.mark.parametrize("case", [rows[0] for rows in APART], ids=lambda case: case.name)
def test_something_similar_is_no_attention(case):
    assert "Attention" not in ops_of(case.fn, case.inputs)


# --- targets without the op


def test_the_definition_of_the_op_has_no_zero_rows():
    fn, inputs = guarded(-jnp.inf), [*QKV, MASK]
    assert "Attention" in ops_of(fn, inputs, opset=23)
    assert "Attention" not in ops_of(fn, inputs, opset=23, target="onnx")
    assert "Attention" in ops_of(where_mask(-1e9), inputs, opset=23, target="onnx")


def test_sixteen_bits_stay_in_a_model_for_the_specification():
    ops = ops_of(DPA, NARROW[0], target="onnx")
    assert ops["Attention"] == 1
    assert "Cast" not in ops

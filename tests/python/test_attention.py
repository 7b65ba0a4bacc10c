# SPDX-License-Identifier: Apache-2.0
"""Attention: what its op takes, in every opset, and the dtypes, sizes and guards of each.

raising/ has the spellings: one node each, with JAX's numbers at the newest opset.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxport
from raising import attention, attention_by_hand, attention_variants
from support.cases import bf16, boolean, case, check, f16, f32, f64, i32, parity, structs

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


def vmap_over_groups(q, k, v):
    q = q.reshape(*q.shape[:2], k.shape[2], -1, q.shape[-1])
    return jax.vmap(attend, in_axes=(3, None, None), out_axes=3)(q, k, v)


# --- the softmax


def base_two(q, k, v):
    s = scores(q, k) * math.log2(math.e)
    e = jnp.exp2(s - s.max(-1, keepdims=True))
    return values(e / e.sum(-1, keepdims=True), v)


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


def where_mask(q, k, v, keep):
    return attend(q, k, v, lambda s: jnp.where(keep, s, -1e9))


def guarded(q, k, v, keep):
    weights = softmax(jnp.where(keep, scores(q, k), -jnp.inf), -1)
    return values(jnp.where(keep, weights, 0), v)


def guarded_rows(q, k, v, keep):
    weights = softmax(jnp.where(keep, scores(q, k), -1e30), -1)
    return values(jnp.where(keep.any(-1, keepdims=True), weights, 0), v)


def guarded_product(q, k, v, keep):
    weights = softmax(jnp.where(keep, scores(q, k), -1e30), -1)
    return values(weights * keep, v)


def nan_is_zero(q, k, v, keep):
    weights = softmax(jnp.where(keep, scores(q, k), -jnp.inf), -1)
    return values(jnp.where(jnp.isnan(weights), 0, weights), v)


def gated(q, k, v, gate):
    return values(softmax(scores(q, k), -1) * gate[:, None, None] / 0.9, v)


def vmap_over_masks(q, k, v, keep):
    return jax.vmap(lambda one: DPA(q, k, v, mask=one))(keep)


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


ADDED_TRIANGLE = np.where(np.tri(5, dtype=bool), 0, -np.inf).astype(np.float32)


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
NARROW = [[make(2, 5, 3, 4, lo=-1, hi=1)] * 3 for make in (bf16, f16)]
DOUBLE = [f64(2, 5, 3, 4)] * 3
MASK = boolean(2, 1, 5, 6)


def row(name, fn, inputs, also=(), opsets=(17, 23)):
    return case(name, fn, inputs, also, tolerance="network", opsets=opsets)


def newest(name, fn, inputs):
    return row(name, fn, inputs, opsets=(23,))


CASES = [
    row("dot_product_attention", DPA, QKV),
    row("other size of values", attend, [*QKV[:2], f32(2, 6, 3, 7)]),
    row("groups", DPA, GROUPS),
    row("soft cap", capped, QKV),
    row("gated weights", gated, [*QKV, f32(3)]),
    row("causal", dpa(is_causal=True), SELF),
    row("bias", dpa_with("bias"), [*QKV, f32(1, 3, 5, 6)]),
    row("mask", dpa_with("mask"), [*QKV, MASK], [[*SYMBOLIC, boolean("B", 1, "T", "S")]]),
    row("guarded weights", guarded, [*QKV, MASK], [[*SYMBOLIC, boolean("T", "S")]]),
    row("guarded rows", guarded_rows, [*QKV, MASK]),
    row("guarded by a product", guarded_product, [*QKV, MASK]),
    row("NaN is zero", nan_is_zero, [*QKV, MASK]),
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
    row("softmax in f32", wide_softmax, NARROW[0], [NARROW[1]]),
    row("scores in f32", wide_scores, NARROW[0], [NARROW[1]]),
    row("scores in 16 bits", attend, NARROW[0], [NARROW[1]]),
    newest("causal in 16 bits", dpa(is_causal=True), NARROW[0]),
    newest("base two", base_two, QKV),
    newest("late reciprocal", late_reciprocal, QKV),
    newest("one query in groups", one_query_in_groups, [f32(2, 6, 4), *GROUPS[1:]]),
    newest("two key axes", two_key_axes, [f32(2, 5, 3, 4), *[f32(2, 3, 2, 3, 4)] * 2]),
    newest("vmap over groups", vmap_over_groups, GROUPS),
    newest(
        "vmap over masks",
        vmap_over_masks,
        [*(f32(n, 3, 4) for n in (5, 6, 6)), boolean(2, 3, 5, 6)],
    ),
    newest("causal difference", of_positions(lambda i, j: i - j >= 0, -jnp.inf), QKV),
    newest("causal added constant", lambda *x: attend(*x, lambda s: s + ADDED_TRIANGLE), SELF),
    newest("causal and bias", causal_with_bias, [*SELF, f32(3, 5, 5)]),
    newest("one query, symbolic", one_query, [f32("B", 3, 4), *SYMBOLIC[1:]]),
    newest("latents, symbolic", latents, [f32(5, 3, 4), *SYMBOLIC[1:]]),
    newest("token grid, symbolic", token_grid, [f32("B", 4, 3, 8)]),
    newest("equal keys and values, symbolic", lambda q, k: attend(q, k, k), SYMBOLIC[:2]),
    newest("late normalisation, symbolic", late_normalisation, SYMBOLIC),
    newest("lengths, symbolic", lengths, [*SYMBOLIC, i32("B", lo=1, hi=6)]),
    newest("causal by triu, symbolic", causal_triu, SYMBOLIC_SELF),
    newest("after a prefix, symbolic", of_positions(lambda i, j: j <= i + 1), SYMBOLIC),
    newest("window, symbolic", of_positions(lambda i, j: abs(i - j) <= 1), SYMBOLIC_SELF),
    newest("linear bias, symbolic", linear_bias, SYMBOLIC),
]


# ONNX Runtime has no Attention of f64.
DOUBLES = [
    newest("late normalisation of doubles", late_normalisation, DOUBLE),
    newest("causal doubles", causal_tril, DOUBLE),
]


@parity([*CASES, *DOUBLES])
def test_numbers_are_jax_s(case, capfd):
    check(case, capfd)


def ops_of(fn, inputs, **options):
    double = any(spec.dtype == "float64" for spec in inputs)
    options = {"enable_double_precision": double, **options}
    return jaxport.to_onnx(fn, structs(inputs), return_mode="model", **options).stats()["ops"]


@pytest.mark.parametrize("case", [rows[0] for rows in CASES], ids=lambda case: case.name)
def test_attention_is_one_node(case):
    ops = ops_of(case.fn, case.inputs)
    assert ops.get("Attention") == 1
    assert not {"Softmax", "MatMul", "Exp"} & ops.keys()


def test_a_query_in_groups_is_not_transposed():
    ops = ops_of(one_query_in_groups, [f32(2, 6, 4), *GROUPS[1:]])
    assert (ops.get("Transpose", 0), ops["Reshape"]) == (0, 4)


@pytest.mark.parametrize(("scale", "count"), [(4.0, 1), (0.25, 1), (2.0, 0), (0.125, 0), (0.3, 0)])
def test_scales_of_doubles_have_a_root_in_f32(scale, count):
    """The definition of the op multiplies with the root, as f32."""
    ops = ops_of(lambda q, k, v: jax.nn.softmax(q @ k.mT * scale) @ v, DOUBLE, target="onnx")
    assert ops.get("Attention", 0) == count


SPELLINGS = attention.JAX_NN + attention_by_hand.ROWS + attention_variants.ROWS
CAUSAL = [rows[0] for rows in CASES if rows[0].name.startswith("causal")]
CAUSAL += [
    row
    for row in SPELLINGS
    if row.name
    in {
        "is_causal",
        "is_causal, more keys",
        "grouped heads, causal",
        "symbolic, causal",
        "vmap of vmap, causal",
        "where, -inf, causal",
        "causal by arange",
        "causal by broadcasted_iota, symbolic",
        "causal by triu(k=1)",
        "causal by tri of numpy",
        "soft cap, causal",
        "fewer keys than queries, causal",
    }
]


@pytest.mark.parametrize("case", CAUSAL, ids=lambda case: case.name)
def test_causal_masks_are_an_attribute(case):
    (node,) = (
        node
        for node in jaxport.to_onnx(case.fn, structs(case.inputs)).graph.node
        if node.op_type == "Attention"
    )
    assert {attr.name: attr.i for attr in node.attribute}.get("is_causal") == 1
    assert len(node.input) == (4 if case.name == "causal and bias" else 3)


def test_layers_share_one_mask():
    def layers(x, length):
        for _ in range(3):
            x = x + DPA(x, x, x, key_value_seq_lengths=length, local_window_size=(2, 1))
        return x

    ops = ops_of(layers, [f32("B", 5, 3, 4), i32("B")])
    assert ops["Attention"] == 3
    assert ops["Where"] == 1


# --- what stays apart


def narrow_weights_too(q, k, v):
    weights = softmax(scores(q, k).astype(jnp.float32), -1).astype(q.dtype)
    return values(weights, v), weights


def guarded_otherwise(q, k, v, keep):
    weights = softmax(jnp.where(keep, scores(q, k), -1e9), -1)
    return values(jnp.where(keep[:, :, ::-1], weights, 0), v)


def moderate_fill(q, k, v, keep):
    return attend(q, k, v, lambda s: jnp.where(keep, s, -20.0))


def weighted_keys(q, k, v, factor):
    return values(softmax(scores(q, k), -1) * factor, v)


def rough_scores(q, k, v):
    return attend(q, k, v, lambda s: s.astype(jnp.bfloat16).astype(s.dtype))


def rough_weights(q, k, v):
    return values(softmax(scores(q, k), -1).astype(jnp.bfloat16).astype(v.dtype), v)


APART = [
    newest("narrow weights are returned", narrow_weights_too, NARROW[0]),
    newest("guard of another mask", guarded_otherwise, [*QKV, MASK]),
    newest("moderate fill", moderate_fill, [*QKV, MASK]),
    newest("weights of keys", weighted_keys, [*QKV, f32(6)]),
    newest("scores are rounded", rough_scores, [f32(2, 5, 3, 4, lo=0, hi=1)] * 3),
    newest("weights are rounded", rough_weights, [f32(2, 5, 3, 4, lo=0, hi=1)] * 3),
]


@parity(APART)
def test_something_similar_is_no_attention(case, capfd):
    check(case, capfd)
    assert "Attention" not in ops_of(case.fn, case.inputs)


# --- targets without the op


def test_the_definition_of_the_op_has_no_zero_rows():
    inputs = [*QKV, MASK]
    assert "Attention" in ops_of(guarded, inputs, opset=23)
    assert "Attention" not in ops_of(guarded, inputs, opset=23, target="onnx")
    assert "Attention" in ops_of(where_mask, inputs, opset=23, target="onnx")


def test_sixteen_bits_stay_in_a_model_for_the_specification():
    ops = ops_of(DPA, NARROW[0], target="onnx")
    assert ops["Attention"] == 1
    assert "Cast" not in ops


def test_a_factor_in_sixteen_bits_does_not_overflow_on_its_way():
    def fn(q, k, v, t):
        return softmax((q @ k.T) / t, -1) @ v

    q, v = (np.full((5, 8), x, np.float16) for x in (1e-3, 0.5))
    k, t = np.linspace(-300, 300, 40).astype(np.float16), np.full(5, 4e-3, np.float16)
    inputs = [q, k.reshape(5, 8), v, t]
    model = jaxport.to_onnx(fn, inputs, return_mode="model")
    assert model.stats()["ops"]["Attention"] == 1
    fits, message = jaxport.allclose(fn, model, inputs, rtol=1e-2)
    assert fits, message

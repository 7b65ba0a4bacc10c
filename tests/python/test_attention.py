# SPDX-License-Identifier: Apache-2.0
"""Attention in the spellings of JAX and its libraries: one node, JAX's numbers."""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from flax import nnx

import jaxport
from support.cases import boolean, case, check, f32, parity, structs

KEY = jax.random.key(0)
DPA = jax.nn.dot_product_attention


def by_hand(q, k, v):
    """Heads first, the scale on the query."""
    scores = jnp.einsum("bhtd,bhsd->bhts", q / math.sqrt(q.shape[-1]), k)
    return jnp.einsum("bhts,bhsd->bhtd", jax.nn.softmax(scores, -1), v)


def capped(q, k, v):
    scores = 5.0 * jnp.tanh(jnp.einsum("bthd,bshd->bhts", q, k) / 5.0)
    return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores, -1), v)


def causal_by_hand(q, k, v):
    scores = jnp.einsum("bthd,bshd->bhts", q, k)
    keep = jnp.tril(jnp.ones((q.shape[1], k.shape[1]), bool))
    return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(jnp.where(keep, scores, -1e9), -1), v)


def additive_mask(q, k, v, keep):
    scores = jnp.einsum("bthd,bshd->bhts", q, k)
    scores = scores + jnp.where(keep, 0.0, -1e9)
    return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores, -1), v)


def masked(q, k, v, keep):
    return DPA(q, k, v, mask=keep)


def biased(q, k, v, bias):
    return DPA(q, k, v, bias=bias)


def causal(q, k, v):
    return DPA(q, k, v, is_causal=True)


def grouped(q, k, v):
    q = q.reshape(*q.shape[:2], k.shape[2], -1, q.shape[-1])
    scores = jnp.einsum("btkgd,bskd->bkgts", q, k)
    return jnp.einsum("bkgts,bskd->btkgd", jax.nn.softmax(scores, -1), v)


QKV = [f32(2, 5, 3, 4), f32(2, 6, 3, 4), f32(2, 6, 3, 4)]
SELF = [f32(2, 5, 3, 4)] * 3
SYMBOLIC = [f32("B", "T", 3, 4), f32("B", "S", 3, 4), f32("B", "S", 3, 4)]
LAYER = nnx.MultiHeadAttention(2, 8, decode=False, rngs=nnx.Rngs(0))
EQUINOX = eqx.nn.MultiheadAttention(2, 8, key=KEY)


def row(name, fn, inputs, also=()):
    return case(name, fn, inputs, also, tolerance="network", opsets=(17, 23))


CASES = [
    row("dot_product_attention", DPA, QKV, also=[SYMBOLIC]),
    row("by hand", by_hand, [f32(2, 3, 5, 4), f32(2, 3, 6, 4), f32(2, 3, 6, 4)]),
    row("soft cap", capped, QKV),
    row("causal", causal, SELF, also=[[f32("B", "T", 3, 4)] * 3]),
    row("causal by hand", causal_by_hand, SELF),
    row("mask", masked, [*QKV, boolean(2, 1, 5, 6)], also=[[*SYMBOLIC, boolean("B", 1, "T", "S")]]),
    row("additive mask", additive_mask, [*QKV, boolean(5, 6)]),
    row("bias", biased, [*QKV, f32(1, 3, 5, 6)]),
    row("grouped heads", grouped, [f32(2, 5, 6, 4), f32(2, 7, 3, 4), f32(2, 7, 3, 4)]),
    row("vmap", jax.vmap(DPA), [f32(3, 2, 5, 3, 4)] * 3),
    row("nnx", lambda x: LAYER(x, x, x), [f32(2, 5, 8)], also=[[f32("B", "T", 8)]]),
    row("equinox under vmap", jax.vmap(lambda x: EQUINOX(x, x, x)), [f32("B", 5, 8)]),
]


@parity(CASES)
def test_attention(case, capfd):
    check(case, capfd)


@pytest.mark.parametrize("case", [rows[0] for rows in CASES], ids=lambda case: case.name)
def test_attention_is_one_node(case):
    ops = jaxport.to_onnx(case.fn, structs(case.inputs), return_mode="ir").stats()["ops"]
    assert ops.get("Attention") == 1
    assert "Softmax" not in ops


def test_weights_that_are_returned_stay_a_softmax():
    def fn(q, k, v):
        weights = jax.nn.softmax(q @ k.T, -1)
        return weights @ v, weights

    ops = jaxport.to_onnx(fn, [(5, 4), (6, 4), (6, 4)], return_mode="ir").stats()["ops"]
    assert "Attention" not in ops
    assert ops["Softmax"] == 1


def test_a_row_that_is_masked_everywhere_gets_jax_s_mean():
    keep = jnp.array([[True, False], [False, False]])

    def fn(q, k, v):
        return DPA(q, k, v, mask=keep[None, None])

    q = jax.random.normal(KEY, (1, 2, 1, 4))
    model = jaxport.to_onnx(fn, [(1, 2, 1, 4)] * 3)
    equal, message = jaxport.allclose(fn, model, [q, q + 1, q - 1], rtol=1e-5, atol=1e-5)
    assert equal, message

# SPDX-License-Identifier: Apache-2.0
"""Attention layers of libraries: four projections and one attention, with nothing moved."""

from __future__ import annotations

import equinox
import jax
import jax.numpy as jnp
import pytest
from flax import linen, nnx

import jaxport
from support.cases import case, check, f32, parity, structs

KEY = jax.random.key(0)
NNX = nnx.MultiHeadAttention(2, 8, decode=False, rngs=nnx.Rngs(0))
LINEN = linen.MultiHeadDotProductAttention(2, deterministic=True)
LINEN_WEIGHTS = LINEN.init(KEY, jnp.ones((2, 5, 8)), jnp.ones((2, 5, 8)))
EQUINOX = equinox.nn.MultiheadAttention(2, 8, use_query_bias=True, key=KEY)


def nnx_causal(x):
    return NNX(x, mask=nnx.make_causal_mask(jnp.ones(x.shape[:2])))


def linen_causal(x):
    return LINEN.apply(LINEN_WEIGHTS, x, x, mask=linen.make_causal_mask(jnp.ones(x.shape[:2])))


def equinox_layer(x):
    return jax.vmap(lambda row: EQUINOX(row, row, row))(x)


def equinox_masked(x):
    keep = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool))
    return jax.vmap(lambda row: EQUINOX(row, row, row, mask=keep))(x)


def row(name, fn):
    also = [[f32("B", "T", 8)]]
    return case(name, fn, [f32(2, 5, 8)], also, tolerance="network", opsets=(17, 23))


LAYERS = [
    row("nnx", NNX),
    row("nnx, causal", nnx_causal),
    row("linen", lambda x: LINEN.apply(LINEN_WEIGHTS, x, x)),
    row("linen, causal", linen_causal),
    row("equinox", equinox_layer),
    row("equinox, causal", equinox_masked),
]


@parity(LAYERS)
def test_layer(case, capfd):
    check(case, capfd)


@pytest.mark.parametrize("case", [rows[-1] for rows in LAYERS], ids=lambda case: case.name)
def test_layer_moves_no_data(case):
    ops = jaxport.to_onnx(case.fn, structs(case.inputs), return_mode="ir").stats()["ops"]
    assert ops.pop("Attention") == 1
    assert ops.pop("MatMul") == 4
    assert not ops.keys() - {"Add"}

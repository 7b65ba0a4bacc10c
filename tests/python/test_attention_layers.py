# SPDX-License-Identifier: Apache-2.0
"""Attention layers of symbolic batches: four projections and one attention, with nothing moved."""

from __future__ import annotations

import equinox
import jax
import jax.numpy as jnp
from flax import linen, nnx

import jaxport
from raising.libraries import equinox_module, linen_function, nnx_module
from support.cases import case, check, f32, parity, structs

KEY = jax.random.key(0)
NNX = nnx_module(lambda rngs: nnx.MultiHeadAttention(2, 8, decode=False, rngs=rngs))
LINEN = linen_function(
    linen.MultiHeadDotProductAttention(2, deterministic=True), (2, 5, 8), (2, 5, 8)
)
EQUINOX = equinox_module(lambda: equinox.nn.MultiheadAttention(2, 8, use_query_bias=True, key=KEY))


def nnx_causal(x):
    return NNX(x, mask=nnx.make_causal_mask(jnp.ones(x.shape[:2])))


def linen_causal(x):
    return LINEN(x, x, mask=linen.make_causal_mask(jnp.ones(x.shape[:2])))


def equinox_layer(x):
    return jax.vmap(lambda row: EQUINOX(row, row, row))(x)


def equinox_masked(x):
    keep = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool))
    return jax.vmap(lambda row: EQUINOX(row, row, row, mask=keep))(x)


def row(name, fn):
    return case(name, fn, [f32("B", "T", 8)], tolerance="network", opsets=(23,))


LAYERS = [
    row("nnx", NNX),
    row("nnx, causal", nnx_causal),
    row("linen", lambda x: LINEN(x, x)),
    row("linen, causal", linen_causal),
    row("equinox", equinox_layer),
    row("equinox, causal", equinox_masked),
]


@parity(LAYERS)
def test_a_layer_moves_no_data(case, capfd):
    check(case, capfd)
    ops = jaxport.to_onnx(case.fn, structs(case.inputs), return_mode="model").stats()["ops"]
    assert ops.pop("Attention") == 1
    assert ops.pop("MatMul") == 4
    assert not ops.keys() - {"Add"}

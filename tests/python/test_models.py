# SPDX-License-Identifier: Apache-2.0
"""Small networks of each library, from a module to ONNX Runtime."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from flax import nnx

from raising.libraries import equinox_module, linen_function, nnx_module
from support import models
from support.cases import case, check, f32, parity

KEY = jax.random.key(0)
MLP = nnx_module(models.NnxMlp)


def network(name, fn, inputs, also=()):
    return case(name, fn, inputs, also, tolerance="network")


def attention_with_mask(q, k, v, mask):
    return jax.nn.dot_product_attention(q, k, v, mask=mask > 0)


def nnx_rnn(cell, **options):
    return models.pure(nnx_module(lambda rngs: nnx.RNN(cell(4, 8, rngs=rngs), **options)))


LSTM, GRU = (
    equinox_module(lambda cell=cell: cell(4, 8, key=KEY))
    for cell in (eqx.nn.LSTMCell, eqx.nn.GRUCell)
)
BOTH_WAYS = nnx_module(
    lambda rngs: nnx.Bidirectional(
        nnx.RNN(nnx.LSTMCell(4, 8, rngs=rngs)), nnx.RNN(nnx.GRUCell(4, 8, rngs=rngs))
    )
)
BLOCK = nnx_module(lambda rngs: models.NnxBlock(16, 2, rngs))
EQUINOX_MLP = equinox_module(lambda: eqx.nn.MLP(4, 3, 8, 2, key=KEY))
EQUINOX_BLOCK = equinox_module(lambda: models.EquinoxBlock(8, KEY))

RECURRENT = [
    network("nnx lstm", nnx_rnn(nnx.LSTMCell), [f32(2, 5, 4)], also=[[f32("B", "T", 4)]]),
    network("nnx fused lstm", nnx_rnn(nnx.OptimizedLSTMCell), [f32("B", 5, 4)]),
    network("nnx gru", nnx_rnn(nnx.GRUCell), [f32("B", "T", 4)]),
    network("nnx simple cell", nnx_rnn(nnx.SimpleCell), [f32("B", "T", 4)]),
    network(
        "nnx lstm reversed",
        nnx_rnn(nnx.LSTMCell, reverse=True, keep_order=True),
        [f32(2, 5, 4)],
        also=[[f32("B", "T", 4)]],
    ),
    network("nnx both ways", models.pure(BOTH_WAYS), [f32(2, 5, 4)]),
    network("equinox lstm", models.EquinoxRnn(LSTM), [f32(5, 4)], also=[[f32("T", 4)]]),
    network("equinox lstm reversed", models.EquinoxRnn(LSTM, reverse=True), [f32("T", 4)]),
    network("equinox gru", models.EquinoxRnn(GRU), [f32("T", 4)]),
    network("equinox gru under vmap", jax.vmap(models.EquinoxRnn(GRU)), [f32("B", "T", 4)]),
    network(
        "gradient of equinox lstm",
        jax.grad(lambda xs: models.EquinoxRnn(LSTM)(xs)[1].sum()),
        [f32("T", 4)],
    ),
]

CASES = [
    network("nnx mlp", MLP, [f32(2, 4)], also=[[f32("B", 4)], [f32("B", "T", 4)]]),
    network(
        "nnx cnn", nnx_module(models.NnxCnn), [f32(2, 16, 16, 3)], also=[[f32("B", 16, 16, 3)]]
    ),
    network(
        "nnx block",
        BLOCK,
        [f32(2, 5, 16)],
        also=[[f32("B", "T", 16)]],
    ),
    network(
        "nnx vit", nnx_module(models.NnxViT), [f32(2, 16, 16, 3)], also=[[f32("B", 16, 16, 3)]]
    ),
    network("nnx rms norm", nnx_module(lambda rngs: nnx.RMSNorm(16, rngs=rngs)), [f32("B", 16)]),
    network(
        "nnx group norm",
        nnx_module(lambda rngs: nnx.GroupNorm(16, num_groups=4, rngs=rngs)),
        [f32("B", 6, 6, 16)],
    ),
    network("nnx embed", nnx_module(lambda rngs: nnx.Embed(9, 4, rngs=rngs)).attend, [f32("B", 4)]),
    network(
        "linen mlp",
        linen_function(models.LinenMlp(), (1, 4)),
        [f32(2, 4)],
        also=[[f32("B", 4)]],
    ),
    network(
        "linen cnn",
        linen_function(models.LinenCnn(), (1, 8, 8, 3)),
        [f32(2, 8, 8, 3)],
        also=[[f32("B", 8, 8, 3)]],
    ),
    network("equinox linear", equinox_module(lambda: eqx.nn.Linear(4, 3, key=KEY)), [f32(4)]),
    network("equinox mlp", EQUINOX_MLP, [f32(4)]),
    network("equinox mlp under vmap", jax.vmap(EQUINOX_MLP), [f32("B", 4)]),
    network(
        "equinox conv",
        jax.vmap(equinox_module(lambda: eqx.nn.Conv2d(3, 4, 3, stride=2, key=KEY))),
        [f32("B", 3, 9, 9)],
    ),
    network("equinox block", EQUINOX_BLOCK, [f32(5, 8)]),
    network("equinox block under vmap", jax.vmap(EQUINOX_BLOCK), [f32("B", 5, 8)]),
    network(
        "attention with a mask",
        attention_with_mask,
        [f32("B", 3, 2, 8)] * 3 + [f32("B", 1, 3, 3, lo=0.1)],
    ),
    network("jitted", jax.jit(MLP.__call__), [f32("B", 4)]),
    network("remat", jax.checkpoint(BLOCK), [f32(2, 5, 16)]),
    network(
        "gradient of a network",
        jax.grad(lambda x: jnp.square(MLP(x)).sum()),
        [f32(2, 4)],
    ),
]


@parity(CASES + RECURRENT)
def test_numbers_are_jax_s(case, capfd):
    check(case, capfd)

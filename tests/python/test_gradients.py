# SPDX-License-Identifier: Apache-2.0
"""Gradients of activations: they compare what a function picks with what it picks from, and read
what it computes on its way, while the function itself becomes an op."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from support.cases import case, check, f32, parity

X = [f32(4, 8)]

GRADIENTS = [
    case(
        f"gradient of {fn.__name__}",
        lambda x, fn=fn: jax.value_and_grad(lambda y: jnp.sum(jnp.sin(fn(y))))(x),
        X,
        [[f32("B", 8)]],
        tolerance="network",
        opsets=(17, 23),
    )
    for fn in (
        *(jax.nn.celu, jax.nn.elu, jax.nn.gelu, jax.nn.hard_sigmoid, jax.nn.hard_silu),
        *(jax.nn.hard_tanh, jax.nn.leaky_relu, jax.nn.log_sigmoid, jax.nn.log_softmax),
        *(jax.nn.mish, jax.nn.relu, jax.nn.relu6, jax.nn.selu, jax.nn.sigmoid, jax.nn.silu),
        *(jax.nn.soft_sign, jax.nn.softmax, jax.nn.softplus, jax.nn.sparse_plus),
        *(jax.nn.sparse_sigmoid, jax.nn.squareplus),
    )
]


@parity(GRADIENTS)
def test_numbers_are_jax_s(case, capfd):
    check(case, capfd)

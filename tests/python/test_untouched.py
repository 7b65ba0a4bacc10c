# SPDX-License-Identifier: Apache-2.0
"""jaxport changes no function of JAX, Flax or Equinox: not before, not while it converts."""

from __future__ import annotations

import importlib

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import nnx

import jaxport

MODULES = [
    *("jax", "jax.numpy", "jax.lax", "jax.nn", "jax.numpy.linalg", "jax.numpy.fft", "jax.random"),
    *("jax.scipy.special", "flax.nnx", "flax.linen", "equinox", "equinox.nn"),
]


def identities():
    """The public names of all modules, with the classes' own public functions, by identity."""
    found = {}
    for name in MODULES:
        for key, value in vars(importlib.import_module(name)).items():
            if key.startswith("_"):
                continue
            found[f"{name}.{key}"] = id(value)
            if isinstance(value, type):
                members = vars(value).items()
                found |= {f"{name}.{key}.{member}": id(item) for member, item in members}
    return found


class Net(nnx.Module):
    def __init__(self, seen):
        self.linear = nnx.Linear(4, 4, rngs=nnx.Rngs(0))
        self.norm = nnx.BatchNorm(4, rngs=nnx.Rngs(0))
        self.observe = seen

    def __call__(self, x):
        self.observe()
        return jax.nn.softmax(self.norm(self.linear(x)))


class LinenNet(nn.Module):
    observe: object

    @nn.compact
    def __call__(self, x):
        self.observe()
        return nn.Dense(3)(x)


def test_nothing_is_patched_before_during_and_after():
    jaxport.to_onnx(jnp.tanh, [(3,)])  # what is imported at the first use
    during = []

    def observe():
        during.append(identities())

    linen = LinenNet(lambda: None)
    variables = linen.init(jax.random.key(0), jnp.ones((1, 4)))
    mlp = eqx.nn.MLP(4, 3, 8, 1, key=jax.random.key(0))

    def with_equinox(x):
        observe()
        return mlp(x)

    before = identities()
    jaxport.to_onnx(Net(observe), [("B", 4)])
    jaxport.to_onnx(Net(observe), [("B", 4)], state="io", params_as_inputs=True)
    jaxport.to_onnx((LinenNet(observe), variables), [("B", 4)])
    jaxport.to_onnx(with_equinox, [(4,)])
    after = identities()
    assert len(during) >= 4
    assert len(before) > 2000
    for seen in (*during, after):
        assert {name for name in before if before[name] != seen.get(name)} == set()

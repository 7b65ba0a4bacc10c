# SPDX-License-Identifier: Apache-2.0
"""Gradients of what is raised: right with all rules, with none, and with each of them left out."""

from __future__ import annotations

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import onnx
import pytest
from flax import nnx

import jaxport
from jaxport import runtime
from raising.libraries import KEY, over_batch, with_equinox, with_linen, with_nnx
from raising.rotary import complex_halves, half_split, interleaved_updates
from raising.table import OPSET, Lazy, Row
from support.cases import boolean, compiled_again, examples_of, f32, load, run_jax_on, structs
from support.tolerances import assert_close

attention = jax.nn.dot_product_attention
QKV = [f32(2, 6, 4, 8)] * 3
TOKENS = [f32(2, 5, 16)]
ROWS: list[Row] = []


def gradient(name, fn, inputs, wrt=None):
    """The gradient of the sum of squares in the first `wrt` inputs, by default in all."""
    wrt = tuple(range(len(inputs) if wrt is None else wrt))

    def build():
        value = fn.build() if isinstance(fn, Lazy) else fn
        return jax.grad(lambda *xs: jnp.sum(value(*xs) ** 2), wrt)

    ROWS.append(Row("gradient", "", name, Lazy(build), inputs, {}))


def layer_norm(x, scale, bias):
    return jax.nn.standardize(x, axis=-1) * scale + bias


def rms_norm(x, scale):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale


def group_norm(x):
    groups = x.reshape(x.shape[0], 4, -1)
    return jax.nn.standardize(groups, axis=-1).reshape(x.shape) * x


class Block(nnx.Module):
    def __init__(self, rngs):
        self.before = nnx.LayerNorm(16, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(4, 16, decode=False, rngs=rngs)
        self.between = nnx.RMSNorm(16, rngs=rngs)
        self.dense = nnx.Linear(16, 16, rngs=rngs)

    def __call__(self, x):
        x = x + self.attention(self.before(x))
        return x + jax.nn.gelu(self.dense(self.between(x)))


class LinenBlock(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = x + nn.MultiHeadDotProductAttention(4)(nn.LayerNorm()(x))
        return nn.silu(nn.GroupNorm(4)(nn.Conv(8, (3,))(x)))


def equinox_block():
    return (
        eqx.nn.MultiheadAttention(4, 16, key=KEY),
        eqx.nn.LayerNorm(16),
        eqx.nn.MLP(16, 8, 12, 1, key=KEY),
    )


def equinox_call(block, x):
    attend, norm, mlp = block
    return jax.vmap(mlp)(jax.vmap(norm)(x + attend(x, x, x)))


gradient("attention", attention, QKV)
gradient("attention, causal", lambda *qkv: attention(*qkv, is_causal=True), QKV)
gradient("attention, symbolic", attention, [f32("B", "T", 4, 8)] * 3)
gradient(
    "attention, mask",
    lambda q, k, v, keep: attention(q, k, v, mask=keep),
    [*QKV, boolean(2, 1, 6, 6)],
    wrt=3,
)
gradient(
    "attention, grouped heads and bias",
    lambda q, k, v, bias: attention(q, k, v, bias),
    [f32(2, 5, 4, 8), *[f32(2, 7, 2, 8)] * 2, f32(1, 4, 5, 7)],
)
gradient(
    "attention of rotated q and k", lambda q, k, v: attention(*map(half_split, (q, k)), v), QKV
)
gradient("rotary, complex", complex_halves, QKV[:1])
gradient("rotary, updates", interleaved_updates, [f32(2, 4, 6, 8)])
gradient("layer norm", layer_norm, [f32(2, 5, 8), f32(8), f32(8)])
gradient("rms norm", rms_norm, [f32(2, 5, 8), f32(8)])
gradient("group norm, symbolic", group_norm, [f32("B", 8, "H", 3)])
gradient("unit length", lambda x, y: x / jnp.linalg.norm(x) * y, [f32(8), f32(8)])
gradient("Flax NNX", with_nnx(Block), TOKENS)
gradient("Flax NNX, symbolic", with_nnx(Block), [f32("B", "T", 16)])
gradient("Flax Linen", with_linen(LinenBlock(), (2, 5, 16)), TOKENS)
gradient("Equinox", with_equinox(equinox_block, over_batch(equinox_call)), TOKENS)

NETWORKS = [row for row in ROWS if row.inputs is TOKENS]


def rules():
    with pytest.raises(jaxport.ConversionError) as info:
        jaxport.to_onnx(jnp.sin, [(3,)], without_rules=["?"])
    return info.value.help.removeprefix("the rules are ").split(", ")


def assert_right(row, options):
    """With each of these options the model gives JAX's numbers."""
    fn = row.function()
    compiled = jaxport.to_onnx(fn, structs(row.inputs), opset=OPSET, return_mode="model")
    models = [compiled_again(compiled, OPSET, **each).SerializeToString() for each in options]
    examples = list(examples_of(row.inputs))
    expected = run_jax_on(fn, examples)
    for model in dict.fromkeys(models):  # most rules do not fire here
        session = load(onnx.load_from_string(model), OPSET)
        for arrays, results in zip(examples, expected, strict=True):
            outputs = runtime.run(session, arrays)
            for (name, have), want in zip(outputs.items(), results, strict=True):
                assert_close(name, want, have, row.tolerance)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_gradient_has_jax_s_numbers_raised_and_as_written(row):
    assert_right(row, [{"raise_": True}, {"raise_": False}])


@pytest.mark.parametrize("row", NETWORKS, ids=lambda row: row.name)
def test_a_gradient_without_a_rule_has_jax_s_numbers(row):
    assert_right(row, [{"without_rules": [rule]} for rule in rules()])

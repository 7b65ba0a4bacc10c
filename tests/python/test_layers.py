# SPDX-License-Identifier: Apache-2.0
"""Scans over stacked weights: which are unrolled, that files do not grow, and the numbers."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax import lax

import jaxport
from raising.libraries import linen_function, nnx_module
from support.cases import f32, structs

LAYERS = 6  # shorter loops are unrolled anyway
X = [f32(4, 256)]


def stack(width=256, layers=LAYERS, dtype=np.float32):
    numbers = np.random.default_rng(0).standard_normal((layers, width, width))
    return (numbers / np.sqrt(width)).astype(dtype)


def body(x, w):
    return jnp.tanh(x @ w), None


def over(weights, step=body, **options):
    return lambda x: lax.scan(step, x, weights, **options)


def two_weights(x, w):
    first, second = w
    return jnp.tanh(x @ first) @ second + x, None


def with_means(x, w):
    return jnp.tanh(x @ w), x.mean(axis=-1)


def with_layers(x, w):
    # The sort keeps the large result inside of the loop.
    return jnp.tanh(x @ w), jnp.sort(jnp.stack([x] * 64))


def nnx_layers():
    class Block(nnx.Module):
        def __init__(self, rngs):
            self.dense = nnx.Linear(256, 256, rngs=rngs)

        def __call__(self, x):
            return jnp.tanh(self.dense(x))

    @nnx.split_rngs(splits=LAYERS)
    @nnx.vmap(in_axes=0, out_axes=0)
    def blocks(rngs):
        return Block(rngs)

    @nnx.scan(in_axes=(0, nnx.Carry), out_axes=nnx.Carry)
    def forward(block, x):
        return block(x)

    class Stack(nnx.Module):
        def __init__(self, rngs):
            self.blocks = blocks(rngs)

        def __call__(self, x):
            return forward(self.blocks, x)

    return nnx_module(Stack)


def linen_layers(axis):
    class Block(nn.Module):
        @nn.compact
        def __call__(self, x, _):
            return jnp.tanh(nn.Dense(256)(x)), None

    layers = nn.scan(
        Block, variable_axes={"params": axis}, split_rngs={"params": True}, length=LAYERS
    )()
    fn = linen_function(layers, (4, 256), (LAYERS,))
    return lambda x: fn(x, jnp.zeros(LAYERS))[0]


UNROLLED = {
    "by hand": lambda: over(stack()),
    "in reverse": lambda: over(stack(), reverse=True),
    "two weights and a vector": lambda: over((stack(), stack() * 2), two_weights),
    "a small result for each step": lambda: over(stack(), with_means),
    "converted weights": lambda: over(jnp.asarray(stack(dtype=np.float16)).astype(jnp.float32)),
    "weights stacked along another axis": lambda: over(
        jnp.moveaxis(np.moveaxis(stack(), 0, 1), 1, 0)
    ),
    "inside of jit": lambda: jax.jit(over(stack())),
    "under vmap": lambda: jax.vmap(over(stack())),
    "nnx.scan": nnx_layers,
    "nn.scan": lambda: linen_layers(0),
    "nn.scan, axis 1": lambda: linen_layers(1),
}
STAYS = {
    "narrow weights": lambda: over(stack(128)),
    "vectors": lambda: over(stack().reshape(LAYERS, -1), lambda x, w: (x * w[:256], None)),
    "many steps": lambda: over(stack(layers=65)),
    "larger results than weights": lambda: over(stack(), with_layers),
}


def count(model, op):
    bodies = [model.graph, *model.functions]
    return sum(node.op_type == op for body in bodies for node in body.node)


def model_of(fn, width=256, **options):
    return jaxport.to_onnx(fn, [(4, width)], **options)


@pytest.mark.parametrize("name", UNROLLED)
@pytest.mark.parametrize("functions", ["marked", "auto"])
def test_layers_are_unrolled(name, functions):
    fn = UNROLLED[name]()
    model = model_of(fn, functions=functions)
    assert count(model, "Scan") == 0
    x = np.random.default_rng(1).standard_normal((4, 256)).astype(np.float32)
    assert jaxport.allclose(fn, model, [x])[0]


@pytest.mark.parametrize("name", STAYS)
def test_other_scans_stay(name):
    width = 128 if name == "narrow weights" else 256
    assert count(model_of(STAYS[name](), width), "Scan") == 1


@pytest.mark.parametrize("target", ["onnxruntime", "onnx"])
def test_the_user_sets_the_bound(target):
    fn = over(stack())
    assert count(model_of(fn, target=target, unroll_layers=LAYERS), "Scan") == 0
    assert count(model_of(fn, target=target, unroll_layers=LAYERS - 1), "Scan") == 1
    assert count(model_of(over(stack(layers=65)), target=target, unroll_layers=65), "Scan") == 0


def test_weights_that_are_inputs_stay_stacked():
    model = jaxport.to_onnx(
        lambda x, w: lax.scan(body, x, w)[0], structs([*X, f32(LAYERS, 256, 256)])
    )
    assert count(model, "Scan") == 1


@pytest.mark.parametrize("name", ["by hand", "two weights and a vector", "nn.scan, axis 1"])
def test_the_file_does_not_grow(name):
    fn = UNROLLED[name]()
    rolled, unrolled = model_of(fn, unroll_layers=0), model_of(fn)
    assert unrolled.ByteSize() < 1.02 * rolled.ByteSize()


def test_functions_keep_the_model_small():
    fn = over((stack(), stack() * 2), lambda x, w: two_weights(jnp.sin(jnp.cos(x) + 1) * 2, w))
    model = model_of(fn, functions="auto")
    assert [function.name for function in model.functions] == ["layer"]
    assert [node.op_type for node in model.graph.node].count("layer") == LAYERS


def test_weights_are_named_by_layer():
    names = [tensor.name for tensor in model_of(linen_layers(0)).graph.initializer]
    kernels = [f"variables.params.Dense_0.kernel.{n}" for n in range(LAYERS)]
    assert [name for name in names if "kernel" in name] == kernels

# SPDX-License-Identifier: Apache-2.0
"""The models that the benchmarks convert."""

import jax
import numpy as np
from flax import nnx


class Block(nnx.Module):
    """A pre-norm transformer block."""

    def __init__(self, width: int, heads: int, rngs: nnx.Rngs):
        self.norm1 = nnx.LayerNorm(width, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(heads, width, width, decode=False, rngs=rngs)
        self.norm2 = nnx.LayerNorm(width, rngs=rngs)
        self.expand = nnx.Linear(width, 4 * width, rngs=rngs)
        self.contract = nnx.Linear(4 * width, width, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = x + self.attention(self.norm1(x))
        return x + self.contract(nnx.gelu(self.expand(self.norm2(x))))


class VisionTransformer(nnx.Module):
    """Patches by a strided convolution, learned positions, mean over the tokens, linear head."""

    def __init__(self, width: int, heads: int, layers: int, image: int, classes: int = 1000):
        rngs = nnx.Rngs(0)
        tokens = (image // 16) ** 2
        self.patches = nnx.Conv(3, width, (16, 16), strides=(16, 16), rngs=rngs)
        self.positions = nnx.Param(0.02 * jax.random.normal(rngs.params(), (1, tokens, width)))
        self.blocks = nnx.List([Block(width, heads, rngs) for _ in range(layers)])
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.head = nnx.Linear(width, classes, rngs=rngs)

    def __call__(self, image: jax.Array) -> jax.Array:
        x = self.patches(image)
        x = x.reshape(x.shape[0], -1, x.shape[-1]) + self.positions[...]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(axis=1))


def shaken(module: nnx.Module) -> nnx.Module:
    """The module with noise on every weight, so that no scale is 1 and no bias is 0."""
    graph, state = nnx.split(module)
    rng = np.random.default_rng(0)

    def add_noise(leaf: jax.Array) -> jax.Array:
        if not jax.numpy.issubdtype(leaf.dtype, jax.numpy.floating):
            return leaf
        return leaf + 0.02 * rng.standard_normal(leaf.shape, dtype=np.float32)

    return nnx.merge(graph, jax.tree.map(add_noise, state))


def vit_base() -> nnx.Module:
    """ViT-B/16: 12 layers of width 768 with 12 heads, 224 x 224 pixels."""
    return shaken(VisionTransformer(width=768, heads=12, layers=12, image=224))


VIT_BASE_INPUT = (1, 224, 224, 3)


def count_equations(jaxpr: jax.extend.core.Jaxpr) -> int:
    """Equations of a jaxpr and of all jaxprs in its parameters."""
    total = 0
    for eqn in jaxpr.eqns:
        total += 1
        for value in eqn.params.values():
            for item in value if isinstance(value, tuple | list) else (value,):
                inner = getattr(item, "jaxpr", item)
                total += count_equations(inner) if hasattr(inner, "eqns") else 0
    return total

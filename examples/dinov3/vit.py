# SPDX-License-Identifier: Apache-2.0
"""DINOv3's vision transformer."""

import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .layers import (
    Attention,
    Bias,
    Block,
    Mlp,
    Normalize,
    PatchEmbed,
    RotaryEmbedding,
    SwiGlu,
    join_tokens,
)


class Features(NamedTuple):
    """What a model gives for one image."""

    class_token: jax.Array
    register_tokens: jax.Array
    patch_tokens: jax.Array


@dataclasses.dataclass(frozen=True)
class ViTConfig:
    """The arguments of the published models, under the names of this example."""

    width: int
    depth: int
    heads: int
    mlp_ratio: float = 4.0
    mlp: str = "mlp"  # or "swiglu"
    mlp_align: int = 8
    qkv_bias: Bias = (True, False, True)  # the published models mask the bias of the keys
    proj_bias: bool = True
    mlp_bias: bool = True
    registers: int = 4
    patch_size: int = 16
    channels: int = 3
    layer_scale: float | None = 1e-5
    eps: float = 1e-5
    rope_base: float = 100.0
    rope_normalize: Normalize = "separate"
    untie_class_norm: bool = False  # class and register tokens have a norm of their own
    local_class_norm: bool = False  # a norm that training alone uses; checkpoints have it


class VisionTransformer(eqx.Module):
    patch_embed: PatchEmbed
    cls_token: jax.Array
    storage_tokens: jax.Array | None
    rope_embed: RotaryEmbedding
    blocks: list[Block]
    norm: eqx.nn.LayerNorm
    cls_norm: eqx.nn.LayerNorm | None
    config: ViTConfig = eqx.field(static=True)

    def __init__(self, config: ViTConfig, *, key: jax.Array):
        key_patches, key_class, key_storage, key_blocks = jax.random.split(key, 4)
        c = config
        self.config = c
        self.patch_embed = PatchEmbed(c.channels, c.width, c.patch_size, key=key_patches)
        self.cls_token = 0.02 * jax.random.normal(key_class, (1, c.width))
        self.storage_tokens = (
            0.02 * jax.random.normal(key_storage, (c.registers, c.width)) if c.registers else None
        )
        self.rope_embed = RotaryEmbedding(c.width // c.heads, c.rope_base, c.rope_normalize)
        self.blocks = [make_block(c, key=one) for one in jax.random.split(key_blocks, c.depth)]
        self.norm = eqx.nn.LayerNorm(c.width, eps=c.eps)
        self.cls_norm = eqx.nn.LayerNorm(c.width, eps=c.eps) if c.untie_class_norm else None

    def hidden_states(self, image: jax.Array) -> list[jax.Array]:
        """The tokens before the first block and after each one, without the last norm."""
        patches = self.patch_embed(image)
        height, width, features = patches.shape
        rope = self.rope_embed(height, width)
        patches = patches.reshape(height * width, features)
        states = [join_tokens([self.cls_token, self.storage_tokens], patches)]
        for block in self.blocks:
            states.append(block(states[-1], rope))
        return states

    def normalized(self, tokens: jax.Array) -> Features:
        prefix = 1 + self.config.registers
        if self.cls_norm is None:
            tokens = jax.vmap(self.norm)(tokens)
            return Features(tokens[0], tokens[1:prefix], tokens[prefix:])
        first = jax.vmap(self.cls_norm)(tokens[:prefix])
        return Features(first[0], first[1:], jax.vmap(self.norm)(tokens[prefix:]))

    def __call__(self, image: jax.Array) -> Features:
        return self.normalized(self.hidden_states(image)[-1])


def make_block(c: ViTConfig, *, key: jax.Array) -> Block:
    key_attention, key_mlp = jax.random.split(key)
    attention = Attention(c.width, c.heads, c.qkv_bias, c.proj_bias, key=key_attention)
    hidden = int(c.width * c.mlp_ratio)
    mlp = (
        SwiGlu(c.width, hidden, c.mlp_bias, c.mlp_align, key=key_mlp)
        if c.mlp == "swiglu"
        else Mlp(c.width, hidden, c.mlp_bias, key=key_mlp)
    )
    return Block(c.width, attention, mlp, c.layer_scale, c.eps)


def as_grid(patch_tokens: jax.Array, height: int, width: int) -> jax.Array:
    """Patch tokens where they are in the image: (height, width, features)."""
    return jnp.reshape(patch_tokens, (height, width, -1))

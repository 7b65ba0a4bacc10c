# SPDX-License-Identifier: Apache-2.0
"""DINOv2's vision transformer: learned positions, resized to the grid of the image."""

import dataclasses

import equinox as eqx
import jax

from .layers import Block, PatchEmbed, join_tokens
from .vit import Features, ViTConfig, make_block


@dataclasses.dataclass(frozen=True)
class DINOv2Config(ViTConfig):
    patch_size: int = 14
    registers: int = 0
    qkv_bias: tuple[bool, bool, bool] = (True, True, True)
    eps: float = 1e-6
    grid: int = 37  # the grid for which positions were learned: images of 518
    antialias: bool = False  # the published models with registers were trained with it


class DINOv2(eqx.Module):
    patch_embed: PatchEmbed
    cls_token: jax.Array
    storage_tokens: jax.Array | None
    pos_embed: jax.Array  # of the class token, then of the grid row by row
    blocks: list[Block]
    norm: eqx.nn.LayerNorm
    config: DINOv2Config = eqx.field(static=True)

    def __init__(self, config: DINOv2Config, *, key: jax.Array):
        key_patches, key_class, key_storage, key_positions, key_blocks = jax.random.split(key, 5)
        c = config
        self.config = c
        self.patch_embed = PatchEmbed(c.channels, c.width, c.patch_size, key=key_patches)
        self.cls_token = 0.02 * jax.random.normal(key_class, (1, c.width))
        self.storage_tokens = (
            0.02 * jax.random.normal(key_storage, (c.registers, c.width)) if c.registers else None
        )
        self.pos_embed = 0.02 * jax.random.normal(key_positions, (1 + c.grid**2, c.width))
        self.blocks = [make_block(c, key=one) for one in jax.random.split(key_blocks, c.depth)]
        self.norm = eqx.nn.LayerNorm(c.width, eps=c.eps)

    def positions(self, height: int, width: int) -> jax.Array:
        """The learned positions of the patches, resized to another grid."""
        c = self.config
        grid = self.pos_embed[1:].reshape(c.grid, c.grid, c.width)
        if (height, width) != (c.grid, c.grid):
            shape = (height, width, c.width)
            grid = jax.image.resize(grid, shape, method="cubic", antialias=c.antialias)
        return grid.reshape(height * width, c.width)

    def hidden_states(self, image: jax.Array) -> list[jax.Array]:
        patches = self.patch_embed(image)
        height, width, features = patches.shape
        patches = patches.reshape(height * width, features) + self.positions(height, width)
        prefix = [self.cls_token + self.pos_embed[:1], self.storage_tokens]
        states = [join_tokens(prefix, patches)]
        for block in self.blocks:
            states.append(block(states[-1], None))
        return states

    def __call__(self, image: jax.Array) -> Features:
        tokens = jax.vmap(self.norm)(self.hidden_states(image)[-1])
        prefix = 1 + self.config.registers
        return Features(tokens[0], tokens[1:prefix], tokens[prefix:])

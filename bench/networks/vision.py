# SPDX-License-Identifier: Apache-2.0
"""Networks on images, channels last."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from flax import nnx

from networks.network import Network, image, of_module
from networks.transformer import Block


class ConvNorm(nnx.Module):
    """Convolution without a bias, batch normalisation, activation."""

    def __init__(self, features_in, features, size, rngs, stride=1, groups=1, act=nnx.relu):
        self.conv = nnx.Conv(
            features_in,
            features,
            (size, size),
            (stride, stride),
            feature_group_count=groups,
            use_bias=False,
            rngs=rngs,
        )
        self.norm = nnx.BatchNorm(features, use_running_average=True, rngs=rngs)
        self.act = act

    def __call__(self, x: jax.Array) -> jax.Array:
        x = self.norm(self.conv(x))
        return x if self.act is None else self.act(x)


class Bottleneck(nnx.Module):
    def __init__(self, features_in: int, width: int, stride: int, rngs: nnx.Rngs):
        self.reduce = ConvNorm(features_in, width, 1, rngs)
        self.conv = ConvNorm(width, width, 3, rngs, stride)
        self.expand = ConvNorm(width, 4 * width, 1, rngs, act=None)
        changes = stride != 1 or features_in != 4 * width
        self.shortcut = (
            ConvNorm(features_in, 4 * width, 1, rngs, stride, act=None) if changes else None
        )

    def __call__(self, x: jax.Array) -> jax.Array:
        kept = x if self.shortcut is None else self.shortcut(x)
        return nnx.relu(kept + self.expand(self.conv(self.reduce(x))))


class ResNet(nnx.Module):
    def __init__(self, rngs: nnx.Rngs, depths: tuple[int, ...] = (3, 4, 6, 3), width: int = 64):
        self.stem = ConvNorm(3, width, 7, rngs, 2)
        blocks, features = [], width
        for stage, depth in enumerate(depths):
            for index in range(depth):
                stride = 2 if stage > 0 and index == 0 else 1
                blocks.append(Bottleneck(features, width << stage, stride, rngs))
                features = 4 * (width << stage)
        self.blocks = nnx.List(blocks)
        self.head = nnx.Linear(features, 1000, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = nnx.max_pool(self.stem(x), (3, 3), strides=(2, 2), padding="SAME")
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean((1, 2)))


class Inverted(nnx.Module):
    """An inverted residual of MobileNet v2."""

    def __init__(self, features_in: int, features: int, stride: int, rngs: nnx.Rngs):
        hidden = 6 * features_in
        self.expand = ConvNorm(features_in, hidden, 1, rngs, act=nnx.relu6)
        self.depthwise = ConvNorm(hidden, hidden, 3, rngs, stride, hidden, act=nnx.relu6)
        self.project = ConvNorm(hidden, features, 1, rngs, act=None)
        self.is_residual = stride == 1 and features_in == features

    def __call__(self, x: jax.Array) -> jax.Array:
        y = self.project(self.depthwise(self.expand(x)))
        return x + y if self.is_residual else y


class MobileNet(nnx.Module):
    STAGES = ((24, 2, 2), (32, 3, 2), (64, 4, 2), (96, 3, 1), (160, 3, 2), (320, 1, 1))

    def __init__(self, rngs: nnx.Rngs):
        self.stem = ConvNorm(3, 16, 3, rngs, 2, act=nnx.relu6)
        blocks, features = [], 16
        for width, depth, stride in self.STAGES:
            for index in range(depth):
                blocks.append(Inverted(features, width, stride if index == 0 else 1, rngs))
                features = width
        self.blocks = nnx.List(blocks)
        self.last = ConvNorm(features, 1280, 1, rngs, act=nnx.relu6)
        self.head = nnx.Linear(1280, 1000, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.last(x).mean((1, 2)))


class ConvNeXtBlock(nnx.Module):
    def __init__(self, width: int, rngs: nnx.Rngs):
        self.depthwise = nnx.Conv(width, width, (7, 7), feature_group_count=width, rngs=rngs)
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.expand = nnx.Linear(width, 4 * width, rngs=rngs)
        self.contract = nnx.Linear(4 * width, width, rngs=rngs)
        self.gamma = nnx.Param(jnp.full((width,), 0.1))

    def __call__(self, x: jax.Array) -> jax.Array:
        y = self.contract(nnx.gelu(self.expand(self.norm(self.depthwise(x)))))
        return x + self.gamma[...] * y


class ConvNeXt(nnx.Module):
    def __init__(self, rngs: nnx.Rngs, depths=(3, 3, 9, 3), width: int = 96):
        self.stem = nnx.Conv(3, width, (4, 4), (4, 4), padding="VALID", rngs=rngs)
        self.stem_norm = nnx.LayerNorm(width, rngs=rngs)
        layers = []
        for stage, depth in enumerate(depths):
            features = width << stage
            if stage > 0:
                layers.append(nnx.LayerNorm(features // 2, rngs=rngs))
                layers.append(
                    nnx.Conv(features // 2, features, (2, 2), (2, 2), padding="VALID", rngs=rngs)
                )
            layers += [ConvNeXtBlock(features, rngs) for _ in range(depth)]
        self.layers = nnx.List(layers)
        self.norm = nnx.LayerNorm(features, rngs=rngs)
        self.head = nnx.Linear(features, 1000, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = self.stem_norm(self.stem(x))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x.mean((1, 2))))


class VisionTransformer(nnx.Module):
    """Patches by a strided convolution, learned positions, mean over the tokens, linear head."""

    def __init__(self, width: int, heads: int, layers: int, rngs: nnx.Rngs):
        self.patches = nnx.Conv(3, width, (16, 16), strides=(16, 16), rngs=rngs)
        self.positions = nnx.Param(0.02 * jax.random.normal(rngs.params(), (1, 196, width)))
        self.blocks = nnx.List([Block(width, heads, rngs) for _ in range(layers)])
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.head = nnx.Linear(width, 1000, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = self.patches(x)
        x = x.reshape(x.shape[0], -1, x.shape[-1]) + self.positions[...]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(axis=1))


class MixerBlock(nnx.Module):
    def __init__(self, tokens: int, width: int, rngs: nnx.Rngs):
        self.norms = nnx.List([nnx.LayerNorm(width, rngs=rngs) for _ in range(2)])
        self.mix = nnx.List(
            [nnx.Linear(tokens, 256, rngs=rngs), nnx.Linear(256, tokens, rngs=rngs)]
        )
        self.mlp = nnx.List(
            [nnx.Linear(width, 4 * width, rngs=rngs), nnx.Linear(4 * width, width, rngs=rngs)]
        )

    def __call__(self, x: jax.Array) -> jax.Array:
        y = self.norms[0](x).swapaxes(1, 2)
        x = x + self.mix[1](nnx.gelu(self.mix[0](y))).swapaxes(1, 2)
        return x + self.mlp[1](nnx.gelu(self.mlp[0](self.norms[1](x))))


class Mixer(nnx.Module):
    def __init__(self, rngs: nnx.Rngs, width: int = 384, layers: int = 8):
        self.patches = nnx.Conv(3, width, (16, 16), strides=(16, 16), rngs=rngs)
        self.blocks = nnx.List([MixerBlock(196, width, rngs) for _ in range(layers)])
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.head = nnx.Linear(width, 1000, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = self.patches(x)
        x = x.reshape(x.shape[0], -1, x.shape[-1])
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(axis=1))


class Double(nnx.Module):
    """Two convolutions with group normalisation, as the U-Nets of diffusion models have."""

    def __init__(self, features_in: int, features: int, rngs: nnx.Rngs):
        sizes = ((features_in, features), (features, features))
        self.convs = nnx.List([nnx.Conv(*size, (3, 3), rngs=rngs) for size in sizes])
        self.norms = nnx.List([nnx.GroupNorm(features, num_groups=8, rngs=rngs) for _ in sizes])

    def __call__(self, x: jax.Array) -> jax.Array:
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = nnx.silu(norm(conv(x)))
        return x


class UNet(nnx.Module):
    def __init__(self, rngs: nnx.Rngs, widths: tuple[int, ...] = (32, 64, 128)):
        down, up, joined, features = [], [], [], 3
        for width in widths:
            down.append(Double(features, width, rngs))
            features = width
        for width in reversed(widths[:-1]):
            up.append(nnx.ConvTranspose(features, width, (2, 2), (2, 2), rngs=rngs))
            joined.append(Double(2 * width, width, rngs))
            features = width
        self.down, self.up, self.joined = nnx.List(down), nnx.List(up), nnx.List(joined)
        self.last = nnx.Conv(features, 3, (1, 1), rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        kept = []
        for index, block in enumerate(self.down):
            x = block(x if index == 0 else nnx.max_pool(x, (2, 2), strides=(2, 2)))
            kept.append(x)
        for up, block, skip in zip(self.up, self.joined, kept[-2::-1], strict=True):
            x = block(jnp.concatenate([skip, up(x)], axis=-1))
        return self.last(x)


def vit(width: int, heads: int, layers: int) -> Callable[[], Callable[..., jax.Array]]:
    return of_module(lambda rngs: VisionTransformer(width, heads, layers, rngs))


NETWORKS = (
    Network("ResNet-50", of_module(ResNet), (image(1, 224),)),
    Network("MobileNet", of_module(MobileNet), (image(1, 224),)),
    Network("ConvNeXt-T", of_module(ConvNeXt), (image(1, 224),)),
    Network("ViT-S/16", vit(384, 6, 12), (image(1, 224),)),
    Network("ViT-B/16", vit(768, 12, 12), (image(1, 224),)),
    Network("ViT, 48 layers", vit(192, 3, 48), (image(1, 224),)),
    Network("Mixer", of_module(Mixer), (image(1, 224),)),
    Network("U-Net", of_module(UNet), (image(1, 64),)),
)

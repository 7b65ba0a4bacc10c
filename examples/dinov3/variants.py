# SPDX-License-Identifier: Apache-2.0
"""The published models by name."""

from typing import Any

import jax

from .convnext import ConvNeXt, ConvNeXtConfig
from .dinov2 import DINOv2, DINOv2Config
from .vit import VisionTransformer, ViTConfig

Config = ViTConfig | ConvNeXtConfig | DINOv2Config

VARIANTS: dict[str, Config] = {
    "convnext_base": ConvNeXtConfig(depths=(3, 3, 27, 3), widths=(128, 256, 512, 1024)),
    "convnext_large": ConvNeXtConfig(depths=(3, 3, 27, 3), widths=(192, 384, 768, 1536)),
    "convnext_small": ConvNeXtConfig(depths=(3, 3, 27, 3), widths=(96, 192, 384, 768)),
    "convnext_tiny": ConvNeXtConfig(depths=(3, 3, 9, 3), widths=(96, 192, 384, 768)),
    "dinov2_vitb14": DINOv2Config(768, 12, 12),
    "dinov2_vits14": DINOv2Config(384, 12, 6),
    "vit7b16": ViTConfig(
        4096,
        40,
        32,
        mlp_ratio=3.0,
        mlp="swiglu",
        mlp_align=64,
        qkv_bias=(False, False, False),
        local_class_norm=True,
    ),
    "vitb16": ViTConfig(768, 12, 12),
    "vith16plus": ViTConfig(1280, 32, 20, mlp_ratio=6.0, mlp="swiglu"),
    "vitl16": ViTConfig(1024, 24, 16),
    "vits16": ViTConfig(384, 12, 6),
    "vits16plus": ViTConfig(384, 12, 6, mlp_ratio=6.0, mlp="swiglu"),
}


def build(config: str | Config, *, key: jax.Array) -> Any:
    """A model with random weights: a name of VARIANTS, or a configuration of your own."""
    if isinstance(config, str):
        if config not in VARIANTS:
            raise ValueError(f"no variant {config!r}; there are {', '.join(VARIANTS)}")
        config = VARIANTS[config]
    if isinstance(config, ConvNeXtConfig):
        return ConvNeXt(config, key=key)
    if isinstance(config, DINOv2Config):
        return DINOv2(config, key=key)
    return VisionTransformer(config, key=key)

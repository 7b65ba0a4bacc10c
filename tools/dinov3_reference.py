# SPDX-License-Identifier: Apache-2.0
"""Writes the reference for tests/python/test_dinov3_reference.py: models that nobody here wrote.

  tools/debian13.sh ROOT bash -c "apt-get install -y python3-torch python3-venv
    && python3 -m venv --system-site-packages /opt/torch
    && /opt/torch/bin/pip install --require-hashes --requirement requirements/lock/reference.txt
    && /opt/torch/bin/python tools/dinov3_reference.py --out FOLDER"

Small random models of transformers: the state dict, one input, the features and the hidden states.
"""

import argparse
from pathlib import Path

import torch
from safetensors.torch import save_file

VIT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "patch_size": 8}


def randomise(model: torch.nn.Module, seed: int) -> torch.nn.Module:
    """Weights far from their start, so that every part of a model shows in its features."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        parameter.data = (1 + 0.3 * noise) if parameter.ndim == 1 and "bias" not in name else noise
        if parameter.ndim > 1:
            parameter.data *= 0.3 if "token" in name else parameter[0].numel() ** -0.5
    return model.eval()


def image(seed: int, height: int, width: int) -> torch.Tensor:
    return torch.randn(1, 3, height, width, generator=torch.Generator().manual_seed(seed))


def write_transformers(out: Path) -> None:
    from transformers import (
        DINOv3ConvNextConfig,
        DINOv3ConvNextModel,
        DINOv3ViTConfig,
        DINOv3ViTModel,
    )

    vits = {
        "hf_vit": DINOv3ViTConfig(**VIT, intermediate_size=64, num_register_tokens=4),
        "hf_vit_gated": DINOv3ViTConfig(
            **VIT,
            intermediate_size=48,
            num_register_tokens=2,
            use_gated_mlp=True,
            hidden_act="silu",
            query_bias=False,
            value_bias=False,
        ),
    }
    for seed, (name, config) in enumerate(vits.items()):
        model = randomise(DINOv3ViTModel(config), seed)
        pixels = image(seed, 32, 48)
        with torch.no_grad():
            result = model(pixels, output_hidden_states=True)
        write(out / f"{name}.safetensors", model.state_dict(), pixels, result)
    config = DINOv3ConvNextConfig(depths=[1, 1, 2, 1], hidden_sizes=[8, 16, 24, 32])
    model = randomise(DINOv3ConvNextModel(config), 7)
    pixels = image(7, 32, 64)
    with torch.no_grad():
        result = model(pixels)
    write(out / "hf_convnext.safetensors", model.state_dict(), pixels, result)


def write(path: Path, state: dict, pixels: torch.Tensor, result: object) -> None:
    tensors = {f"state.{name}": value.contiguous() for name, value in state.items()}
    tensors["image"] = pixels
    tensors["tokens"] = result.last_hidden_state.contiguous()
    for number, layer in enumerate(getattr(result, "hidden_states", None) or []):
        tensors[f"layer_{number:02}"] = layer.contiguous()
    save_file(tensors, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    write_transformers(options.out)


if __name__ == "__main__":
    main()

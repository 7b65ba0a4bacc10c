# SPDX-License-Identifier: Apache-2.0
"""DINOv3 against models that nobody here wrote, with random weights.

tools/dinov3_reference.py wrote the files of transformers. Those of Meta's layout (torch.save of the
state dict, one image and its features) come from one run of the published model.
"""

from pathlib import Path

import jax
import numpy as np
import onnxruntime
import pytest
from examples.dinov3 import build, run, weights
from examples.dinov3.checkpoint import read_safetensors
from examples.dinov3.convnext import ConvNeXtConfig
from examples.dinov3.vit import ViTConfig

DATA = Path(__file__).parent / "data" / "dinov3"
CONVNEXT = ConvNeXtConfig((1, 1, 2, 1), (8, 16, 24, 32))
VIT = ViTConfig(32, 2, 2, mlp_ratio=2.0, patch_size=8)
NO_BIAS = (False, False, False)
TOLERANCE = 1e-4  # of the largest value

HUGGING_FACE = {
    "hf_convnext": CONVNEXT,
    "hf_vit": VIT,
    "hf_vit_gated": ViTConfig(
        32, 2, 2, mlp_ratio=2.25, mlp="swiglu", patch_size=8, registers=2, qkv_bias=NO_BIAS
    ),
}
META = {
    "meta_convnext": CONVNEXT,
    "meta_vit": VIT,
    "meta_vit_swiglu": ViTConfig(
        32, 2, 2, mlp_ratio=3.0, mlp="swiglu", mlp_align=64, patch_size=8, qkv_bias=NO_BIAS
    ),
}


def empty(config):
    return weights.empty(lambda: build(config, key=jax.random.key(0)))


def assert_near(got, wanted):
    assert np.abs(got - wanted).max() <= TOLERANCE * np.abs(wanted).max()


def exported(model, image, tmp_path):
    """The features that ONNX Runtime gives for one image of any size."""
    path = tmp_path / "model.onnx"
    run.export(model, path, image_size=None)
    return onnxruntime.InferenceSession(path).run(None, {"image": image})


@pytest.mark.parametrize("name", HUGGING_FACE)
def test_features_of_transformers(name, tmp_path):
    content = read_safetensors(DATA / f"{name}.safetensors")
    state = {key.removeprefix("state."): x for key, x in content.items() if "state." in key}
    shapes = empty(HUGGING_FACE[name])
    model = weights.with_arrays(shapes, weights.translated(state, shapes))
    got = run.activations(model, content["image"])
    tokens = [got["class_token"][:, None], got["register_tokens"], got["patch_tokens"]]
    assert_near(np.concatenate(tokens, axis=1), content["tokens"])
    for layer in (key for key in content if key.startswith("layer_")):
        assert_near(got[layer], content[layer])
    class_token, registers, patches = exported(model, content["image"], tmp_path)
    tokens = np.concatenate([class_token[:, None], registers, patches], axis=1)
    assert_near(tokens, content["tokens"])


@pytest.mark.parametrize("name", META)
def test_features_of_meta(name, tmp_path):
    content = read_safetensors(DATA / f"{name}.safetensors")
    model = weights.load(DATA / f"{name}.pth", empty(META[name]))
    class_token, registers, patches = exported(model, content["image"], tmp_path)
    assert_near(class_token, content["clstoken"])
    assert_near(patches, content["patchtokens"])
    if registers.size:
        assert_near(registers, content["storage_tokens"])

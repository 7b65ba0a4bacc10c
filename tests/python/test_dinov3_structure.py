# SPDX-License-Identifier: Apache-2.0
"""What DINOv3 becomes: nodes a block, shared rotary tables, Equimo's models, memory, pictures."""

import collections
import subprocess
import sys
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import onnxruntime
import pytest
from examples.dinov3 import VARIANTS, build, weights
from examples.dinov3.__main__ import main
from examples.dinov3.vit import ViTConfig

import jaxport
from support.dinov3 import randomised

NO_PILLOW = "the oldest environment has no Pillow"
ROOT = Path(__file__).parents[2]
TOLERANCE = 1e-5  # of the largest value


def counts(model):
    return collections.Counter(node.op_type for node in model.graph.node)


def nodes_of_a_block(model):
    """From the first norm of the second block to that of the third."""
    nodes = model.graph.node
    norms = [i for i, node in enumerate(nodes) if node.op_type == "LayerNormalization"]
    return norms[4] - norms[2]


@pytest.mark.parametrize("shape", [(1, 3, 224, 224), ("B", 3, "16*h", "16*w")], ids=str)
def test_vits16_has_one_op_for_each_part(shape):
    model = randomised(VARIANTS["vits16"])
    exported = jaxport.to_onnx(jax.vmap(model), [shape], opset=23)
    found = counts(exported)
    assert found["Attention"] == found["Gelu"] == found["Split"] == 12
    assert found["RotaryEmbedding"] == 24
    assert found["LayerNormalization"] == 25
    assert found["Mul"] <= 2  # of the angles; no layer scale is left
    rotary = [node for node in exported.graph.node if node.op_type == "RotaryEmbedding"]
    assert len({tuple(node.input[1:3]) for node in rotary}) == 1  # one table for all blocks
    assert nodes_of_a_block(exported) <= 15
    assert found["Gemm"] == 48
    if "B" not in shape:
        assert found["Transpose"] == 1  # the patches, from the layout of Conv


EQUIMO = {
    "dinov2_vits14": ((3, 56, 56), {"depths": [2], "img_size": 56}, 0, 17),
    "dinov2_vits14_reg": ((3, 56, 56), {"depths": [2], "img_size": 56}, 0, 17),
    "dinov3_vits16_pretrain_lvd1689m": ((3, 64, 64), {"depths": [2]}, 4, 19),
    "dinov3_vits16plus_pretrain_lvd1689m": ((3, 64, 64), {"depths": [2]}, 4, 22),
    "eupe_vitt16": ((3, 64, 64), {"depths": [2]}, 4, 19),
}


@pytest.mark.parametrize("name", EQUIMO)
def test_equimo_has_the_same_structure(name):
    models = pytest.importorskip("equimo.models", reason="the oldest environment has no Equimo")
    shape, options, rotations, most_nodes = EQUIMO[name]
    model = eqx.nn.inference_mode(getattr(models, name)(pretrained=False, **options), True)
    key = jax.random.key(0)

    def features(image):
        return model.forward_features(image, key=key, inference=True)["x_norm_patchtokens"]

    exported = jaxport.to_onnx(jax.vmap(features), [("B", *shape)])
    found = counts(exported)
    assert found["Attention"] == 2
    assert found["RotaryEmbedding"] == rotations
    assert found["LayerNormalization"] == 5
    assert nodes_of_a_block(exported) <= most_nodes, nodes_of_a_block(exported)
    images = np.random.default_rng(0).normal(size=(2, *shape)).astype(np.float32)
    session = onnxruntime.InferenceSession(exported.SerializeToString())
    (got,) = session.run(None, {session.get_inputs()[0].name: images})
    wanted = np.asarray(jax.vmap(features)(images))
    assert np.abs(got - wanted).max() <= TOLERANCE * np.abs(wanted).max()


@pytest.mark.parametrize("name", ["eupe_convnext_tiny", "eupe_convnext_base"])
def test_equimo_convnext(name):
    models = pytest.importorskip("equimo.models", reason="the oldest environment has no Equimo")
    options = {"depths": [1, 1, 2, 1], "layer_scale_init_value": 0.5}
    model = eqx.nn.inference_mode(getattr(models, name)(pretrained=False, **options), True)

    def both(image):
        return model.features(image, inference=True), model(image, inference=True)

    exported = jaxport.to_onnx(jax.vmap(both), [("B", 3, 64, 64)], opset=23)
    found = counts(exported)
    assert found["Conv"] == 4 + 3 * 5  # between stages; a block has three, two of them of 1 x 1
    assert found["Gelu"] == found["Add"] == 5
    assert found["LayerNormalization"] == 4 + 5 + 1
    assert found["Mul"] == 0  # the layer scale is in the weights
    images = np.random.default_rng(0).normal(size=(2, 3, 64, 64)).astype(np.float32)
    session = onnxruntime.InferenceSession(exported.SerializeToString())
    results = session.run(None, {session.get_inputs()[0].name: images})
    for got, wanted in zip(results, jax.vmap(both)(images), strict=True):
        assert np.abs(got - wanted).max() <= TOLERANCE * np.abs(wanted).max()


def test_export_of_a_mapped_file_does_not_hold_the_weights(tmp_path):
    """`make test-dinov3-memory` does the same with 6 GB."""
    command = [sys.executable, "-m", "examples.dinov3.memory", "--width", "512", "--depth", "12"]
    result = subprocess.run(
        [*command, "--folder", tmp_path], cwd=ROOT, capture_output=True, text=True, check=True
    )
    megabytes = dict(zip(("weights", "held"), map(float, result.stdout.split()), strict=True))
    assert megabytes["weights"] > 120
    assert megabytes["held"] < 100, megabytes


def scene(path, shift):
    """A bright disc and a box on a slope of grey."""
    from PIL import Image, ImageDraw

    slope = np.linspace(40, 120, 64, dtype=np.uint8)
    image = Image.fromarray(np.repeat(np.tile(slope, (64, 1))[..., None], 3, axis=2))
    pencil = ImageDraw.Draw(image)
    pencil.ellipse([8 + shift, 8, 28 + shift, 28], fill=(230, 60, 40))
    pencil.rectangle([32, 36 - shift, 56, 56 - shift], fill=(40, 90, 220))
    image.save(path)
    return path


def test_pictures_of_features(tmp_path, monkeypatch):
    Image = pytest.importorskip("PIL.Image", reason=NO_PILLOW)  # noqa: N806
    config = ViTConfig(32, 2, 2, patch_size=4, layer_scale=0.5)
    monkeypatch.setitem(VARIANTS, "vits16", config)
    images = [str(scene(tmp_path / f"{shift}.png", shift)) for shift in (0, 8)]
    folder = ROOT / "build" / "report"
    folder.mkdir(parents=True, exist_ok=True)
    for count, height in ((1, 64), (2, 128)):
        output = folder / f"dinov3-{count}.png"
        arguments = ["--variant", "vits16", "--image-size", "64", "-o", str(output)]
        assert main(["show", *images[:count], *arguments]) == 0
        drawn = np.asarray(Image.open(output))
        assert drawn.shape == (height, 128, 3)
        assert len(np.unique(drawn[:, 64:].reshape(-1, 3), axis=0)) > 20


def test_components_find_the_directions_of_a_cloud():
    picture = pytest.importorskip("examples.dinov3.picture", reason=NO_PILLOW)
    generator = np.random.default_rng(0)
    spread = generator.normal(size=(200, 3)) * [10, 3, 1]
    scores = picture.components(spread, count=3)
    for axis in range(3):
        assert abs(np.corrcoef(scores[:, axis], spread[:, axis])[0, 1]) > 0.95


def test_nearest_patches_of_a_permutation():
    picture = pytest.importorskip("examples.dinov3.picture", reason=NO_PILLOW)
    tokens = np.random.default_rng(0).normal(size=(20, 8))
    order = np.random.default_rng(1).permutation(20)
    pairs = picture.nearest(tokens, tokens[order], count=20)
    assert len(pairs) == 20
    assert all(order[right] == left for left, right, _ in pairs)


def test_nothing_is_read_before_it_is_used(tmp_path):
    config = ViTConfig(32, 1, 2)
    path = tmp_path / "w.safetensors"
    weights.save(path, build(config, key=jax.random.key(0)))
    model = weights.load(path, weights.empty(lambda: build(config, key=jax.random.key(0))))
    base = model.blocks[0].mlp.fc1.weight
    while getattr(base, "base", None) is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)

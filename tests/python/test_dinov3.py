# SPDX-License-Identifier: Apache-2.0
"""The example examples/dinov3: its commands, its files and the structure of what it exports."""

import json
import pickle
import zipfile
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import onnxruntime
import pytest
from examples.dinov3 import VARIANTS, build, checkpoint, run, weights
from examples.dinov3.__main__ import main
from examples.dinov3.convnext import ConvNeXtConfig
from examples.dinov3.dinov2 import DINOv2Config
from examples.dinov3.vit import ViTConfig

from jaxport._jax import double_precision
from support.dinov3 import randomised

TINY = {
    "convnext": ConvNeXtConfig((1, 1, 2, 1), (16, 24, 32, 40), layer_scale=0.5),
    "dinov2": DINOv2Config(32, 2, 2, grid=5, registers=2, layer_scale=0.5),
    "dinov2_antialias": DINOv2Config(32, 2, 2, grid=5, antialias=True, layer_scale=0.5),
    "vit": ViTConfig(32, 2, 2, layer_scale=0.5),
    "vit_swiglu": ViTConfig(
        32, 2, 2, mlp="swiglu", mlp_ratio=6.0, layer_scale=0.5, untie_class_norm=True
    ),
}
DATA = Path(__file__).parent / "data" / "dinov3"
TOLERANCE = {np.float32: 1e-5, np.float64: 1e-9}  # of the largest value


def images(config, grid=(3, 4), batch=2, dtype=np.float32):
    height, width = (config.patch_size * size for size in grid)
    return np.random.default_rng(1).normal(size=(batch, 3, height, width)).astype(dtype)


@pytest.mark.parametrize("name", TINY)
def test_one_model_for_all_sizes(name, tmp_path):
    model = randomised(TINY[name])
    path, reference = tmp_path / "model.onnx", tmp_path / "reference.safetensors"
    run.export(model, path, image_size=None)
    for batch, grid in ((1, (3, 4)), (2, (5, 5)), (1, (7, 6))):
        run.write_reference(model, images(TINY[name], grid, batch), reference)
        for row in run.verify(path, reference):
            assert row.relative < TOLERANCE[np.float32], row


@pytest.mark.parametrize("opset", [16, 22, 23, 26])
@pytest.mark.parametrize("name", ["vit", "vit_swiglu"])
def test_same_numbers_at_every_opset(name, opset, tmp_path):
    model = randomised(TINY[name])
    path, reference = tmp_path / "model.onnx", tmp_path / "reference.safetensors"
    run.export(model, path, image_size=48, opset=opset)
    run.write_reference(model, images(TINY[name], (3, 3)), reference)
    rows = run.verify(path, reference)
    assert max(row.relative for row in rows) < TOLERANCE[np.float32]
    layers = [row.name for row in rows if row.name.startswith("layer_")]
    assert len(layers) >= (2 if opset >= 17 else 0)


@pytest.mark.parametrize("name", TINY)
def test_double_precision(name, tmp_path):
    with double_precision(True):
        model = randomised(TINY[name], np.float64)
        path = tmp_path / "model.onnx"
        run.export(model, path, image_size=4 * TINY[name].patch_size, double=True)
        image = images(TINY[name], (4, 4), dtype=np.float64)
        wanted = [np.asarray(x) for x in jax.vmap(model)(image)]
    got = onnxruntime.InferenceSession(path).run(None, {"image": image})
    for one, other in zip(got, wanted, strict=True):
        assert one.dtype == np.float64
        if one.size:
            assert np.abs(one - other).max() <= TOLERANCE[np.float64] * np.abs(other).max()


@pytest.mark.parametrize("suffix", [".safetensors", ".eqx"])
@pytest.mark.parametrize("name", ["convnext", "vit"])
def test_weights_come_back(name, suffix, tmp_path):
    config = TINY[name]
    model = randomised(config)
    path = tmp_path / f"weights{suffix}"
    weights.save(path, model)
    back = weights.load(path, weights.empty(lambda: build(config, key=jax.random.key(0))))
    own, other = weights.named_arrays(model), weights.named_arrays(back)
    assert own.keys() == other.keys()
    assert all(np.array_equal(own[key], other[key]) for key in own)


def test_safetensors_of_others_and_for_others(tmp_path):
    numpy_files = pytest.importorskip(
        "safetensors.numpy", reason="the oldest environment has no safetensors"
    )
    path = tmp_path / "file.safetensors"
    tensors = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.ones(4, np.int64)}
    for write, read in (
        (checkpoint.write_safetensors, lambda: numpy_files.load_file(path)),
        (
            lambda path, tensors: numpy_files.save_file(tensors, path),
            lambda: checkpoint.read_safetensors(path),
        ),
    ):
        write(path, tensors)
        back = read()
        assert all(np.array_equal(back[key], tensors[key]) for key in tensors)


class Intruder:
    def __reduce__(self):
        return (print, ("this must not be called",))


def write_pth(path, content):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(content))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (Intruder(), "builtins.print, which is no tensor"),
        ({"epoch": 3}, "'epoch' is a int, not a tensor"),
        ([1, 2], "holds a list, not a state dict"),
        (np.float64(1), "which is no tensor"),
    ],
)
def test_pth_of_anything_but_tensors_is_refused(content, message, tmp_path, capsys):
    path = tmp_path / "model.pth"
    write_pth(path, content)
    with pytest.raises(checkpoint.CheckpointError, match=message):
        checkpoint.read_pth(path)
    assert "must not be called" not in capsys.readouterr().out


def test_broken_files_are_refused(tmp_path):
    path = tmp_path / "model.pth"
    path.write_bytes(b"no zip file")
    with pytest.raises(checkpoint.CheckpointError, match="is no zip file"):
        checkpoint.read_pth(path)
    header = json.dumps({"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    with pytest.raises(checkpoint.CheckpointError, match="outside of the file"):
        checkpoint.read_safetensors(path)


def test_weights_of_another_model_are_refused():
    shapes = weights.empty(lambda: build(TINY["vit"], key=jax.random.key(0)))
    with pytest.raises(checkpoint.CheckpointError, match=r"missing: .*unknown: "):
        weights.load(DATA / "meta_convnext.pth", shapes)


def test_commands_from_checkpoint_to_verified_model(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(VARIANTS, "vits16", ViTConfig(32, 2, 2, mlp_ratio=2.0, patch_size=8))
    files = {name: str(tmp_path / name) for name in ("w.safetensors", "m.onnx", "r.safetensors")}
    converted, model, reference = files.values()
    checkpoint_file = str(DATA / "meta_vit.pth")
    assert main(["convert", checkpoint_file, "--variant", "vits16", "-o", converted]) == 0
    common = ["--variant", "vits16", "--weights", converted, "--image-size", "32"]
    assert main(["export", *common, "--batch", "2", "--opset", "23", "-o", model]) == 0
    assert main(["reference", *common, "-o", reference]) == 0
    assert main(["verify", model, "--reference", reference]) == 0
    assert "layer_02" in capsys.readouterr().out
    other = ["--variant", "vits16", "--image-size", "32"]  # random weights: another model
    assert main(["reference", *other, "-o", reference]) == 0
    assert main(["verify", model, "--reference", reference]) == 1
    assert main(["convert", converted + "x", "--variant", "vits16", "-o", converted]) == 1
    assert "error: " in capsys.readouterr().err


@pytest.mark.parametrize("name", TINY)
def test_keys_are_used_once(name):
    with jax.debug_key_reuse(True):
        model = jax.jit(lambda key: build(TINY[name], key=key))
        jax.block_until_ready(eqx.filter(model(jax.random.key(0)), eqx.is_array))


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_published_sizes(name):
    """The parameters that the release states, in millions."""
    sizes = {"vits16": 21.6, "vits16plus": 28.7, "vitb16": 85.7, "vitl16": 303.1}
    sizes |= {"vith16plus": 840.5, "vit7b16": 6716.0}
    sizes |= {"convnext_tiny": 27.8, "convnext_small": 49.5}
    sizes |= {"convnext_base": 87.6, "convnext_large": 196.2}
    sizes |= {"dinov2_vits14": 22.1, "dinov2_vitb14": 86.6}
    shapes = weights.empty(lambda: build(name, key=jax.random.key(0)))
    count = sum(x.size for x in weights.named_arrays(shapes).values())
    assert count / 1e6 == pytest.approx(sizes[name], rel=0.01)

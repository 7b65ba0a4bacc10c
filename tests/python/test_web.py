# SPDX-License-Identifier: Apache-2.0
"""Models in ONNX Runtime Web, and what is said where it cannot run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest

import jaxport
from jaxport import runtime

has_web = any(
    (Path(folder) / "onnxruntime-web").exists()
    for folder in os.environ.get("NODE_PATH", "").split(os.pathsep)
)
needs_web = pytest.mark.skipif(not has_web, reason="make test-web installs onnxruntime-web")


def mlp(x, scale=1.0):
    w = jnp.linspace(-1, 1, 15).reshape(3, 5)
    return jax.nn.gelu(x @ w) * scale, jnp.argsort(x), x > 0


def saved(tmp_path, fn=mlp, inputs=(("B", 3),), **options):
    path = tmp_path / "model.onnx"
    return jaxport.to_onnx(
        fn, inputs, return_mode="file", output_path=path, export_mode="web", **options
    )


@needs_web
def test_numbers_indices_and_truths_are_those_of_the_native_runtime(tmp_path):
    fits, message = jaxport.allclose_onnxruntime_web(saved(tmp_path), [(4, 3)])
    assert fits, message


@needs_web
def test_params_are_fed_by_name(tmp_path):
    path = saved(tmp_path, input_params={"scale": 2.0})
    fits, message = jaxport.allclose_onnxruntime_web(path, [(4, 3)], {"scale": 3.0})
    assert fits, message


@needs_web
@pytest.mark.parametrize("dtype", [jnp.float16, jnp.float32, jnp.int32, jnp.uint8, bool])
def test_every_dtype_crosses_the_border(tmp_path, dtype):
    path = saved(tmp_path, lambda x: x, [jax.ShapeDtypeStruct((2, 3), dtype)])
    values = np.arange(6).reshape(2, 3).astype(dtype)
    fits, message = jaxport.allclose_onnxruntime_web(path, [values], rtol=0, atol=0)
    assert fits, message


@needs_web
@pytest.mark.skipif(not shutil.which("chromium"), reason="there is no Chromium")
def test_a_browser(tmp_path):
    fits, message = jaxport.allclose_onnxruntime_web(saved(tmp_path), [(4, 3)], runner="chrome")
    assert fits, message


@needs_web
@pytest.mark.skipif(not shutil.which("chromium"), reason="there is no Chromium")
def test_webgpu(tmp_path):
    path = saved(tmp_path, lambda x: jax.nn.gelu(x) @ jnp.ones((3, 5)))
    fits, message = jaxport.allclose_onnxruntime_web(path, [(4, 3)], runner="webgpu")
    assert fits, message


# What the note of `jaxport targets` says (target/fit.cpp).
@needs_web
@pytest.mark.skipif(not shutil.which("chromium"), reason="there is no Chromium")
@pytest.mark.parametrize(("dtype", "loads"), [(jnp.uint8, True), (jnp.int16, False)])
def test_webgpu_lacks_dtypes(tmp_path, dtype, loads):
    path = saved(tmp_path, lambda x: (x.astype(dtype) * 3).astype(jnp.float32))
    fits, message = jaxport.allclose_onnxruntime_web(path, [(4, 3)], runner="webgpu")
    assert fits == loads, message
    assert loads or "cannot run the model" in message
    found = subprocess.run(
        [sys.executable, "-m", "jaxport", "targets", path], capture_output=True, text=True
    )
    assert ("WebGPU: i16 at node" in found.stdout) != loads


@needs_web
def test_bfloat16_crosses_the_border_as_f32(tmp_path):
    path = saved(tmp_path, lambda x: x * x, [jax.ShapeDtypeStruct((3,), jnp.bfloat16)])
    session = runtime.open_session(path)
    assert [value.type for value in session.get_inputs()] == ["tensor(float)"]
    fits, message = jaxport.allclose_onnxruntime_web(path, [np.ones(3, np.float32)])
    assert fits, message


def test_exact_models_mend_the_same_kernels_as_for_the_native_runtime():
    ops = {
        target: [node.op_type for node in jaxport.to_onnx(
            lambda x: (x.max(-1), jnp.tanh(x), jnp.where(x < 0, x, 1)), [(2, 3)],
            exact=True, target=target,
        ).graph.node]
        for target in ("onnxruntime", "onnxruntime-web")
    }  # fmt: skip
    assert "IsNaN" in ops["onnxruntime"]
    assert ops["onnxruntime-web"] == ops["onnxruntime"]


@needs_web
def test_exact_models_keep_nan_and_signs(tmp_path):
    x = np.array([[-0.0, 1, np.nan], [-40, 2, -1e-37]], np.float32)

    def fn(x):
        return x.max(-1), 1 / jnp.where(x < 1, x, 2.0), jax.nn.sigmoid(x), jnp.tanh(x), jnp.sign(x)

    fits, message = jaxport.allclose_onnxruntime_web(
        saved(tmp_path, fn, [(2, 3)], exact=True), [x], rtol=1e-6, atol=0
    )
    assert fits, message
    # The same kernels in both: what they give must be JAX's, too.
    fits, message = jaxport.allclose(fn, tmp_path / "model.onnx", [x], rtol=1e-6, atol=0)
    assert fits, message


def test_the_mode_is_a_target(tmp_path):
    inputs = [jax.ShapeDtypeStruct((3,), jnp.bfloat16)]
    wanted = {"onnxruntime": "onnxruntime-web>=1.23", "onnxruntime>=1.28": "onnxruntime>=1.28"}
    for target, requires in wanted.items():
        model = jaxport.to_onnx(
            mlp, [(4, 3)], return_mode="model", export_mode="web", target=target
        )
        assert model.requires == requires
    model = jaxport.to_onnx(lambda x: x, inputs, export_mode="web")
    kinds = [
        value.type.tensor_type.elem_type for value in [*model.graph.input, *model.graph.output]
    ]
    assert kinds == [onnx.TensorProto.FLOAT] * 2


@needs_web
def test_a_model_that_does_not_load(tmp_path, monkeypatch):
    path = saved(tmp_path)
    session = runtime.open_session(path)
    monkeypatch.setattr(runtime, "open_session", lambda model: session)
    Path(path).write_bytes(b"no model")
    fits, message = jaxport.allclose_onnxruntime_web(path, [(4, 3)])
    assert not fits
    assert message.startswith("ONNX Runtime Web cannot run the model: ")


def test_what_is_missing_is_said(tmp_path, monkeypatch):
    monkeypatch.delenv("NODE_PATH", raising=False)
    monkeypatch.chdir(tmp_path)
    fits, message = jaxport.allclose_onnxruntime_web("model.onnx", [(4, 3)])
    assert not fits
    assert "npm install onnxruntime-web" in message


def test_an_unknown_runner():
    fits, message = jaxport.allclose_onnxruntime_web("model.onnx", [(4, 3)], runner="safari")
    assert not fits
    assert message == "there is no runner 'safari'; use 'node', 'chrome' or 'webgpu'"

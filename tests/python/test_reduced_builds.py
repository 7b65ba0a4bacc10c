# SPDX-License-Identifier: Apache-2.0
"""jaxport ops and ORT format, beside ONNX Runtime's own tools."""

from __future__ import annotations

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest
from jax import lax

import jaxport
from jaxport import ort_format, runtime

W = np.ones((4, 3), np.float32)


def network(x, ids):
    """With bodies of control flow, and one operator for each way to decide about types."""
    y = lax.cond(ids[0] > 1, lambda v: jnp.tanh(v @ W), lambda v: v[:, :3] ** 2.5, x)
    z = lax.fori_loop(0, 3, lambda i, v: v + jnp.sin(v), y)
    return jnp.where(z > 0, z, 0) + jax.nn.one_hot(ids, 3), jnp.asarray(W)[ids], z.astype(jnp.int32)


INPUTS = [(2, 4), jax.ShapeDtypeStruct((2,), jnp.int32)]


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "jaxport", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
    )


def operators(text):
    """By domain and opset: what each line lists."""
    lines = [line.split(";", 2) for line in text.splitlines() if not line.startswith("#")]
    return {(domain, opset): ops for domain, opset, ops in lines}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("ops") / "network.onnx"
    return jaxport.to_onnx(network, INPUTS, return_mode="file", output_path=path)


def unoptimised(model, path):
    """The model in ORT format with its own nodes, which ONNX Runtime's tool reads."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(path)
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return path


# ONNX Runtime's tool leaves files open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_operators_are_those_of_the_tool(model, tmp_path):
    pytest.importorskip("flatbuffers")
    ort = unoptimised(model, tmp_path / "network.ort")
    for types in (False, True):
        ort_format.write_operators(str(ort), str(tmp_path / "wanted.config"), with_types=types)
        wanted = operators((tmp_path / "wanted.config").read_text())
        listed = command("ops", model, *(["--types"] if types else []))
        assert listed.returncode == 0, listed.stderr
        have = operators(listed.stdout)
        if not types:
            assert have == wanted
            continue
        from onnxruntime.tools.reduced_build_config_parser import parse_config

        (tmp_path / "have.config").write_text(listed.stdout)
        ops, filters = parse_config(str(tmp_path / "have.config"), True)
        _, wanted_filters = parse_config(str(tmp_path / "wanted.config"), True)
        assert {op for versions in ops.values() for names in versions.values() for op in names}
        assert filters.get_cpp_entries() == wanted_filters.get_cpp_entries()


def test_several_models_and_functions(model, tmp_path):
    @jaxport.onnx_function
    def inner(x):
        return jnp.exp(x)

    other = tmp_path / "other.onnx"
    jaxport.to_onnx(lambda x: inner(inner(x)), [(3,)], return_mode="file", output_path=other)
    assert onnx.load(other).functions
    have = command("ops", model, other).stdout
    assert operators(have)["ai.onnx", "13"].split(",").count("Exp") == 1
    assert "inner" not in "".join(operators(have).values())
    assert have.count("# - ") == 2


def test_opsets_that_are_not_known(tmp_path):
    path = tmp_path / "old.onnx"
    onnx.save(
        onnx.parser.parse_model(
            '<ir_version: 4, opset_import: ["" : 9]> g (float[2] x) => (float[2] y) { y = Exp(x) }'
        ),
        path,
    )
    failed = command("ops", path)
    assert failed.returncode == 2
    assert "JXP-E111" in failed.stderr


def test_ort_format(tmp_path):
    path = tmp_path / "network.ort"
    assert jaxport.to_onnx(network, INPUTS, return_mode="file", output_path=path) == str(path)
    assert path.read_bytes()[4:8] == b"ORTM"
    assert [p.name for p in tmp_path.iterdir()] == ["network.ort"]
    x, ids = np.arange(8, dtype=np.float32).reshape(2, 4), np.array([0, 2], np.int32)
    for have, want in zip(
        runtime.run(runtime.open_session(str(path)), [x, ids]).values(),
        network(x, ids),
        strict=True,
    ):
        assert np.allclose(have, want, rtol=1e-5)


def test_ort_command(model, tmp_path):
    pytest.importorskip("flatbuffers")
    out, config = tmp_path / "n.ort", tmp_path / "n.config"
    made = command("ort", model, "-o", out, "--ops", config, "--types")
    assert made.returncode == 0, made.stderr
    assert out.exists()
    assert "ai.onnx" in config.read_text()


def test_ort_format_fails_as_told(tmp_path, monkeypatch, model):
    with pytest.raises(jaxport.ConversionError, match="E112"):
        ort_format.save_ort(model, tmp_path / "missing" / "n.ort")
    (tmp_path / "n.ort").write_bytes(b"old")
    with pytest.raises(jaxport.ConversionError, match="E112"):
        ort_format.save_ort(b"no model", tmp_path / "n.ort")
    assert (tmp_path / "n.ort").read_bytes() == b"old"
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(jaxport.ConversionError, match=r"E112.*not installed"):
        ort_format.save_ort(model, tmp_path / "n.ort")

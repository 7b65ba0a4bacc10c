# SPDX-License-Identifier: Apache-2.0
"""Every example runs and gives what JAX gives."""

import importlib
import importlib.util
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


def results_of(name):
    return importlib.import_module(f"examples.{name}").main()


def ops_of(graph):
    bodies = [a.g for node in graph.node for a in node.attribute if a.HasField("g")]
    return {node.op_type for node in graph.node}.union(*map(ops_of, bodies))


def test_the_demo_ends_with_commands_that_work(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    results_of("demo")
    said = capsys.readouterr().out
    for name in ("NNX vision transformer", "Equinox MLP", "plain function"):
        assert name in said
    page = tmp_path / "build" / "demo" / "vision_transformer.html"
    assert page.as_uri() in said
    (text,) = re.findall(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)
    data = json.loads(text)
    assert data["verification"]["verdict"] == "same"
    assert any(error["relative"] > 0 for error in data["errors"])

    commands = re.findall(r"^  (\S*jaxport .*)$", said, re.MULTILINE)
    assert [shlex.split(command)[1] for command in commands] == ["convert", "targets", "report"]
    for command in commands:
        subprocess.run(shlex.split(command), check=True, timeout=120)
    assert page.with_name("similarity.onnx").is_file()
    assert "similarity" in page.with_name("similarity.html").read_text(encoding="utf-8")


def test_a_decoder_says_the_same_words():
    results = results_of("decoder")
    assert len(results["have"]) == 40
    assert len(set(results["have"])) > 5
    assert results["have"] == results["want"]


def test_a_training_step_learns_as_in_jax():
    results = results_of("training_step")
    assert np.mean(results["have"][-5:]) < 0.1 * results["have"][0]
    np.testing.assert_allclose(results["have"], results["want"], rtol=1e-3)


@pytest.mark.parametrize(("name", "tolerance"), [("diffusion", 1e-4), ("neural_ode", 1e-3)])
def test_loops_in_the_model(name, tolerance):
    results = results_of(name)
    np.testing.assert_allclose(results["have"], results["want"], atol=tolerance)
    assert ops_of(results["model"].to_proto().graph) & {"Loop", "Scan"}


def test_a_chain_falls_as_in_jax():
    results = results_of("physics")
    np.testing.assert_allclose(results["have"], results["want"], atol=1e-3)
    assert ops_of(results["model"].to_proto().graph) & {"Loop", "Scan"}


@pytest.mark.skipif(
    importlib.util.find_spec("gymnax") is None, reason="requirements/examples.txt is not installed"
)
def test_a_policy_has_the_same_return():
    results = results_of("policy")
    assert results["have"] == results["want"]
    assert np.mean(results["have"]) > 300


def has_header():
    """Debian 12 has no package of ONNX Runtime for C++; Debian 13 has."""
    command = ["pkg-config", "--exists", "libonnxruntime"]
    return shutil.which("pkg-config") and subprocess.run(command, check=False).returncode == 0


@pytest.mark.skipif(not has_header(), reason="libonnxruntime-dev is missing; make test-cpp has it")
def test_a_program_in_cpp(tmp_path):
    importlib.import_module("examples.cpp.__main__").write(tmp_path)
    script = ROOT / "examples" / "cpp" / "run.sh"
    subprocess.run([script, tmp_path], check=True)


def test_five_frameworks_have_one_graph():
    results = results_of("frameworks")
    assert len(results) == 5
    for name, (equal, ops) in results.items():
        assert equal, name
        assert ops == ["Reshape", "Conv", "Relu", "ReduceMean", "Gemm"], name

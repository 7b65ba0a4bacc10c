# SPDX-License-Identifier: Apache-2.0
"""Damaged files through every command (tests/fuzz/files), and a damaged checkpoint of DINOv3."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from examples.dinov3.checkpoint import (
    CheckpointError,
    read_pth,
    read_safetensors,
    write_safetensors,
)

from fuzz.files.mutate import encoded, message, mutated_bytes, mutated_model, mutated_text

TESTS = Path(__file__).resolve().parents[1]


def run(*arguments: str) -> str:
    process = subprocess.run(
        [sys.executable, "-m", *arguments],
        env={"PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def test_no_command_ends_with_a_signal_or_a_bug(tmp_path):
    text = run("fuzz.files", "--files", "400", "--seed", "1", "--folder", str(tmp_path))
    assert "400 damaged files, 800 commands" in text


def test_a_killed_or_failed_conversion_leaves_a_whole_model():
    assert run("fuzz.files.kills", "--kills", "20").endswith("0 models were damaged\n")


def test_a_message_that_is_taken_apart_is_the_same_again():
    onnx = pytest.importorskip("onnx", reason="the package onnx is optional")
    node = onnx.helper.make_node("Exp", ["x"], ["y"])
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph([node], "g", [info("x", 1, [2])], [info("y", 1, [2])])
    data = onnx.helper.make_model(graph).SerializeToString()
    fields = message(data)
    assert fields is not None
    assert encoded(fields) == data


def test_mutations_change_files_and_repeat():
    data, text = bytes(range(200)), "func @f(%x: f32[2,3]) {\n  %y: f32[2,3] = exp %x\n}\n"
    for seed in range(20):
        first, second = random.Random(seed), random.Random(seed)
        assert mutated_bytes(data, [data], first) == mutated_bytes(data, [data], second)
        assert mutated_text(text, [text], first) == mutated_text(text, [text], second)
        assert mutated_model(data, [data], first) == mutated_model(data, [data], second)
    changed = sum(mutated_text(text, [text], random.Random(seed)) != text for seed in range(100))
    assert changed > 60


def test_a_damaged_checkpoint_is_read_or_refused(tmp_path):
    path = tmp_path / "weights.safetensors"
    tensors = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.ones(4, np.int64)}
    write_safetensors(path, tensors)
    data, rng, refused = path.read_bytes(), random.Random(3), 0
    for _ in range(300):
        path.write_bytes(mutated_bytes(data, [data], rng))
        try:
            for array in read_safetensors(path).values():
                array.sum(dtype=np.float64)
        except CheckpointError:
            refused += 1
    assert 30 < refused < 300


def test_a_damaged_pth_file_is_read_or_refused(tmp_path):
    whole = (Path(__file__).parent / "data" / "dinov3" / "meta_vit.pth").read_bytes()
    path, rng, refused = tmp_path / "model.pth", random.Random(3), 0
    for _ in range(100):
        path.write_bytes(mutated_bytes(whole, [whole], rng))
        try:
            for array in read_pth(path).values():
                np.asarray(array).tobytes()
        except CheckpointError:
            refused += 1
    assert refused > 10


@pytest.mark.parametrize(
    "header",
    [
        *("[]", "1", "null", '{"a": 1}', '{"a": {}}', '{"a": {"dtype": "F32"}}'),
        '{"a": {"dtype": "F32", "shape": [-1, -2], "data_offsets": [0, 8]}}',
        '{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8, 9]}}',
        '{"a": {"dtype": "F32", "shape": [2], "data_offsets": ["0", 8]}}',
        '{"a": {"dtype": "F32", "shape": "2", "data_offsets": [0, 8]}}',
        '{"a": {"dtype": "F32", "shape": [4294967296, 4294967296], "data_offsets": [0, 0]}}',
        '{"a": {"dtype": ["F32"], "shape": [2], "data_offsets": [0, 8]}}',
    ],
)
def test_a_header_without_sense_is_refused(tmp_path, header):
    path = tmp_path / "weights.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header.encode() + bytes(16))
    with pytest.raises(CheckpointError):
        read_safetensors(path)

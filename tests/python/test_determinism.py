# SPDX-License-Identifier: Apache-2.0
"""Same input, same bytes: in another process, with another hash seed, in another folder."""

from __future__ import annotations

import os
import subprocess
import sys

CODE = """
import sys
import jaxport
from raising.libraries import with_nnx
from support import models

model = with_nnx(models.NnxViT).build()
jaxport.to_onnx(model, [("B", 16, 16, 3)], return_mode="file", output_path=sys.argv[1])
"""


def convert(folder, seed):
    path = folder / "m.onnx"
    tests = os.path.dirname(os.path.abspath(__file__))
    environment = {
        **os.environ,
        "PYTHONHASHSEED": str(seed),
        "PYTHONPATH": os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")]),
        "JAX_PLATFORMS": "cpu",
    }
    command = [sys.executable, "-c", CODE, str(path)]
    subprocess.run(command, check=True, cwd=folder, env=environment, timeout=300)
    return path.read_bytes()


def test_two_processes_write_the_same_bytes(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert convert(tmp_path / "a", 1) == convert(tmp_path / "b", 2)

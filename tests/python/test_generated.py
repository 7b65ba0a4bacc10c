# SPDX-License-Identifier: Apache-2.0
"""Committed tables are what their tools give with the pinned versions of onnx and onnxruntime."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.mark.parametrize("tool", ["generate_schemas.py", "generate_kernels.py"])
def test_table_is_fresh(tool):
    run = subprocess.run(
        [sys.executable, str(TOOLS / tool), "--check"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr

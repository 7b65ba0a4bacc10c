# SPDX-License-Identifier: Apache-2.0
"""The committed stub of jaxport._core is what nanobind generates."""

from __future__ import annotations

import importlib.resources
import subprocess
import sys


def test_stub_is_current(tmp_path):
    path = tmp_path / "_core.pyi"
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "jaxport._core", "-o", path]
    subprocess.run(command, check=True, timeout=120)
    committed = importlib.resources.files("jaxport").joinpath("_core.pyi").read_text()
    assert committed == path.read_text()

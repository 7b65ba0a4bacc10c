# SPDX-License-Identifier: Apache-2.0
"""Runs models in Node.js: one process, asked line by line."""

from __future__ import annotations

import contextlib
import json
import subprocess
from pathlib import Path
from typing import Any


class Node:
    """ONNX Runtime Web (WebAssembly) in Node.js. Close it after use."""

    def __init__(self, node_modules: Path, command: str = "node") -> None:
        script = Path(__file__).parent / "node.mjs"
        self._process = subprocess.Popen(
            [command, str(script), str(node_modules)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def infer(self, model: Path, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """What infer.mjs answers. Raises RuntimeError when Node.js ends instead."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # what it said of its end follows
            self._process.stdin.write(json.dumps({"model": str(model), "inputs": inputs}) + "\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            assert self._process.stderr is not None
            message = self._process.stderr.read().strip()
            raise RuntimeError(message or f"node ended with {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

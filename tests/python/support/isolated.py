# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime in a process of its own: a kernel that crashes does not end the tests.

Run as a script, it reads pickled (model, inputs) from stdin and answers with pickled outputs.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Sequence
from typing import Any


class CrashError(Exception):
    """ONNX Runtime ended the process."""


class RefusalError(Exception):
    """ONNX Runtime returned an error."""


class Runner:
    """A child process, started again after each crash."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None

    def run(self, model: bytes, inputs: Sequence[Any]) -> list[Any]:
        """The outputs for arrays in the order of the model's inputs."""
        if self._child is None:
            command = [sys.executable, __file__]
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        child = self._child
        assert child.stdin
        assert child.stdout
        try:
            pickle.dump((model, list(inputs)), child.stdin)
            child.stdin.flush()
            outputs, message = pickle.load(child.stdout)
        except (EOFError, BrokenPipeError):
            self.close()
            raise CrashError(f"exit code {child.returncode}") from None
        if message:
            raise RefusalError(message)
        return outputs

    def close(self) -> None:
        if self._child is None:
            return
        assert self._child.stdin
        assert self._child.stdout
        self._child.stdin.close()
        self._child.wait()
        self._child.stdout.close()
        self._child = None


def _serve() -> None:
    import onnxruntime

    from jaxport import runtime

    # Kernels divide the work among threads, and some of them by a size.
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    options.log_severity_level = 4
    session, loaded = None, None
    while True:
        try:
            model, arrays = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        outputs, message = [], ""
        try:
            if loaded != model:
                session = onnxruntime.InferenceSession(
                    model, options, providers=["CPUExecutionProvider"]
                )
                loaded = model
            outputs = list(runtime.run(session, arrays).values())
        except Exception as error:
            message = str(error)
        pickle.dump((outputs, message), sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    _serve()

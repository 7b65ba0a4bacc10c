# SPDX-License-Identifier: Apache-2.0
"""Differences that docs/architecture.md describes under "Where numbers differ".

Each is a primitive that behaves as ONNX Runtime's op does. A difference is known when JAX gives
the model's numbers once its primitives behave so: nothing else about the program is excused.
"""

from __future__ import annotations

import numpy as np

from fuzz.programs.program import Program

Results = list[np.ndarray]


def difference(program: Program, values: Results, have: Results) -> str:
    """The name of the documented difference that explains the model's numbers, or ""."""
    return ""


def failure(program: Program, values: Results, message: str) -> str:
    """The name of the documented error that the model stops with, or ""."""
    return ""

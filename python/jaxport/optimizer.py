# SPDX-License-Identifier: Apache-2.0
"""The passes of the compiler on any ONNX model, whoever wrote it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from . import _core
from .model import package

if TYPE_CHECKING:
    import onnx


def optimize(model: onnx.ModelProto | str | os.PathLike[str]) -> onnx.ModelProto:
    """A model that computes the same with fewer nodes.

    Inputs, outputs, operator sets, metadata, functions and ops of other domains stay as they are.
    A path is read with its external data, which is part of the result. The argument is not changed.
    Raises ConversionError E052 when the model cannot be read.
    """
    source: bytes | str = (
        os.fspath(model) if isinstance(model, str | os.PathLike) else model.SerializeToString()
    )
    smaller: onnx.ModelProto = package("onnx").ModelProto.FromString(_core.optimize(source))
    return smaller

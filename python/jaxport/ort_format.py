# SPDX-License-Identifier: Apache-2.0
"""Models in ORT format, which ONNX Runtime's reduced builds load: docs/mobile.md."""

from __future__ import annotations

import os
import pathlib
import tempfile
from typing import Any

from .errors import ConversionError, first_line

SUFFIX = ".ort"


def save_ort(model: str | bytes, path: str | os.PathLike[str]) -> str:
    """Writes a model, a path or bytes, in ORT format, by the installed ONNX Runtime.

    Its rewrites that any processor profits from are made on the way. Raises ConversionError E112
    and leaves an older file as it was when there is no ONNX Runtime or it refuses the model.
    """
    target = os.path.abspath(os.fspath(path))
    onnxruntime = _onnxruntime()
    try:
        with tempfile.TemporaryDirectory(dir=os.path.dirname(target)) as folder:
            written = os.path.join(folder, "model.ort")
            options = onnxruntime.SessionOptions()
            options.optimized_model_filepath = written
            options.graph_optimization_level = (
                onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
            )
            options.add_session_config_entry("session.save_model_format", "ORT")
            onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
            os.replace(written, target)
    except Exception as error:  # ONNX Runtime has a class for each of its codes
        raise ConversionError(
            "E112",
            f"cannot write '{os.fspath(path)}' in ORT format: {first_line(error)}",
            help="ORT format holds models of up to 2 GiB that the installed ONNX Runtime loads; "
            "the folder must exist",
        ) from error
    return os.fspath(path)


def write_operators(model: str, path: str, *, with_types: bool) -> None:
    """The operators of a model in ORT format, as ONNX Runtime's own tool lists them."""
    _onnxruntime()
    from onnxruntime.tools.ort_format_model import create_config_from_models

    create_config_from_models([pathlib.Path(model)], pathlib.Path(path), with_types)


def _onnxruntime() -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise ConversionError(
            "E112",
            "ORT format is written by ONNX Runtime, which is not installed",
            help="pip install onnxruntime, or write an ONNX file",
        ) from error
    return onnxruntime

# SPDX-License-Identifier: Apache-2.0
"""Runs models in ONNX Runtime with numpy arrays of every dtype, those of ml_dtypes included."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from .errors import ConversionError, first_line
from .model import Model

# TensorProto numbers of the dtypes that numpy itself does not have.
_EXTENDED = {
    16: np.dtype(ml_dtypes.bfloat16),
    17: np.dtype(ml_dtypes.float8_e4m3fn),
    18: np.dtype(ml_dtypes.float8_e4m3fnuz),
    19: np.dtype(ml_dtypes.float8_e5m2),
    20: np.dtype(ml_dtypes.float8_e5m2fnuz),
}
_NUMBERS = {dtype: number for number, dtype in _EXTENDED.items()}


def open_session(model: Any, *, optimised: bool = True, options: Any = None) -> Any:
    """An onnxruntime.InferenceSession for a path, bytes, a jaxport.Model or an onnx.ModelProto.

    Without optimisations every node is run as it stands in the model. `options` are
    onnxruntime.SessionOptions to start from.
    """
    import onnxruntime

    if isinstance(model, Model):
        model = model.to_bytes()
    elif isinstance(model, os.PathLike):
        model = os.fspath(model)
    elif hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    options = options or onnxruntime.SessionOptions()
    if not optimised:
        options.log_severity_level = 4
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def open_given(model: Any) -> Any:
    """As open_session, for a model that a user names. Raises ConversionError E114."""
    try:
        return open_session(model)
    except Exception as error:  # ONNX Runtime has a class for each of its codes
        name = f" '{os.fspath(model)}'" if isinstance(model, str | os.PathLike) else ""
        raise ConversionError(
            "E114",
            f"ONNX Runtime does not load the model{name}: {first_line(error)}",
            help="jaxport check and jaxport targets say why, if it is an ONNX file",
        ) from error


def run(session: Any, inputs: Sequence[np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
    """Runs a session on inputs in the order of the model's own; outputs by name, in order."""
    names = [value.name for value in session.get_inputs()]
    outputs = [value.name for value in session.get_outputs()]
    return run_named(session, dict(zip(names, inputs, strict=True)), outputs)


def run_named(
    session: Any, inputs: Mapping[str, np.ndarray[Any, Any]], outputs: Sequence[str]
) -> dict[str, np.ndarray[Any, Any]]:
    """The same with inputs by name, and some of the outputs."""
    feeds = {name: _to_ort(array) for name, array in inputs.items()}
    values = session.run_with_ort_values(outputs, feeds)
    return {name: _from_ort(value) for name, value in zip(outputs, values, strict=True)}


def is_extended(dtype: Any) -> bool:
    """Whether a dtype is one of those that numpy itself does not have."""
    return np.dtype(dtype) in _NUMBERS


def type_number(dtype: Any) -> int:
    """The number of a dtype in ONNX's TensorProto."""
    from onnx import helper

    number = _NUMBERS.get(np.dtype(dtype))
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)) if number is None else number)


def _to_ort(array: np.ndarray[Any, Any]) -> Any:
    import onnxruntime

    array = np.asarray(array, order="C")
    number = _NUMBERS.get(array.dtype)
    if number is None:
        return onnxruntime.OrtValue.ortvalue_from_numpy(array)
    raw = array.view(np.dtype(f"u{array.itemsize}"))
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(raw, number)


def _from_ort(value: Any) -> np.ndarray[Any, Any]:
    dtype = _EXTENDED.get(value.element_type())
    if dtype is None:
        return value.numpy()  # type: ignore[no-any-return]
    shape = value.shape()
    size = int(np.prod(shape)) * dtype.itemsize
    return np.frombuffer(ctypes.string_at(value.data_ptr(), size), dtype).reshape(shape)

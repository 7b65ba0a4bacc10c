# SPDX-License-Identifier: Apache-2.0
"""The ONNX Runtime of this environment, which need not have any other package."""

import ctypes
from pathlib import Path

import numpy as np
import onnxruntime
from tasks import WIDTHS, Feed, Run, UnfeedableError, serve


def load(model: Path) -> Run:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    wanted = [value.name for value in session.get_outputs()]

    def run(feeds: list[Feed]) -> list[Feed]:
        values = {name: to_ort(*feed) for name, feed in zip(names, feeds, strict=True)}
        return [from_ort(value) for value in session.run_with_ort_values(wanted, values)]

    return run


def to_ort(array: np.ndarray, number: int):
    if not number:
        return onnxruntime.OrtValue.ortvalue_from_numpy(array)
    if not hasattr(onnxruntime.OrtValue, "ortvalue_from_numpy_with_onnx_type"):
        raise UnfeedableError(f"no way to feed dtype {number}")
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array, number)


def from_ort(value) -> Feed:
    number = value.element_type()
    width = WIDTHS.get(number)
    if width is None:
        return value.numpy(), 0
    size = int(np.prod(value.shape())) * width
    raw = np.frombuffer(ctypes.string_at(value.data_ptr(), size), f"u{width}")
    return raw.reshape(value.shape()), number


if __name__ == "__main__":
    onnxruntime.set_default_logger_severity(4)
    serve(load)

# SPDX-License-Identifier: Apache-2.0
"""Runs models in the ONNX Runtime of this environment, which need not have any other package.

    python runner.py folder < tasks

A task is a line "model.onnx inputs.npz outputs.npz". The answer to each is a line of JSON: "ok", or
what failed and how. An array of a dtype that numpy does not have crosses the border as its bytes:
its name ends with the number that ONNX gives the dtype.
"""

import ctypes
import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime

EXTENDED_BYTES = {16: 2, 17: 1, 18: 1, 19: 1, 20: 1}


def main() -> None:
    folder = Path(sys.argv[1])
    onnxruntime.set_default_logger_severity(4)
    for line in sys.stdin:
        model, inputs, outputs = (folder / name for name in line.split())
        print(json.dumps(outcome(model, inputs, outputs)), flush=True)


def outcome(model: Path, inputs: Path, outputs: Path) -> list[str]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(
            str(model), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # the package has one type for each status, without a common base
        return ["not loadable", str(error)]
    names = [value.name for value in session.get_inputs()]
    wanted = [value.name for value in session.get_outputs()]
    try:
        arrays = np.load(inputs)
        feeds = {
            name: to_ort(key, arrays[key]) for name, key in zip(names, arrays.files, strict=True)
        }
        results = session.run_with_ort_values(wanted, feeds)
        np.savez(outputs, **dict(from_ort(i, value) for i, value in enumerate(results)))
    except UnfeedableError as error:
        return ["loads", str(error)]
    except Exception as error:
        return ["crash", str(error)]
    return ["ok", ""]


class UnfeedableError(Exception):
    """This version cannot be given arrays of a dtype from Python."""


def to_ort(key: str, array: np.ndarray):
    number = int(key.partition(":")[2] or 0)
    if not number:
        return onnxruntime.OrtValue.ortvalue_from_numpy(array)
    if not hasattr(onnxruntime.OrtValue, "ortvalue_from_numpy_with_onnx_type"):
        raise UnfeedableError(f"no way to feed dtype {number}")
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array, number)


def from_ort(index: int, value) -> tuple[str, np.ndarray]:
    width = EXTENDED_BYTES.get(value.element_type())
    if width is None:
        return str(index), value.numpy()
    size = int(np.prod(value.shape())) * width
    raw = np.frombuffer(ctypes.string_at(value.data_ptr(), size), f"u{width}")
    return f"{index}:{value.element_type()}", raw.reshape(value.shape())


if __name__ == "__main__":
    main()

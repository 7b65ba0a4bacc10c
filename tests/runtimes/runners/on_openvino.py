# SPDX-License-Identifier: Apache-2.0
"""OpenVINO's plugin for the CPU, in f32: by itself it computes in bf16 where the processor can."""

from pathlib import Path

import numpy as np
import openvino
from tasks import Feed, Run, UnfeedableError, serve

CONFIG = {
    "INFERENCE_PRECISION_HINT": "f32",
    "INFERENCE_NUM_THREADS": "1",
    "NUM_STREAMS": "1",
}
TYPES = {16: openvino.Type.bf16, 17: openvino.Type.f8e4m3, 19: openvino.Type.f8e5m2}
NUMBERS = {openvino.Type.bf16: 16, openvino.Type.f8e4m3: 17, openvino.Type.f8e5m2: 19}
CORE = openvino.Core()


def load(model: Path) -> Run:
    compiled = CORE.compile_model(CORE.read_model(str(model)), "CPU", CONFIG)

    def run(feeds: list[Feed]) -> list[Feed]:
        request = compiled.create_infer_request()
        request.infer(dict(enumerate(tensor(*feed) for feed in feeds)))
        return [result(request.get_output_tensor(i)) for i in range(len(compiled.outputs))]

    return run


def tensor(array: np.ndarray, number: int) -> openvino.Tensor:
    if not number:
        return openvino.Tensor(np.ascontiguousarray(array).reshape(array.shape))
    if number not in TYPES:
        raise UnfeedableError(f"no way to feed dtype {number}")
    value = openvino.Tensor(TYPES[number], openvino.Shape(array.shape))
    value.data.view(array.dtype)[...] = array
    return value


def result(value: openvino.Tensor) -> Feed:
    number = NUMBERS.get(value.element_type, 0)
    array = value.data.copy().reshape(list(value.shape))
    return (array.view(f"u{array.itemsize}"), number) if number else (array, 0)


if __name__ == "__main__":
    serve(load)

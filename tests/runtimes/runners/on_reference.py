# SPDX-License-Identifier: Apache-2.0
"""The reference evaluator of the onnx package."""

import warnings
from pathlib import Path

import ml_dtypes
import numpy as np
from onnx.reference import ReferenceEvaluator
from tasks import Feed, Run, serve

TYPES = {
    16: np.dtype(ml_dtypes.bfloat16),
    17: np.dtype(ml_dtypes.float8_e4m3fn),
    18: np.dtype(ml_dtypes.float8_e4m3fnuz),
    19: np.dtype(ml_dtypes.float8_e5m2),
    20: np.dtype(ml_dtypes.float8_e5m2fnuz),
}
NUMBERS = {dtype: number for number, dtype in TYPES.items()}


def load(model: Path) -> Run:
    session = ReferenceEvaluator(str(model))

    def run(feeds: list[Feed]) -> list[Feed]:
        arrays = [array.view(TYPES[number]) if number else array for array, number in feeds]
        named = dict(zip(session.input_names, arrays, strict=True))
        return [result(np.asarray(value)) for value in session.run(None, named)]

    return run


def result(array: np.ndarray) -> Feed:
    number = NUMBERS.get(array.dtype, 0)
    return (array.view(f"u{array.itemsize}"), number) if number else (array, 0)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    serve(load)

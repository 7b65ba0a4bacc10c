# SPDX-License-Identifier: Apache-2.0
"""tract."""

from pathlib import Path

import tract
from tasks import Feed, Run, serve

ONNX = tract.onnx()


def load(model: Path) -> Run:
    runnable = ONNX.load(str(model)).into_model().into_runnable()

    def run(feeds: list[Feed]) -> list[Feed]:
        values = [tract.Tensor.from_numpy(array) for array, _ in feeds]
        return [(value.to_numpy(), 0) for value in runnable.run(values)]

    return run


if __name__ == "__main__":
    serve(load)

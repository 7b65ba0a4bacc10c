# SPDX-License-Identifier: Apache-2.0
"""What the runners share: tasks come on standard input, and each answer is a line of JSON.

    python on_openvino.py folder < tasks

A task is a line "model.onnx inputs.npz outputs.npz". The answer to each is "ok", or what failed and
how. An array of a dtype that numpy does not have crosses the border as its bytes: its name ends
with the number that ONNX gives the dtype.
"""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

Feed = tuple[np.ndarray, int]  # the bytes of an array and ONNX's number of its dtype; 0: numpy's
Run = Callable[[Sequence[Feed]], list[Feed]]

WIDTHS = {16: 2, 17: 1, 18: 1, 19: 1, 20: 1}  # bytes of bfloat16 and of the floats of 8 bits


class UnfeedableError(Exception):
    """This runtime cannot be given arrays of a dtype."""


class NotLoadableError(Exception):
    """A runtime that loads and runs in one step did not load a model."""


def serve(load: Callable[[Path], Run]) -> None:
    """Answers all tasks. `load` takes a model and gives what runs it."""
    folder = Path(sys.argv[1])
    for line in sys.stdin:
        model, inputs, outputs = (folder / name for name in line.split())
        print(json.dumps(_outcome(load, model, inputs, outputs)), flush=True)


def _outcome(load: Callable[[Path], Run], model: Path, inputs: Path, outputs: Path) -> list[str]:
    try:
        run = load(model)
    except Exception as error:  # runtimes have types of their own, without a common base
        return ["not loadable", _text(error)]
    try:
        arrays = np.load(inputs)
        results = run([(arrays[key], _number(key)) for key in arrays.files])
        np.savez(outputs, **dict(_named(i, *result) for i, result in enumerate(results)))
    except UnfeedableError as error:
        return ["loads", str(error)]
    except NotLoadableError as error:
        return ["not loadable", str(error)]
    except Exception as error:
        return ["crash", _text(error)]
    return ["ok", ""]


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:2000]


def _number(key: str) -> int:
    return int(key.partition(":")[2] or 0)


def _named(index: int, array: np.ndarray, number: int) -> tuple[str, np.ndarray]:
    return (f"{index}:{number}" if number else str(index)), np.asarray(array)

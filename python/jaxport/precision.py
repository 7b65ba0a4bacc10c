# SPDX-License-Identifier: Apache-2.0
"""How far a model in half precision is from the same model in f32: docs/precision.md."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import first_line

if TYPE_CHECKING:
    from .model import Model
    from .verification.cases import Question

Array = np.ndarray[Any, Any]


@dataclasses.dataclass(frozen=True)
class OutputError:
    """The error of one output in one run, of the numbers that are finite in f32.

    Attributes:
        sizes: of the symbolic dims in this run.
        largest: the largest absolute error.
        relative: the same beside the largest absolute number of the output.
        rms: the root of the mean square of the error, beside that of the output.
        lost: how many numbers that are finite in f32 are not any more.
    """

    name: str
    sizes: Mapping[str, int]
    largest: float
    relative: float
    rms: float
    lost: int

    @classmethod
    def of(cls, name: str, sizes: Mapping[str, int], want: Array, have: Array) -> OutputError:
        want, have = want.astype(np.float64), have.astype(np.float64)
        is_finite = np.isfinite(want) & np.isfinite(have)
        error, scale = np.abs(want - have)[is_finite], np.abs(want[is_finite])
        lost = int((np.isfinite(want) & ~np.isfinite(have)).sum())
        if error.size == 0:
            return cls(name, sizes, 0.0, 0.0, 0.0, lost)
        largest = float(error.max())
        rms = _ratio(float(np.sqrt((error**2).mean())), float(np.sqrt((scale**2).mean())))
        return cls(name, sizes, largest, _ratio(largest, float(scale.max())), rms, lost)

    def __str__(self) -> str:
        lost = f", {self.lost} numbers no longer finite" if self.lost else ""
        sizes = f" at {', '.join(f'{k}={v}' for k, v in self.sizes.items())}" if self.sizes else ""
        return (
            f"{self.name}{sizes}: error at most {self.largest:.2g}, "
            f"{self.relative:.2g} of the largest number, rms {self.rms:.2g}{lost}"
        )


@dataclasses.dataclass(frozen=True)
class PrecisionReport:
    """What to_onnx(precision=) did.

    Attributes:
        dtype: "f16" or "bf16".
        half_nodes, full_nodes: of the nodes that take or give f32 in the model without it.
        half_parameters, full_parameters: elements of constants that are stored in it, and in f32.
        errors: against the model in f32, where to_onnx(verify=True) ran both.
        note: why there are none: nobody asked for verify=True, or ONNX Runtime does not load the
            model (it has no products of bf16 on the CPU).
    """

    dtype: str
    half_nodes: int
    full_nodes: int
    half_parameters: int
    full_parameters: int
    errors: tuple[OutputError, ...] = ()
    note: str = "the error against f32 was not measured: verify=True does that"

    def __str__(self) -> str:
        nodes = self.half_nodes + self.full_nodes
        parameters = self.half_parameters + self.full_parameters
        lines = [
            f"precision: {self.half_nodes:,} of {nodes:,} nodes in {self.dtype}, "
            f"{self.half_parameters:,} of {parameters:,} parameters stored in it"
        ]
        lines += [f"  {error}" for error in self.errors]
        return "\n".join([*lines, *([f"  {self.note}"] if self.note else [])])


def errors(model: Model, full: Model, question: Question) -> tuple[tuple[OutputError, ...], str]:
    """Runs a model and that in f32 in ONNX Runtime, on the inputs that verify() takes.

    No error and a note where ONNX Runtime does not load the model.
    """
    from . import runtime
    from .verification.cases import choices

    reference = runtime.open_session(full)
    try:
        session = runtime.open_session(model)
    except Exception as error:  # ONNX Runtime has a class for each of its codes
        return (), f"not measured: {first_line(error)}"
    found: list[OutputError] = []
    for sizes in choices(question.symbols(), None):
        feeds = list(question.case(sizes, reference).feeds.values())
        want = runtime.run(reference, feeds)
        have = runtime.run(session, list(_as_declared(session, feeds)))
        found += [
            OutputError.of(name, sizes, array, have[name])
            for name, array in want.items()
            if array.dtype == np.float32
        ]
    return tuple(found), ""


def _as_declared(session: Any, feeds: list[Array]) -> Iterator[Array]:
    from .comparison import numpy_dtype

    for value, array in zip(session.get_inputs(), feeds, strict=True):
        yield array.astype(numpy_dtype(value.type))


def _ratio(error: float, scale: float) -> float:
    return error / scale if scale > 0 else error

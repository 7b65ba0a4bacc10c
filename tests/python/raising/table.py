# SPDX-License-Identifier: Apache-2.0
"""Rows of the raising suite, and how a row is measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import jaxport
from jaxport import _jax, runtime
from support.cases import Spec, examples_of, load, run_jax_on, structs
from support.prices import price_of
from support.tolerances import assert_close

OPSET = 23
# Nodes that compute nothing. Where a row names one of them as its op, that op does not count.
MOVES = (
    "Concat", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Pad", "Reshape",
    "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Lazy:
    """A function whose weights are made only when a test needs them, and outside of tracing."""

    build: Callable[[], Callable[..., Any]]


@dataclasses.dataclass(frozen=True)
class Row:
    """A spelling: what a library or a user writes, and what it becomes.

    Attributes:
        ops: how often these ops occur in the model; 0 says that an op must not occur. "A|B" counts
            both: the target decides which of them it runs faster.
        moves: the largest number of nodes that only move data.
        nodes: the largest number of nodes, if that says more than `ops` and `moves`.
        at_most: the largest number of nodes of an op.
        rule: what the report must name, where the target prefers the parts of an op to the op.
        price: the largest price of the model (support/prices.py); replaces `moves`.
    """

    group: str
    library: str
    name: str
    fn: Callable[..., Any] | Lazy
    inputs: Sequence[Spec]
    ops: Mapping[str, int]
    moves: int = 0
    nodes: int | None = None
    tolerance: str = "network"
    at_most: Mapping[str, int] = dataclasses.field(default_factory=dict)
    price: int | None = None
    rule: str = ""

    @property
    def id(self) -> str:
        return f"{self.group} | {self.library} | {self.name}"

    def function(self) -> Callable[..., Any]:
        return self.fn.build() if isinstance(self.fn, Lazy) else self.fn

    def complaints(self, measured: Measured) -> list[str]:
        """What the model has that the row does not allow, one line each."""
        found = [
            f"{measured.count(ops)} {ops} where {count} are right"
            for ops, count in self.ops.items()
            if measured.count(ops) != count
        ]
        if self.rule and self.rule not in measured.raised:
            found.append(f"{self.rule} is not raised")
        bounds = [(op, measured.count(op), most) for op, most in self.at_most.items()]
        bounds.append(("nodes", measured.nodes, self.nodes))
        bounds.append(("of price", measured.price, self.price))
        if self.price is None:
            bounds.append(("nodes that move data", self.moves_in(measured), self.moves))
        found += [
            f"{count} {what}, {most} are allowed"
            for what, count, most in bounds
            if most is not None and count > most
        ]
        return [f"{line}: {dict(measured.ops)}" for line in found]

    def moves_in(self, measured: Measured) -> int:
        named = "|".join(self.ops).split("|")
        return sum(measured.ops.get(op, 0) for op in MOVES if op not in named)


@dataclasses.dataclass(frozen=True)
class Measured:
    """A model that loads in ONNX Runtime and gives JAX's numbers."""

    ops: Mapping[str, int]
    raised: frozenset[str]  # the rules that the report names
    error: float  # the largest difference, relative to the largest value or to 1

    def count(self, ops: str) -> int:
        return sum(self.ops.get(op, 0) for op in ops.split("|"))

    @property
    def nodes(self) -> int:
        return sum(self.ops.values())

    @property
    def price(self) -> int:
        return price_of(self.ops)


def measure(row: Row, **options: Any) -> Measured:
    """Converts a row; fails unless the model is valid, loads and agrees with JAX at every size."""
    fn = row.function()
    # Older versions get a Pad in front of an AveragePool, whose padding they count wrongly.
    options = {"target": "onnxruntime>=1.25", **options}
    compiled = jaxport.to_onnx(fn, structs(row.inputs), opset=OPSET, return_mode="model", **options)
    session = load(compiled.to_proto(), OPSET)
    worst = 0.0
    examples = list(examples_of(row.inputs))
    for arrays, expected in zip(examples, run_jax_on(fn, examples), strict=True):
        outputs = runtime.run(session, [_jax.host_array(array) for array in arrays])
        for (name, have), want in zip(outputs.items(), expected, strict=True):
            assert_close(name, want, have, row.tolerance)
            worst = max(worst, _error(want, have))
    raised = frozenset(finding.rule for finding in compiled.report.raised)
    return Measured(compiled.stats()["ops"], raised, worst)


def _error(want: np.ndarray, have: np.ndarray) -> float:
    lhs, rhs = want.astype(np.float64), have.astype(np.float64)
    both = np.isfinite(lhs) & np.isfinite(rhs)
    if not both.any():
        return 0.0
    scale = max(1.0, float(np.abs(lhs[both]).max()))
    return float(np.abs(lhs[both] - rhs[both]).max()) / scale

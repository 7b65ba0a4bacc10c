# SPDX-License-Identifier: Apache-2.0
"""What was computed on the way: the same form for a run of JAX and for a run of a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# Steps of a loop that are looked into, while a run has not too many; what comes after is one step.
_MOST_STEPS = 64
_MANY = 20_000


@dataclasses.dataclass(frozen=True)
class Scope:
    """Where a step was run.

    Attributes:
        path: the loops and branches around it, outermost first, such as ("scan, step 3",).
        around: their equations or nodes, and those of calls.
    """

    path: tuple[str, ...] = ()
    around: tuple[Any, ...] = ()

    def inside(self, what: Any, text: str = "") -> Scope:
        return Scope((*self.path, text) if text else self.path, (*self.around, what))


@dataclasses.dataclass(frozen=True)
class Step:
    """An equation or a node that was run.

    Attributes:
        what: the equation of a jaxpr, or the node of a model.
        operands, results: ids of values.
        is_part: it only hands on, cuts or gathers the values of a loop.
    """

    what: Any
    operands: tuple[int, ...]
    results: tuple[int, ...]
    scope: Scope = Scope()
    is_part: bool = False


@dataclasses.dataclass
class Run:
    """The steps of a run in order, with all values; loops are rolled out, calls are inlined.

    Attributes:
        given: ids of inputs and constants, which no step makes.
        outputs: ids of the results.
    """

    steps: list[Step] = dataclasses.field(default_factory=list)
    values: dict[int, Array] = dataclasses.field(default_factory=dict)
    given: list[int] = dataclasses.field(default_factory=list)
    outputs: list[int] = dataclasses.field(default_factory=list)

    def most_steps(self) -> int:
        """How many steps of the next loop are to be looked into."""
        return _MOST_STEPS if len(self.steps) < _MANY else 0

    def add(self, value: Array) -> int:
        number = len(self.values)
        self.values[number] = value
        return number

    def add_given(self, value: Array) -> int:
        number = self.add(value)
        self.given.append(number)
        return number

    def add_step(
        self,
        what: Any,
        operands: Sequence[int],
        results: Sequence[int],
        scope: Scope,
        is_part: bool = False,
    ) -> None:
        self.steps.append(Step(what, tuple(operands), tuple(results), scope, is_part))

    def makers(self) -> dict[int, int]:
        """Which step makes a value."""
        return {value: i for i, step in enumerate(self.steps) for value in step.results}

    def behind(self, values: Iterable[int], stops: frozenset[int] = frozenset()) -> set[int]:
        """The steps that values depend on; those that make one of `stops` are not looked behind."""
        makers = self.makers()
        found: set[int] = set()
        waiting = [makers[value] for value in values if value in makers]
        while waiting:
            step = waiting.pop()
            if step in found:
                continue
            found.add(step)
            operands = (v for v in self.steps[step].operands if v in makers and v not in stops)
            waiting += [makers[v] for v in operands]
        return found

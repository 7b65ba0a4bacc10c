# SPDX-License-Identifier: Apache-2.0
"""Finds the first equation, and the first node, whose numbers differ.

Both runs are walked back from the outputs that differ, as far as values are found on the other
side. What lies between is where they part. Steps that a value which was found depends on are right,
although they themselves may have no counterpart: a node inside a composed function, an equation
that became a part of a larger op.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from .graph import Run, Step
from .matching import Fingerprint, Pool, fingerprints


@dataclasses.dataclass(frozen=True)
class Parting:
    """Where two runs part.

    Attributes:
        equation: the first equation that differs; None when no equation is at fault.
        node: the first node that differs.
        swallowed: further equations of the same line whose results the model does not have.
    """

    equation: Step | None
    node: Step | None
    swallowed: tuple[Step, ...]


@dataclasses.dataclass(frozen=True)
class Side:
    """A run with what is known of its values: which ones the other side has."""

    run: Run
    values: dict[int, Fingerprint]
    found: frozenset[int]

    def suspects(self, outputs: Sequence[int]) -> list[int]:
        """Steps behind outputs that differ and in front of nothing that was found, in order."""
        wrong = frozenset(outputs)
        good = self.found - wrong
        region = self.run.behind(outputs, stops=good)
        telling = [i for i in good if i in self.values and self.values[i].tells]
        return sorted(region - self.run.behind(telling))

    def first(self, steps: Sequence[int]) -> list[int]:
        """Those that read no result of another."""
        made = {value for i in steps for value in self.run.steps[i].results}
        return [i for i in steps if made.isdisjoint(self.run.steps[i].operands)]


def sides(jax_run: Run, model_run: Run) -> tuple[Side, Side]:
    """Compares all values of the runs with each other."""
    ours, theirs = fingerprints(jax_run), fingerprints(model_run)
    pool = Pool(ours)
    pairs = {j: pool.like(value) for j, value in theirs.items()}
    found = frozenset(i for ids in pairs.values() for i in ids)
    in_jax = Side(jax_run, ours, found | frozenset(i for i in jax_run.given))
    in_model = Side(
        model_run,
        theirs,
        frozenset(j for j, ids in pairs.items() if ids) | frozenset(model_run.given),
    )
    return in_jax, in_model


def locate(
    jax_run: Run,
    model_run: Run,
    outputs: Sequence[int],
    source_of_equation: Callable[[Step], str],
    source_of_node: Callable[[Step], str],
) -> Parting:
    """Where the runs part that differ in the outputs with these positions."""
    in_jax, in_model = sides(jax_run, model_run)
    equations = in_jax.suspects([jax_run.outputs[i] for i in outputs])
    nodes = in_model.suspects([model_run.outputs[i] for i in outputs])
    first_nodes = [model_run.steps[i] for i in in_model.first(nodes)]
    first_equations = [jax_run.steps[i] for i in in_jax.first(equations)]
    node, equation = _together(first_nodes, first_equations, source_of_node, source_of_equation)
    swallowed = [
        step
        for step in (jax_run.steps[i] for i in equations)
        if equation
        and step is not equation
        and step.path == equation.path
        and source_of_equation(step) == source_of_equation(equation)
    ]
    return Parting(equation, node, tuple(swallowed))


def _together(
    nodes: Sequence[Step],
    equations: Sequence[Step],
    source_of_node: Callable[[Step], str],
    source_of_equation: Callable[[Step], str],
) -> tuple[Step | None, Step | None]:
    """The first node and the first equation, of one line of the program where there are such."""
    for node in nodes:
        for equation in equations:
            if source_of_node(node) and source_of_node(node) == source_of_equation(equation):
                return node, equation
    return (nodes[0] if nodes else None), (equations[0] if equations else None)

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

SourceOf = Callable[[Step], str]


@dataclasses.dataclass(frozen=True)
class Parting:
    """Where two runs part.

    Attributes:
        equation: the equation that differs; None when no equation is at fault.
        node: the first node that differs.
        swallowed: further equations that the node may stand for: the model does not have their
            results either.
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
        """Steps behind outputs that differ and in front of nothing that was found, in order.

        Zeros, sizes and the like are found everywhere: they end no walk, and clear only their own
        kind.
        """
        wrong = frozenset(outputs)
        good = self.found - wrong
        telling = frozenset(i for i in good if self._is_found(i))
        region = self.run.behind(outputs, stops=telling)
        cleared, perhaps = self.run.behind(telling), self.run.behind(good)

        def is_suspect(k: int) -> bool:
            if k in cleared:
                return False
            step = self.run.steps[k]
            return self.tells(step) or k not in perhaps or not wrong.isdisjoint(step.results)

        return [k for k in sorted(region) if is_suspect(k)]

    def first(self, steps: Sequence[int]) -> list[Step]:
        """Those that no other leads to."""
        suspected, found = set(steps), []
        reached: set[int] = set()  # values that depend on a suspect, and not through a found one
        for k, step in enumerate(self.run.steps):
            is_reached = not reached.isdisjoint(step.operands)
            if k in suspected and not is_reached:
                found.append(step)
            if k in suspected or is_reached:
                reached.update(i for i in step.results if not self._is_found(i))
        return found

    def tells(self, step: Step) -> bool:
        return any(i in self.values and self.values[i].tells for i in step.results)

    def _is_found(self, value: int) -> bool:
        return value in self.found and value in self.values and self.values[value].tells


class Comparison:
    """All values of both runs compared with each other."""

    def __init__(self, jax_run: Run, model_run: Run, outputs: Sequence[int]) -> None:
        ours, theirs = fingerprints(jax_run), fingerprints(model_run)
        pool = Pool(ours)
        self.pairs = {j: frozenset(pool.like(value)) for j, value in theirs.items()}
        found = frozenset(i for ids in self.pairs.values() for i in ids)
        in_model = frozenset(j for j, ids in self.pairs.items() if ids)
        self.jax = Side(jax_run, ours, found | frozenset(jax_run.given))
        self.model = Side(model_run, theirs, in_model | frozenset(model_run.given))
        self.equations = self.jax.suspects([jax_run.outputs[i] for i in outputs])
        self.nodes = self.model.suspects([model_run.outputs[i] for i in outputs])


def locate(
    jax_run: Run,
    model_run: Run,
    outputs: Sequence[int],
    source_of_equation: SourceOf,
    source_of_node: SourceOf,
) -> Parting:
    """Where the runs part that differ in the outputs with these positions."""
    found = Comparison(jax_run, model_run, outputs)
    equations, nodes = found.jax.first(found.equations), found.model.first(found.nodes)
    lines = {source_of_equation(step) for step in equations}
    of_a_line = [step for step in nodes if source_of_node(step) in lines]
    node = next(iter([*of_a_line, *nodes]), None)
    equation = next(iter(equations), None)
    if node is not None:
        node, equation = _before_mistaken(found, node, equation, source_of_equation, source_of_node)
        if found.model.tells(node) or equation is None:
            equation = _of_line(found, source_of_node(node), equation, source_of_equation)
        else:
            node = _node_of(found, source_of_equation(equation), node, source_of_node)
    return Parting(equation, node, _swallowed(found, equation, source_of_equation))


def _before_mistaken(
    found: Comparison,
    node: Step,
    equation: Step | None,
    source_of_equation: SourceOf,
    source_of_node: SourceOf,
) -> tuple[Step, Step | None]:
    """A wrong value may be the right one of another equation: what else reads it differs first.

    So it is when a suspected node reads a value that no suspected equation reads, while a value
    that they do read is not what the node of its line gives.
    """
    jax_run, model_run = found.jax.run, found.model.run
    read = {i for k in found.equations for i in jax_run.steps[k].operands}
    operands = {j for k in found.nodes for j in model_run.steps[k].operands}
    had = {i for j in operands for i in found.pairs.get(j, ())}
    makers, node_makers = jax_run.makers(), model_run.makers()
    strange = [
        j
        for j in node.operands
        if j in node_makers and found.pairs.get(j) and found.pairs[j].isdisjoint(read)
    ]
    missing = [i for i in sorted(read - had) if i in makers and i in found.jax.found]
    for i in missing if strange else ():
        maker = jax_run.steps[makers[i]]
        line = source_of_equation(maker)
        there = [step for step in model_run.steps if source_of_node(step) == line]
        if there and not any(i in found.pairs.get(j, ()) for step in there for j in step.results):
            return model_run.steps[node_makers[strange[0]]], maker
    return node, equation


def _of_line(
    found: Comparison, line: str, equation: Step | None, source_of_equation: SourceOf
) -> Step | None:
    """The first suspect of the node's own line, or what a first suspect reads of that line."""
    if not line or equation is None or source_of_equation(equation) == line:
        return equation
    run = found.jax.run
    makers = run.makers()
    suspects = [run.steps[k] for k in found.equations]
    read = [run.steps[makers[i]] for i in equation.operands if i in makers]
    return next((s for s in [*suspects, *read] if source_of_equation(s) == line), equation)


def _node_of(found: Comparison, line: str, node: Step, source_of_node: SourceOf) -> Step:
    """In place of a node that gives zeros or the like, which says little: the last of a line."""
    run = found.model.run
    before = [run.steps[k] for k in sorted(run.behind(node.results))]
    return next((s for s in reversed(before) if line and source_of_node(s) == line), node)


def _swallowed(
    found: Comparison, equation: Step | None, source_of_equation: SourceOf
) -> tuple[Step, ...]:
    """Suspects that the equation depends on, and those of its line."""
    if equation is None:
        return ()
    run = found.jax.run
    before = run.behind(equation.operands)
    return tuple(
        step
        for k, step in ((k, run.steps[k]) for k in found.equations)
        if step is not equation
        and step.scope.path == equation.scope.path
        and (k in before or source_of_equation(step) == source_of_equation(equation))
    )

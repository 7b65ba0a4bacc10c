# SPDX-License-Identifier: Apache-2.0
"""Of 50 planted faults jaxport.verify names the right equation, or its neighbour, in 95 %."""

from __future__ import annotations

import collections
import dataclasses
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest

import jaxport
from jaxport import _jax, functions, runtime
from jaxport.verification import equations
from jaxport.verification.diagnosis import source_of_equation
from jaxport.verification.tolerances import near
from support import planted_equations
from support.planted_programs import PROGRAMS
from support.plants import Plant, plant

COUNT = int(os.environ.get("JAXPORT_PLANTS", "12"))  # of each kind; make test-plants has 50
FIRST_SEED = int(os.environ.get("JAXPORT_PLANTS_SEED", "10000"))


@dataclasses.dataclass(frozen=True)
class Planted:
    name: str
    model: onnx.ModelProto
    fault: Plant


@functools.cache
def right(name: str) -> tuple[onnx.ModelProto, dict[str, np.ndarray], str]:
    """The model of a program, its results, and the program as text."""
    fn, inputs = PROGRAMS[name]
    model = jaxport.to_onnx(fn, inputs, return_mode="model")
    proto = model.to_proto()
    return proto, results(name, proto), model.jir()


def results(name: str, model: onnx.ModelProto) -> dict[str, np.ndarray]:
    feeds = list(map(_jax.host_array, PROGRAMS[name][1]))
    return runtime.run(runtime.open_session(model), feeds)


@functools.cache
def neighbours(name: str) -> dict[str, set[str]]:
    """For each line of a program those that it reads from, is read by, or is inside of."""
    fn, inputs = PROGRAMS[name]
    with functions.tracing():  # so that marked calls are around what they call
        jaxpr = jax.make_jaxpr(fn)(*inputs)
    run = equations.traced(jaxpr, list(map(_array, inputs)))
    reader = _jax.Reader()
    makers = run.makers()
    found: dict[str, set[str]] = collections.defaultdict(set)
    for step in run.steps:
        here = source_of_equation(reader, step)
        around = [dataclasses.replace(step, what=eqn) for eqn in step.scope.around]
        others = [run.steps[makers[v]] for v in step.operands if v in makers]
        for other in [*others, *around]:
            there = source_of_equation(reader, other)
            found[here].add(there)
            found[there].add(here)
    return found


def _array(value: Any) -> Any:
    return value if isinstance(value, jax.Array) else jnp.asarray(value)


def planted(kind: str, seed: int, folder: Path) -> Planted | None:
    """A model with a fault that its results show, beyond the digits that the program has."""
    name = sorted(PROGRAMS)[seed % len(PROGRAMS)]
    _, before, _ = right(name)
    made = KINDS[kind](name, np.random.default_rng(seed), folder)
    if made is None:
        return None
    model, fault = made
    try:
        after = results(name, model)
    except Exception:
        return None  # ONNX Runtime refuses it: no need to look for numbers
    digits = jnp.bfloat16 if name == "half" else None
    if all(_is_same(before[key], after[key], digits) for key in before):
        return None
    return Planted(name, model, fault)


Made = tuple[onnx.ModelProto, Plant] | None


def in_a_node(name: str, random: np.random.Generator, folder: Path) -> Made:
    """As a wrong pass, or whatever wrote the file, would."""
    model = onnx.ModelProto()
    model.CopyFrom(right(name)[0])
    fault = plant(model, random)
    return (model, fault) if fault else None


def in_an_equation(name: str, random: np.random.Generator, folder: Path) -> Made:
    """As a wrong rule would: the fault goes through the whole compiler."""
    changed = planted_equations.edited(right(name)[2], random)
    if changed is None:
        return None
    model = planted_equations.converted(changed[0], folder)
    return (model, changed[1]) if model is not None else None


def in_a_lowering(name: str, random: np.random.Generator, folder: Path) -> Made:
    used = {p: planted_equations.lines_of(right(name)[2], p) for p in planted_equations.LOWERINGS}
    primitive = planted_equations.choose(random, [p for p, lines in used.items() if lines])
    if primitive is None:
        return None
    fn, inputs = PROGRAMS[name]
    with planted_equations.wrong_lowering(primitive):
        model = jaxport.to_onnx(fn, inputs)
    return model, Plant("lowering", primitive, used[primitive])


KINDS: dict[str, Callable[[str, np.random.Generator, Path], Made]] = {
    "node": in_a_node,
    "equation": in_an_equation,
    "lowering": in_a_lowering,
}


def _is_same(before: np.ndarray, after: np.ndarray, digits: Any) -> bool:
    if before.shape != after.shape:
        return False
    return bool(
        near(before.astype(digits or before.dtype), after.astype(digits or after.dtype)).all()
    )


def outcome(found: Planted, folder: str) -> str:
    """ "line", "node" or "neighbour" when the place is named; else what is named instead."""
    fn, inputs = PROGRAMS[found.name]
    report = jaxport.verify(fn, found.model, inputs, replay=folder)
    if report.ok or report.place is None:
        return f"{report.verdict}, no place"
    if report.place.source in found.fault.lines:
        return "line"
    if report.place.node_source in found.fault.lines:
        return "node"
    near_by = set().union(*(neighbours(found.name)[line] for line in found.fault.lines))
    return "neighbour" if report.place.source in near_by else report.place.source


# There are no more wrong lowerings than programs that use these primitives.
COUNTS = {"node": COUNT, "equation": COUNT, "lowering": min(COUNT, 6)}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_planted_faults_are_found(kind, tmp_path):
    outcomes: list[tuple[str, Planted]] = []
    seed, seen = FIRST_SEED, set()
    while len(outcomes) < COUNTS[kind]:
        found = planted(kind, seed, tmp_path)
        seed += 1
        if found is None or (kind == "lowering" and (found.name, found.fault) in seen):
            continue
        seen.add((found.name, found.fault))
        outcomes.append((outcome(found, str(tmp_path / "replay")), found))
    hits = [text for text, _ in outcomes if text in ("line", "node", "neighbour")]
    misses = [f"{p.name}: {p.fault} -> {text}" for text, p in outcomes if text not in hits]
    print(kind, collections.Counter(hits), *misses, sep="\n")
    print(collections.Counter(p.fault.kind for _, p in outcomes))
    assert len(hits) >= 0.95 * COUNTS[kind], "\n".join(misses)

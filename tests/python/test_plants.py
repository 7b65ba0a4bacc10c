# SPDX-License-Identifier: Apache-2.0
"""Of 50 planted faults jaxport.verify names the right equation, or its neighbour, in 95 %."""

from __future__ import annotations

import collections
import dataclasses
import functools
import os
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
from support.planted_programs import PROGRAMS
from support.plants import Plant, plant

COUNT = int(os.environ.get("JAXPORT_PLANTS", "12"))  # make test-plants has 50
FIRST_SEED = int(os.environ.get("JAXPORT_PLANTS_SEED", "10000"))


@dataclasses.dataclass(frozen=True)
class Planted:
    name: str
    model: onnx.ModelProto
    fault: Plant


@functools.cache
def right(name: str) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """The model of a program and its results."""
    fn, inputs = PROGRAMS[name]
    model = jaxport.to_onnx(fn, inputs)
    return model, runtime.run(runtime.open_session(model), list(map(_jax.host_array, inputs)))


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


def planted(seed: int) -> Planted | None:
    """A model with a fault that its results show, beyond the digits that the program has."""
    name = sorted(PROGRAMS)[seed % len(PROGRAMS)]
    whole, before = right(name)
    model = onnx.ModelProto()
    model.CopyFrom(whole)
    fault = plant(model, np.random.default_rng(seed))
    if fault is None:
        return None
    try:
        feeds = list(map(_jax.host_array, PROGRAMS[name][1]))
        after = runtime.run(runtime.open_session(model), feeds)
    except Exception:
        return None  # ONNX Runtime refuses it: no need to look for numbers
    digits = jnp.bfloat16 if name == "half" else None
    if all(_is_same(before[key], after[key], digits) for key in before):
        return None
    return Planted(name, model, fault)


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


@pytest.mark.filterwarnings("ignore")
def test_planted_faults_are_found(tmp_path):
    outcomes: list[tuple[str, Planted]] = []
    seed = FIRST_SEED
    while len(outcomes) < COUNT:
        found = planted(seed)
        seed += 1
        if found is not None:
            outcomes.append((outcome(found, str(tmp_path)), found))
    hits = [text for text, _ in outcomes if text in ("line", "node", "neighbour")]
    misses = [f"{p.name}: {p.fault} -> {text}" for text, p in outcomes if text not in hits]
    print(collections.Counter(hits), *misses, sep="\n")
    assert len(hits) >= 0.95 * COUNT, "\n".join(misses)

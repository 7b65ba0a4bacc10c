# SPDX-License-Identifier: Apache-2.0
"""How far each node of a model is from JAX: its results beside the equation that has the same
numbers, up to their layout."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from . import equations, nodes
from .cases import Case
from .matching import Fingerprint, Pool, fingerprints, nearest
from .tolerances import ulps


@dataclasses.dataclass(frozen=True)
class NodeError:
    """
    Attributes:
        node: its name.
        relative: the largest difference, as a part of the largest number.
        ulps: the largest error in units in the last place.
    """

    node: str
    relative: float
    ulps: float


def errors_of_nodes(model: Any, case: Case) -> tuple[NodeError, ...]:
    """Of all nodes whose numbers an equation has, too; the worst run of those in loops."""
    model_run = nodes.traced(nodes.load(model), case.feeds)
    jax_run = equations.traced(case.jaxpr, case.arrays)
    ours, theirs = fingerprints(jax_run), fingerprints(model_run)
    pool = Pool(ours)
    found: dict[str, NodeError] = {}
    for step in model_run.steps:
        value = theirs.get(step.results[0]) if step.results and not step.is_part else None
        if value is None or not value.is_float or not value.tells:
            continue
        dtype = model_run.values[step.results[0]].dtype
        candidates = [_error(step.what.name, ours[i], value, dtype) for i in pool.like(value)]
        nearest_one = min(candidates, key=lambda error: error.relative, default=None)
        known = found.get(step.what.name)
        if nearest_one and (known is None or known.relative < nearest_one.relative):
            found[step.what.name] = nearest_one
    return tuple(found.values())


def _error(name: str, want: Fingerprint, have: Fingerprint, dtype: Any) -> NodeError:
    pair = nearest(want, have)
    assert pair is not None  # they are the same up to layout
    with np.errstate(all="ignore"):
        apart = np.nan_to_num(np.abs(pair[0] - pair[1]), nan=0.0, posinf=0.0)
        largest = np.nan_to_num(np.abs(pair[0]), nan=0.0, posinf=0.0).max()
        steps = ulps(pair[0].astype(dtype), pair[1].astype(dtype))
    relative = float(apart.max() / largest) if largest > 0 else 0.0
    return NodeError(name, relative, float(steps.max()))

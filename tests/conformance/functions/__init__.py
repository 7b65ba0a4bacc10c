# SPDX-License-Identifier: Apache-2.0
"""Functions that people use, each with arguments to try it on: the rows of docs/transforms.md."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from conformance.functions import (
    equinox_nn,
    flax_nnx,
    jax_lax,
    jax_nn,
    jax_numpy,
    jax_numpy_shapes,
    jax_random,
    jax_scipy,
    jax_scipy_stats,
)
from conformance.functions.samples import LayerRow, Row


@dataclasses.dataclass(frozen=True)
class Function:
    """A function of float arrays; derivatives are taken by the first. Group and name are unique."""

    group: str
    name: str
    make: Callable[[], Callable[..., Any]]
    arguments: tuple[np.ndarray, ...]


def _made(rows: Iterator[Row]) -> Iterator[LayerRow]:
    for name, fn, samples in rows:
        yield name, lambda fn=fn: fn, samples


_GROUPS: dict[str, Callable[[], Iterator[LayerRow]]] = {
    "jax.nn": lambda: _made(jax_nn.rows()),
    "jax.numpy": lambda: _made(chain(jax_numpy.rows(), jax_numpy_shapes.rows())),
    "jax.lax": lambda: _made(jax_lax.rows()),
    "jax.scipy": lambda: _made(jax_scipy.rows()),
    "jax.scipy.stats": lambda: _made(jax_scipy_stats.rows()),
    "jax.random": lambda: _made(jax_random.rows()),
    "equinox.nn": equinox_nn.rows,
    "flax.nnx": flax_nnx.rows,
}


def functions() -> list[Function]:
    """All rows, in the order of the page."""
    found = []
    for group, rows in _GROUPS.items():
        for name, make, samples in rows():
            random = np.random.default_rng(sum(map(ord, group + name)))
            arguments = tuple(sample.array(random) for sample in samples)
            found.append(Function(group, name, make, arguments))
    return found

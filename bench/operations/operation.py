# SPDX-License-Identifier: Apache-2.0
"""One row of the table of operations, and the inputs that rows share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Operation:
    family: str
    name: str  # with its size, as the table prints it
    fn: Callable[..., Any]
    inputs: tuple[Array, ...]


Row = tuple[str, Callable[..., Any], tuple[Array, ...]]


def family(name: str, *rows: Row) -> tuple[Operation, ...]:
    return tuple(Operation(name, label, fn, inputs) for label, fn, inputs in rows)


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def uniform(*shape: int, lo: float = 0.0, hi: float = 1.0, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(lo, hi, shape).astype(np.float32)


def integers(*shape: int, lo: int = 0, hi: int = 100, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(lo, hi, shape, dtype=np.int32)

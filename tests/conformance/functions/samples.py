# SPDX-License-Identifier: Apache-2.0
"""What the arguments of a function are made of."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np


@dataclasses.dataclass(frozen=True)
class Sample:
    """A shape, and the numbers that the function takes."""

    shape: tuple[int, ...] = (3, 4)
    low: float = -2.0
    high: float = 2.0

    def array(self, random: np.random.Generator) -> np.ndarray:
        # Distinct numbers with a distance to each other and to small integers, where functions
        # have kinks and jumps: derivatives there are a matter of taste.
        count = int(np.prod(self.shape, dtype=int))
        grid = self.low + (self.high - self.low) * (np.arange(count) + 0.37) / max(count, 1)
        return random.permutation(grid).reshape(self.shape).astype(np.float32)


# A name, a function of float arrays, and its arguments. What stands before " (" is the public name.
Row = tuple[str, Callable[..., Any], tuple[Sample, ...]]
# The same with what makes the function, because that takes time.
LayerRow = tuple[str, Callable[[], Callable[..., Any]], tuple[Sample, ...]]


def real(*shape: int) -> Sample:
    return Sample(shape)


def positive(*shape: int) -> Sample:
    return Sample(shape, 0.3, 3.0)


def unit(*shape: int) -> Sample:
    return Sample(shape, 0.05, 0.95)


def above_one(*shape: int) -> Sample:
    return Sample(shape, 1.1, 4.0)


def inside(*shape: int) -> Sample:
    return Sample(shape, -0.95, 0.95)


X, XP, XU, XI, XA = real(3, 4), positive(3, 4), unit(3, 4), inside(3, 4), above_one(3, 4)
M = real(4, 4)


def same(module: Any, names: str, *samples: Sample, prefix: str = "") -> Iterator[Row]:
    """Functions of a module that take arrays and nothing else."""
    for name in names.split():
        yield prefix + name, getattr(module, name), samples or (X,)


def by(
    module: Any, names: str, call: Callable[..., Any], *samples: Sample, prefix: str = ""
) -> Iterator[Row]:
    """Functions of a module that are all called in the same way."""
    for name in names.split():
        yield prefix + name, functools.partial(call, getattr(module, name)), samples


def of_integers(module: Any, names: str, count: int) -> Iterator[Row]:
    """Functions of arrays of integers, made of floats: derivatives are asked for."""
    for name in names.split():
        function = getattr(module, name)
        yield name, lambda *values, f=function: f(*map(whole, values)), (positive(3, 4),) * count


def whole(value: Any) -> Any:
    return (value * 5).astype(jnp.int32)


def well_conditioned(x: Any) -> Any:
    return x @ x.swapaxes(-1, -2) + 3 * jnp.eye(x.shape[-1])

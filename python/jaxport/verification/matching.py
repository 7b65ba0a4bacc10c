# SPDX-License-Identifier: Apache-2.0
"""Which values of two runs are the same, up to their layouts.

A compiler moves dims, merges them and leaves out what broadcasting repeats, so names and shapes say
little. On random inputs the numbers themselves do: two values are the same when one is the other
with dims permuted, split or merged, and repeated elements left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from .graph import Run
from .tolerances import Tolerance, finite_largest, is_float, tolerance_of, wide

Array = np.ndarray[Any, Any]

_QUANTILES = 15  # numbers by which most pairs are told apart
_MOST_DIMS = 5  # more are compared in their order only
_START = 256  # elements that are compared before all of them are
_LARGE = 2**20  # elements from which on constants are not looked for: sorting them takes long
_SLACK = 4.0  # times the tolerance of results: two runs, each without fused operations


class Fingerprint:
    """A value without its layout: what it repeats is left out."""

    def __init__(self, array: Array, tolerance: Tolerance | None = None) -> None:
        tolerance = tolerance or tolerance_of(array.dtype)
        self.is_float = is_float(array)
        self.values = without_repeats(wide(array).astype(np.float64))
        flat = np.sort(np.nan_to_num(self.values.ravel(), nan=0.0, posinf=1e300, neginf=-1e300))
        places = np.linspace(0, max(flat.size - 1, 0), _QUANTILES).astype(int)
        self.quantiles = flat[places] if flat.size else np.zeros(_QUANTILES)
        self.relative = _SLACK * tolerance.relative
        self.absolute = _SLACK * tolerance.of_largest * finite_largest(self.values)

    @property
    def tells(self) -> bool:
        """Whether it has enough different numbers that another value is hardly the same by luck."""
        if self.is_float:
            return self.values.size > 1 and self.quantiles[0] != self.quantiles[-1]
        return self.values.size >= 16 and len(set(self.quantiles)) > 1


def without_repeats(array: Array) -> Array:
    """The array without the axes along which it only repeats itself."""
    for axis in reversed(range(array.ndim)):
        first = np.take(array, [0], axis) if array.shape[axis] else None
        if first is not None and np.array_equal(
            array, np.broadcast_to(first, array.shape), equal_nan=True
        ):
            array = np.take(array, 0, axis)
    return array


def fingerprints(run: Run) -> dict[int, Fingerprint]:
    """Of all values that are numbers and not empty.

    What is computed from numbers of few digits has no more of them, whatever its dtype is.
    """
    large = {i for i in run.given if run.values[i].size >= _LARGE}
    numbers = {
        i: value
        for i, value in run.values.items()
        if value.dtype.kind not in "OSU" and value.size and i not in large
    }
    tolerances = {i: tolerance_of(value.dtype) for i, value in numbers.items()}
    for step in run.steps:
        before = [tolerances[i] for i in step.operands if i in tolerances]
        for i in step.results:
            if i in numbers and is_float(numbers[i]):
                tolerances[i] = max([tolerances[i], *before], key=lambda t: t.relative)
    return {i: Fingerprint(value, tolerances[i]) for i, value in numbers.items()}


class Pool:
    """Values of JAX, among which those of a model are looked for. JAX's digits are what counts."""

    def __init__(self, values: dict[int, Fingerprint]) -> None:
        self._ids = list(values)
        self._values = values
        found = list(values.values())
        self._sizes = np.asarray([v.values.size for v in found])
        self._quantiles = np.asarray([v.quantiles for v in found]).reshape(-1, _QUANTILES)
        relative = np.asarray([v.relative for v in found])[:, None]
        absolute = np.asarray([v.absolute for v in found])[:, None]
        self._slack = absolute + np.maximum(relative, 1e-12) * np.abs(self._quantiles)

    def like(self, value: Fingerprint) -> list[int]:
        """The ids of the values that are the same."""
        near = np.all(np.abs(self._quantiles - value.quantiles) <= self._slack, axis=1)
        candidates = np.flatnonzero(near & (self._sizes == value.values.size))
        ids = [self._ids[i] for i in candidates]
        return [i for i in ids if is_same(self._values[i], value)]


def is_same(lhs: Fingerprint, rhs: Fingerprint) -> bool:
    """Whether one is the other in another layout."""
    if lhs.is_float != rhs.is_float:
        return False
    return any(_is_near(first, second, lhs) for first, second in _layouts(lhs.values, rhs.values))


def nearest(lhs: Fingerprint, rhs: Fingerprint) -> tuple[Array, Array] | None:
    """Both as flat arrays, in the layouts in which most elements agree; None of other sizes."""
    best: tuple[int, Array, Array] | None = None
    for first, second in _layouts(lhs.values, rhs.values):
        flat = first.ravel(), second.ravel()
        count = int(np.count_nonzero(_near(*flat, lhs)))
        if best is None or count > best[0]:
            best = (count, *flat)
    return best[1:] if best else None


def _layouts(lhs: Array, rhs: Array) -> Iterator[tuple[Array, Array]]:
    """Views whose elements may correspond when both are read in order."""
    if lhs.size != rhs.size:
        return
    for order in _orders(lhs.ndim):
        yield lhs.transpose(order), rhs
    for order in itertools.islice(_orders(rhs.ndim), 1, None):
        yield lhs, rhs.transpose(order)


def _orders(rank: int) -> Iterator[tuple[int, ...]]:
    own = tuple(range(rank))
    return itertools.permutations(own) if rank <= _MOST_DIMS else iter([own])


def _is_near(first: Array, second: Array, like: Fingerprint) -> bool:
    start = first.flat[:_START], second.flat[:_START]  # most layouts are told apart here
    return bool(_near(*start, like).all()) and bool(
        _near(first.ravel(), second.ravel(), like).all()
    )


def _near(first: Array, second: Array, like: Fingerprint) -> Array:
    with np.errstate(all="ignore"):
        slack = like.absolute + like.relative * np.abs(first)
        close = np.abs(first - second) <= slack
    return np.asarray(close | (first == second) | (np.isnan(first) & np.isnan(second)))

# SPDX-License-Identifier: Apache-2.0
"""How near two results are, and how near they can be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fuzz.programs.interpret import rounded_otherwise
from fuzz.programs.program import Program, function_of
from jaxport import _jax
from support.tolerances import allowed

Results = list[np.ndarray]

# How much farther from the exact result than JAX a model may be. Both are one sample of the same
# rounding errors each; their ratio is rarely beyond this.
FACTOR = 8.0
# The same for results of operations that are off by a unit: twice as far as a rounding goes.
NUDGE_FACTOR = 2.0
# Parts of the largest element from which on results are far apart.
GROSS = {"float64": 1e-6, "float32": 1e-3, "complex64": 1e-3, "float16": 0.05, "bfloat16": 0.1}
# Runs in which each operation is off by a unit in the last place. A difference that cancels to a
# few units takes each of few values, so that many runs are needed to see all of them.
NUDGES = 4
MORE_NUDGES = 28


def jax_results(f: Any, values: Results) -> Results:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(f(*map(jnp.asarray, values)))]


def near(want: np.ndarray, have: np.ndarray) -> np.ndarray:
    """Elements that are as near as the table of tolerances asks of one function."""
    w, h = parts(want), parts(have)
    same = (w == h) | (np.isnan(w) & np.isnan(h)) if w.dtype.kind == "f" else w == h
    if w.dtype.kind == "f":
        same |= np.abs(w - h) <= _least(want)
    if np.iscomplexobj(want):  # which part of an infinite number is NaN is open
        return _joined(same, want) | ~(np.isfinite(want) | np.isfinite(have))
    return np.asarray(same)


def within(want: np.ndarray, have: np.ndarray, others: list[np.ndarray]) -> np.ndarray:
    """Elements that are not farther from JAX's than JAX is from itself and from the exact result.

    The first of `others` is the exact result, in the others, if any, every operation is off by a
    unit.
    """
    w, h = parts(want), parts(have)
    others = [parts(r) for r in others]
    if h.dtype.kind != "f":
        return _joined(np.asarray(sum(o != w for o in others) > 0), want)
    least = _least(want)
    # The largest number itself is written with fewer digits than it has.
    limit = float(jnp.finfo(want.dtype).max) * (1 + GROSS[want.dtype.name])
    too_large = ~np.isfinite(w) & (np.abs(others[0]) > limit)
    others[0] = np.where(too_large, np.sign(others[0]) * np.inf, others[0])
    # Where JAX overflows, nothing measures how exact it would be.
    overflows = ~np.isfinite(w) & np.isfinite(others[0])
    tiny = float(jnp.finfo(want.dtype).tiny)
    least = np.where(overflows, GROSS[want.dtype.name] * np.abs(others[0]) + tiny, least)
    distances = [_distance(w, other) for other in others]
    spread = np.maximum.reduce([FACTOR * distances[0], *(NUDGE_FACTOR * d for d in distances[1:])])
    finite = spread[np.isfinite(spread)]
    # One element may be exact by luck: a quarter of the worst error of the array is everybody's.
    slack = spread + 0.25 * (finite.max() if finite.size else 0.0)
    # Where JAX's own results are far apart, a factor would excuse everything: the model's must be
    # among them.
    size = np.abs(w[np.isfinite(w)]).max() if np.isfinite(w).any() else 0.0
    gross = np.maximum.reduce(distances) > GROSS[want.dtype.name] * size
    return _joined(
        np.where(gross, _among(h, [w, *others], least), np.abs(h - w) <= slack + least), want
    )


def spread_of(want: np.ndarray, others: list[np.ndarray]) -> np.ndarray:
    """How far results that are as good as JAX's are from them; 0 where one is not finite."""
    if not others or not jnp.issubdtype(want.dtype, jnp.floating):
        return np.zeros(want.shape)
    distances = [np.abs(parts(other) - parts(want)) for other in others]
    return np.maximum.reduce([np.where(np.isfinite(d), d, 0.0) for d in distances])


def _among(h: np.ndarray, results: list[np.ndarray], least: np.ndarray) -> np.ndarray:
    """Elements that lie between the results of JAX, or half as far beyond them."""
    low = np.minimum.reduce([np.where(np.isnan(r), np.inf, r) for r in results])
    high = np.maximum.reduce([np.where(np.isnan(r), -np.inf, r) for r in results])
    margin = np.where(np.isfinite(high - low), 0.5 * np.abs(high - low), 0.0) + least
    is_nan = np.logical_or.reduce([np.isnan(r) for r in results])
    return ((h >= low - margin) & (h <= high + margin)) | (np.isnan(h) & is_nan)


def _distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    distance = np.abs(a - b)
    return np.where(same, 0.0, np.where(np.isnan(distance), np.inf, distance))


def nudged_results(program: Program, values: Results) -> Iterator[list[Results]]:
    """Results that are as good as JAX's: each operation is off by a unit. Few, then many."""
    closed = jax.make_jaxpr(function_of(program))(*values)
    run = jax.jit(lambda turn, *args: rounded_otherwise(closed, args, turn))
    arrays = [jnp.asarray(a) for a in values]
    for turns in (range(NUDGES), range(NUDGES, NUDGES + MORE_NUDGES)):
        yield [[np.asarray(r) for r in run(jnp.uint32(turn), *arrays)] for turn in turns]


def wide_results(program: Program, values: Results, want: Results) -> Results:
    """The exact results, as far as 64 bits give them; integers in their own width."""
    try:
        with _jax.double_precision(True):
            wide = [_widened(a) for a in values]
            results = jax_results(jax.jit(function_of(program, wide=True)), wide)
    except Exception:
        return want
    if any(r.shape != w.shape for r, w in zip(results, want, strict=True)):
        return want
    return [
        r if jnp.issubdtype(w.dtype, jnp.inexact) else r.astype(w.dtype)
        for r, w in zip(results, want, strict=True)
    ]


def _widened(array: np.ndarray) -> np.ndarray:
    if np.iscomplexobj(array):
        return array.astype(np.complex128)
    return array.astype(np.float64) if jnp.issubdtype(array.dtype, jnp.floating) else array


def is_finite(array: np.ndarray) -> bool:
    return not jnp.issubdtype(array.dtype, jnp.inexact) or bool(np.isfinite(array).all())


def _least(want: np.ndarray) -> np.ndarray:
    """What the table allows: of complex numbers, one part may cancel, so the largest counts."""
    if np.iscomplexobj(want):
        return allowed(np.stack([want.real, want.imag]), "sum")
    return allowed(want, "function")


def parts(array: np.ndarray) -> np.ndarray:
    """In 64 bits, complex numbers as two; subnormal numbers are zero, as XLA takes them."""
    if np.iscomplexobj(array):
        array = np.stack([array.real, array.imag])
    if not jnp.issubdtype(array.dtype, jnp.floating):
        return array
    wide = array.astype(np.float64)
    return np.where(np.abs(wide) < float(jnp.finfo(array.dtype).tiny), 0.0, wide)


def _joined(off: np.ndarray, like: np.ndarray) -> np.ndarray:
    return off.all(axis=0) if np.iscomplexobj(like) else off

# SPDX-License-Identifier: Apache-2.0
"""One program: exported, run in ONNX Runtime, compared with JAX."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

import jaxport
from ecosystem.table import Program
from jaxport import _jax, runtime
from support.tolerances import assert_close

TOLERANCE = "network"


@dataclasses.dataclass(frozen=True)
class Result:
    """What became of a program; `problem` is empty when the model gives JAX's numbers.

    `error` is the largest difference, as a part of the largest number of the result it is in.
    """

    problem: str
    nodes: int = 0
    error: float = 0.0
    convert_seconds: float = 0.0
    compile_seconds: float = 0.0


def measure(program: Program) -> Result:
    fn, arguments = program.make()
    jax.clear_caches()
    want, compile_seconds = _compiled(fn, arguments)
    jax.clear_caches()  # neither way profits from what the other one traced
    start = time.perf_counter()
    try:
        model = jaxport.to_onnx(fn, arguments, return_mode="model")
    except jaxport.ConversionError as error:
        return Result(str(error).split("\n", 1)[0], compile_seconds=compile_seconds)
    seconds = time.perf_counter() - start
    nodes = int(model.stats()["nodes"])
    try:
        session = runtime.open_session(model.to_proto())
        feeds = [_jax.host_array(leaf) for leaf in jax.tree.leaves(arguments)]
        have = runtime.run(session, feeds)
    except Exception as error:
        return Result(f"ONNX Runtime: {error}", nodes, 0.0, seconds, compile_seconds)
    problem = _difference(want, have)
    if problem and _is_nearer_to_the_truth(fn, arguments, want, have):
        problem = ""
    return Result(problem, nodes, _error(want, have), seconds, compile_seconds)


def _compiled(fn: Callable[..., Any], arguments: Sequence[Any]) -> tuple[list[np.ndarray], float]:
    """What jit gives, and how long it takes to trace and to compile."""
    start = time.perf_counter()
    compiled = jax.jit(lambda *xs: fn(*xs)).lower(*arguments).compile()
    seconds = time.perf_counter() - start
    return [_jax.host_array(leaf) for leaf in jax.tree.leaves(compiled(*arguments))], seconds


def _difference(want: list[np.ndarray], have: dict[str, np.ndarray]) -> str:
    try:
        for expected, (name, actual) in zip(want, have.items(), strict=True):
            assert_close(name, expected, actual, TOLERANCE)
    except AssertionError as error:
        return f"other numbers: {error}"
    return ""


def _is_nearer_to_the_truth(
    fn: Callable[..., Any],
    arguments: Sequence[Any],
    want: list[np.ndarray],
    have: dict[str, np.ndarray],
) -> bool:
    """Whether JAX in f64 is at least as near to the model as to JAX in f32.

    Adaptive methods decide by differences of rounded numbers: two right programs then take other
    steps, within the tolerance that they were given.
    """
    with _jax.double_precision(True):
        wide = jax.tree.map(lambda x: np.asarray(x, _wider(np.asarray(x).dtype)), arguments)
        try:
            truth, _ = _compiled(fn, wide)
        except Exception:  # written for f32 only
            return False
    off = [_error(truth, dict(enumerate(results))) for results in (want, list(have.values()))]
    return off[1] <= off[0] and all(x.dtype == np.float64 for x in truth)


def _wider(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.float64) if dtype == np.float32 else dtype


def _error(want: list[np.ndarray], have: dict[Any, np.ndarray]) -> float:
    worst = 0.0
    for expected, actual in zip(want, have.values(), strict=False):
        if expected.shape != actual.shape or not expected.size:
            continue
        lhs, rhs = expected.astype(np.float64), actual.astype(np.float64)
        finite = np.isfinite(lhs) & np.isfinite(rhs)
        largest = np.abs(lhs[finite]).max(initial=0.0)
        difference = np.abs(lhs[finite] - rhs[finite]).max(initial=0.0)
        worst = max(worst, difference / largest if largest else difference)
    return float(worst)

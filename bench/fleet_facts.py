# SPDX-License-Identifier: Apache-2.0
"""What bench/results/fleet.json says of a network: None where a candidate or a step is missing."""

import math
from collections.abc import Iterable
from typing import Any

Result = dict[str, Any]  # of one network
WRONG = 1e-2  # an error beyond which a model does not do the same thing


def geometric_mean(values: Iterable[float]) -> float | None:
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs)) if logs else None


def step(result: Result, name: str) -> dict[str, Any]:
    """Of a step that failed or was not measured: nothing."""
    found: dict[str, Any] = result.get(name, {})
    return {} if "error" in found else found


def seconds(result: Result, threads: str, name: str, statistic: str = "best") -> float | None:
    taken = step(result, threads).get("seconds", {}).get(name)
    return None if taken is None else taken[statistic]


def error(result: Result, threads: str, name: str) -> float | None:
    """The largest difference from jax.jit."""
    found: float | None = step(result, threads).get("largest_error", {}).get(name)
    return found


def is_wrong(result: Result, threads: str, name: str) -> bool:
    found = error(result, threads, name)
    return found is not None and not found < WRONG  # NaN is wrong too


def ratio(result: Result, threads: str, other: str, statistic: str = "best") -> float | None:
    """Our time over that of a candidate which does the same thing."""
    ours = seconds(result, threads, "jaxport", statistic)
    theirs = seconds(result, threads, other, statistic)
    if ours is None or theirs is None or is_wrong(result, threads, other):
        return None
    return ours / theirs


def floor(result: Result, other: str) -> float | None:
    """What the ratio cannot go below on one thread: our products alone over the candidate."""
    reached, products = ratio(result, "1", other), step(result, "1").get("products")
    return None if reached is None or products is None else reached * products


def session_seconds(result: Result, threads: str, name: str) -> float | None:
    found: float | None = step(result, threads).get("session_seconds", {}).get(name)
    return found


def converted(result: Result, name: str) -> dict[str, Any]:
    """Of a model that could not be made: nothing."""
    found: dict[str, Any] = step(result, "conversion").get(name, {})
    return {} if "error" in found else found


def was_tried(result: Result, name: str) -> bool:
    """Results of an older run lack the candidates that it did not know."""
    return name != "newest" or name in step(result, "conversion")


def nodes(result: Result, name: str) -> int | None:
    found: int | None = converted(result, name).get("nodes")
    return found


def nodes_ratio(result: Result) -> float | None:
    ours, theirs = nodes(result, "jaxport"), nodes(result, "jax2onnx")
    return None if ours is None or theirs is None else ours / theirs


def compile_of_trace(result: Result) -> float | None:
    ours = converted(result, "jaxport")
    return ours["compile_seconds"] / ours["trace_seconds"] if ours else None

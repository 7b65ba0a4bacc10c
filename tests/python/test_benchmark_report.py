# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/benchmarks.md are made of what was measured, however much that is."""

import copy
import sys
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture
def bench(monkeypatch):
    """The modules of bench/, which is no package."""
    monkeypatch.syspath_prepend(str(BENCH))
    before = set(sys.modules)
    import fleet_report
    import limits

    yield fleet_report, limits
    for name in set(sys.modules) - before:
        if str(BENCH) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def converted(nodes: int) -> dict[str, Any]:
    movement = {"Transpose": 1, "Reshape": 0, "Cast": 0, "Expand": 0}
    return {"nodes": nodes, "bytes": 8, "movement": movement, "compile_seconds": 0.01}


def latency() -> dict[str, Any]:
    times = {"jaxport": 1.0, "newest": 1.0, "jax2onnx": 2.0, "slim": 2.0, "jit": 4.0}
    return {
        "seconds": {name: {"best": t, "median": t} for name, t in times.items()},
        "session_seconds": dict.fromkeys(times, 0.1),
        "products": 0.5,
        "largest_error": dict.fromkeys(times, 1e-6),
    }


def result() -> dict[str, Any]:
    ours = converted(10) | {
        "equations": 600,
        "trace_seconds": 0.1,
        "first_compile_seconds": 0.02,
        "stage_seconds": {"import": 0.001},
        "write_seconds": 0.001,
    }
    conversion = {"jaxport": ours, "newest": converted(9), "jax2onnx": converted(20)}
    return {"conversion": conversion, "1": latency(), "2": latency()}


def tables(bench: Any, networks: dict[str, Any]) -> str:
    fleet_report, limits = bench
    rows = limits.fleet_rows(networks, {})
    return "\n".join([fleet_report.tables(networks), *map(" | ".join, rows)])


def test_the_limits_of_complete_results(bench):
    text = tables(bench, {"net": result()})
    assert "| net | 1000.00 | 1000.00 | 1e-06 | 1.00 (1.00) | 0.50 (0.50) |" in text
    assert "mean of 1 networks (their products alone: 0.25) | 0.50 | at most 0.65 | met" in text
    assert "above 500 equations, worst: net | 0.10 | at most 0.25 | met" in text
    assert "decoding steps relative to `jax.jit` | not measured | at most 0.90 | " in text


def without(step: str, *path: str) -> dict[str, Any]:
    found = result()
    parts = found[step] if path else found
    for key in path[:-1]:
        parts = parts[key]
    del parts[path[-1] if path else step]
    return found


@pytest.mark.parametrize(
    "partial",
    [
        {},
        *(without(step) for step in result()),
        *(result() | {step: {"error": "exit status 1"}} for step in result()),
        *(without("conversion", name) for name in result()["conversion"]),
        *(without("1", part) for part in latency()),
        *(without("1", part, "jax2onnx") for part in ("seconds", "largest_error")),
        *(without("1", part, "jaxport") for part in ("seconds", "largest_error")),
    ],
)
def test_what_is_missing_leaves_cells_empty(bench, partial):
    text = tables(bench, {"net": result(), "partial": copy.deepcopy(partial)})
    assert "| partial |" in text
    assert "worst: net" in text


def test_no_network_at_all(bench):
    assert "not measured" in tables(bench, {})


def test_a_wrong_model_of_others_counts_for_no_mean(bench):
    wrong = result()
    wrong["1"]["largest_error"]["jax2onnx"] = float("nan")
    text = tables(bench, {"net": wrong})
    assert "1.00 (1.00) | wrong |" in text
    assert "relative to jax2onnx, geometric mean of 0 networks | not measured" in text


def test_a_network_that_fails_is_counted(bench):
    failed = {step: {"error": "exit status 1"} for step in result()}
    assert "networks that run | 1 of 2 | all | **missed**" in tables(
        bench, {"net": result(), "failed": failed}
    )

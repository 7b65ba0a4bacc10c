# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks share: where files go, how results are kept, repeated timing."""

import json
import os
import platform
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
SCRATCH = ROOT / "build" / "bench"  # models that the benchmarks write and share

PACKAGES = ("jax", "flax", "jax2onnx", "onnx", "onnxruntime", "numpy")


def cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def environment() -> dict[str, Any]:
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
    }


def save_result(name: str, result: dict[str, Any]) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"environment": environment(), **result}, indent=2)
    (RESULTS / f"{name}.json").write_text(text + "\n")


def load_result(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / f"{name}.json").read_text())


def seconds(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def summary(samples: list[float]) -> dict[str, Any]:
    """All samples, so that nothing is dropped, with the numbers that the tables show."""
    return {
        "best": min(samples),
        "median": statistics.median(samples),
        "first": samples[0],
        "samples": samples,
    }


def one_thread_session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors only
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def runner_of_all(model: onnx.ModelProto, *inputs: np.ndarray) -> Callable[[], list[np.ndarray]]:
    """Runs a model in ONNX Runtime on one thread; all results."""
    session = one_thread_session(model)
    feed = {given.name: x for given, x in zip(session.get_inputs(), inputs, strict=True)}
    return lambda: session.run(None, feed)


def onnx_runner(model: onnx.ModelProto, *inputs: np.ndarray) -> Callable[[], np.ndarray]:
    """The first result only."""
    run = runner_of_all(model, *inputs)
    return lambda: run()[0]


def error_of(results: list[np.ndarray], expected: list[np.ndarray]) -> float:
    """The largest difference, relative to the largest value of its output."""
    pairs = [
        (got.astype(np.float64), want.astype(np.float64))
        for got, want in zip(results, expected, strict=True)
    ]
    return max(
        float(np.abs(got - want).max() / max(np.abs(want).max(), 1e-30)) for got, want in pairs
    )


def op_counts(model: onnx.ModelProto) -> Counter[str]:
    """How often each op occurs, in bodies and functions too."""
    ops: Counter[str] = Counter()

    def add(nodes: Iterable[onnx.NodeProto]) -> None:
        for node in nodes:
            ops[node.op_type] += 1
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    add(attribute.g.node)

    add(model.graph.node)
    for function in model.functions:
        add(function.node)
    return ops


def count_equations(jaxpr: Any) -> int:
    """Equations of a jaxpr and of all jaxprs in its parameters."""
    total = 0
    for eqn in jaxpr.eqns:
        total += 1
        for value in eqn.params.values():
            for item in value if isinstance(value, tuple | list) else (value,):
                inner = getattr(item, "jaxpr", item)
                total += count_equations(inner) if hasattr(inner, "eqns") else 0
    return total


def in_turns(runners: dict[str, Callable[[], Any]], rounds: int) -> dict[str, Any]:
    """Times of candidates that take turns; each warms up right before it is timed.

    Each round has another order: what follows jax.jit in all rounds takes up to 1.4 of its time.
    """
    samples: dict[str, list[float]] = {name: [] for name in runners}
    names, order = list(runners), random.Random(0)
    for _ in range(rounds):
        order.shuffle(names)
        for name in names:
            runners[name]()
            samples[name].append(seconds(runners[name]))
    return {name: summary(taken) for name, taken in samples.items()}

# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks share: where files go, how results are kept, repeated timing."""

import json
import os
import platform
import statistics
import time
from collections.abc import Callable
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


def onnx_runner(model: onnx.ModelProto, *inputs: np.ndarray) -> Callable[[], np.ndarray]:
    """Runs a model in ONNX Runtime on one thread; the first result."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors only
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    feed = {given.name: x for given, x in zip(session.get_inputs(), inputs, strict=True)}
    return lambda: session.run(None, feed)[0]


def in_turns(runners: dict[str, Callable[[], Any]], rounds: int) -> dict[str, Any]:
    """Times of candidates that take turns; each warms up right before it is timed."""
    samples: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(rounds):
        for name, run in runners.items():
            run()
            samples[name].append(seconds(run))
    return {name: summary(taken) for name, taken in samples.items()}

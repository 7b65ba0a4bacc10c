# SPDX-License-Identifier: Apache-2.0
"""Latency of one network: every model that fleet_conversion.py wrote, and jax.jit.

Called by fleet.py with a network, a folder and a number of threads; prints JSON.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

THREADS = int(sys.argv[3])
if THREADS == 1:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import jax  # noqa: E402
import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
from measure import error_of, in_turns, seconds  # noqa: E402
from networks import network  # noqa: E402

SECONDS = 8.0  # for all turns of a network
MOST_ROUNDS = 60
PROFILED = 8  # runs
# Attention is not among them, although it multiplies too: another form of it may be faster.
PRODUCTS = {"MatMul", "FusedMatMul", "Gemm", "FusedGemm", "Conv", "FusedConv", "ConvTranspose"}

Runner = Callable[[], list[np.ndarray]]


def onnx_runner(path: Path, inputs: list[np.ndarray]) -> tuple[Runner, float]:
    """What runs the model, and how long the session took to start."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
    options.log_severity_level = 3  # errors only
    start = time.perf_counter()
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    started = time.perf_counter() - start
    feed = {given.name: array for given, array in zip(session.get_inputs(), inputs, strict=True)}
    return (lambda: session.run(None, feed)), started


def share_of_products(path: Path, inputs: list[np.ndarray]) -> float:
    """The part of a run in kernels of products, which no graph of the same products saves."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.enable_profiling = True
    with tempfile.TemporaryDirectory() as folder:
        options.profile_file_prefix = str(Path(folder) / "profile")
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        feed = {given.name: x for given, x in zip(session.get_inputs(), inputs, strict=True)}
        for _ in range(PROFILED):
            session.run(None, feed)
        events = json.loads(Path(session.end_profiling()).read_text())
    products = sum(
        event["dur"]
        for event in events
        if event["name"].endswith("_kernel_time") and event["args"]["op_name"] in PRODUCTS
    )
    return products / sum(event["dur"] for event in events if event["name"] == "model_run")


def jit_runner(fn: Callable[..., Any], inputs: list[np.ndarray]) -> Runner:
    jitted = jax.jit(lambda *args: fn(*args))
    arrays = [jax.numpy.asarray(array) for array in inputs]
    return lambda: [np.asarray(leaf) for leaf in jax.tree.leaves(jitted(*arrays))]


def main() -> None:
    given, folder = network(sys.argv[1]), Path(sys.argv[2])
    inputs = given.arrays()
    runners: dict[str, Runner] = {"jit": jit_runner(given.build(), inputs)}
    starts: dict[str, float] = {}
    failed: dict[str, str] = {}
    for name in ("jaxport", "newest", "jax2onnx", "slim", "optimizer"):
        if not (path := folder / f"{name}.onnx").exists():
            continue
        try:
            run, starts[name] = onnx_runner(path, inputs)
            run()
            runners[name] = run
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"[:200]
    expected = runners["jit"]()
    errors = {name: error_of(run(), expected) for name, run in runners.items()}
    once = sum(seconds(run) for run in runners.values())
    timings = in_turns(runners, int(min(MOST_ROUNDS, max(5, SECONDS / (2 * once)))))
    ratios = {
        other: timings["jaxport"]["best"] / taken["best"]
        for other, taken in timings.items()
        if other != "jaxport"
    }
    result = {
        "seconds": {
            name: {"best": t["best"], "median": t["median"]} for name, t in timings.items()
        },
        "ratios": ratios,
        "session_seconds": starts,
        "products": share_of_products(folder / "jaxport.onnx", inputs) if THREADS == 1 else None,
        "largest_error": errors,
        "failed": failed,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()

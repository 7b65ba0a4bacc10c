# SPDX-License-Identifier: Apache-2.0
"""Latency of one network: every model that fleet_conversion.py wrote, and jax.jit.

Called by fleet.py with a network, a folder and a number of threads; prints JSON.
"""

import json
import os
import sys
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
    for name in ("jaxport", "jax2onnx", "slim", "optimizer"):
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
        "largest_error": errors,
        "failed": failed,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Single operations (bench/operations), one thread, beside jax2onnx and jax.jit.

    python bench/ops.py                  all operations: one to four minutes
    python bench/ops.py solve "inv, "    those with one of these words in their names or families

A run of some keeps the results of the others. The candidates take turns in one process on one
core, in another order each round, and each turn times the second of two runs.
"""

import os

# XLA reads this when JAX starts.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import contextlib  # noqa: E402
import io  # noqa: E402
import sys  # noqa: E402
from collections.abc import Callable  # noqa: E402
from typing import Any  # noqa: E402

import jax  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from measure import (  # noqa: E402
    RESULTS,
    error_of,
    in_turns,
    load_result,
    op_counts,
    runner_of_all,
    save_result,
    seconds,
)
from operations import OPERATIONS, Operation  # noqa: E402

import jaxport  # noqa: E402

SECONDS = 1.0  # for all turns of an operation
FEWEST_ROUNDS, MOST_ROUNDS = 15, 200

Runner = Callable[[], list[np.ndarray]]


def structs(operation: Operation) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in operation.inputs]


def with_jaxport(operation: Operation) -> onnx.ModelProto:
    return jaxport.to_onnx(lambda *xs: operation.fn(*xs), structs(operation))


def with_jax2onnx(operation: Operation) -> onnx.ModelProto:
    import jax2onnx

    with contextlib.redirect_stdout(io.StringIO()):
        return jax2onnx.to_onnx(lambda *xs: operation.fn(*xs), inputs=structs(operation))


def jit_runner(operation: Operation) -> Runner:
    jitted = jax.jit(lambda *xs: operation.fn(*xs))
    arrays = [jax.numpy.asarray(x) for x in operation.inputs]
    return lambda: [np.asarray(leaf) for leaf in jax.tree.leaves(jitted(*arrays))]


def measured(operation: Operation) -> dict[str, Any]:
    """Other converters may fail, and so may ONNX Runtime with their models: the reason is kept."""
    runners: dict[str, Runner] = {"jit": jit_runner(operation)}
    expected = runners["jit"]()
    result: dict[str, Any] = {"nodes": {}, "largest_error": {}, "failed": {}}
    for name, convert in (("jaxport", with_jaxport), ("jax2onnx", with_jax2onnx)):
        try:
            model = convert(operation)
            run = runner_of_all(model, *operation.inputs)
            result["largest_error"][name] = error_of(run(), expected)
            result["nodes"][name] = op_counts(model).total()
            runners[name] = run
        except Exception as error:
            result["failed"][name] = f"{type(error).__name__}: {error}"[:200]
    once = sum(2 * seconds(run) for run in runners.values())
    timings = in_turns(runners, int(min(MOST_ROUNDS, max(FEWEST_ROUNDS, SECONDS / once))))
    result["seconds"] = {
        name: {"best": taken["best"], "median": taken["median"]} for name, taken in timings.items()
    }
    if ours := timings.get("jaxport"):
        result["ratios"] = {
            name: ours["best"] / taken["best"] for name, taken in timings.items() if taken != ours
        }
    return result


def line(name: str, result: dict[str, Any]) -> str:
    if "jaxport" in result["failed"]:
        return f"{name:36} fails: {result['failed']['jaxport']}"
    best = result["seconds"]["jaxport"]["best"] * 1e6
    to = "  ".join(f"{other} {ratio:5.2f}" for other, ratio in result["ratios"].items())
    nodes, error = result["nodes"]["jaxport"], result["largest_error"]["jaxport"]
    return f"{name:36} {best:8.0f} us  {nodes:4} nodes  error {error:.0e}  of {to}"


def main() -> None:
    wanted = sys.argv[1:] or [""]
    path = RESULTS / "operations.json"
    kept = load_result("operations")["operations"] if path.exists() else {}
    for operation in OPERATIONS:
        if any(word in f"{operation.family}: {operation.name}" for word in wanted):
            kept[operation.name] = {"family": operation.family, **measured(operation)}
            print(line(operation.name, kept[operation.name]), flush=True)
    ordered = {x.name: kept[x.name] for x in OPERATIONS if x.name in kept}
    save_result("operations", {"operations": ordered})


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""One network converted by jaxport and by jax2onnx, and jax2onnx's model optimised by others.

Called by fleet.py with a network and a folder; writes the models there and prints JSON.
"""

import contextlib
import io
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import onnx
from measure import count_equations, op_counts, seconds
from networks import Network, network

import jaxport

ROUNDS = 5
COUNTED = ("Transpose", "Reshape", "Cast", "Expand")
NEWEST = "onnxruntime>=1.31"  # what the versions before it lack costs its models nothing


def fresh(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A new function object: JAX remembers the trace of the old one."""
    return lambda *args: fn(*args)


def with_jaxport(fn: Callable[..., Any], given: Network, path: Path) -> dict[str, Any]:
    times, stages = [], []
    for _ in range(ROUNDS):
        model = jaxport.to_onnx(fresh(fn), given.structs(), return_mode="model")
        times.append(dict(model.times))
        stages.append(model.stage_times)
    model.save(path)
    equations = count_equations(jax.make_jaxpr(fresh(fn))(*given.structs()).jaxpr)
    best = min(range(ROUNDS), key=lambda i: times[i]["compile"])
    return {
        "equations": equations,
        "trace_seconds": min(t["trace"] for t in times),
        "compile_seconds": times[best]["compile"],
        "first_compile_seconds": times[0]["compile"],
        "stage_seconds": stages[best],
        "write_seconds": model.times["write"],
        **counts(path),
    }


def for_newest(fn: Callable[..., Any], given: Network, path: Path) -> dict[str, Any]:
    """The model that needs not run on older versions of ONNX Runtime."""
    jaxport.to_onnx(fresh(fn), given.structs(), target=NEWEST, return_mode="model").save(path)
    return counts(path)


def with_jax2onnx(fn: Callable[..., Any], given: Network, path: Path) -> dict[str, Any]:
    import jax2onnx

    totals = []
    for _ in range(2):
        start = time.perf_counter()
        proto = jax2onnx.to_onnx(fresh(fn), inputs=given.structs())
        totals.append(time.perf_counter() - start)
    onnx.save(proto, path)
    tracing = seconds(lambda: jax.make_jaxpr(fresh(fn))(*given.structs()))
    return {"compile_seconds": max(totals[-1] - tracing, 0.0), **counts(path)}


def with_onnxslim(source: Path, path: Path) -> dict[str, Any]:
    import onnxslim

    taken = seconds(lambda: onnx.save(onnxslim.slim(str(source)), path))
    return {"seconds": taken, **counts(path)}


def with_optimizer(source: Path, path: Path) -> dict[str, Any]:
    from onnxruntime.transformers.optimizer import optimize_model

    taken = seconds(
        lambda: optimize_model(str(source), "bert", opt_level=0).save_model_to_file(str(path))
    )
    return {"seconds": taken, **counts(path)}


def counts(path: Path) -> dict[str, Any]:
    """Nodes with those of bodies and functions, and the ops that only move data."""
    ops = op_counts(onnx.load(path, load_external_data=False))
    size = sum(part.stat().st_size for part in path.parent.glob(f"{path.name}*"))
    return {
        "nodes": sum(ops.values()),
        "bytes": size,
        "movement": {op: ops[op] for op in COUNTED},
    }


def attempt(action: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Other converters may fail, and print what they like."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return action()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:200]}


def main() -> None:
    given, folder = network(sys.argv[1]), Path(sys.argv[2])
    fn = given.build()
    names = ("jaxport", "newest", "jax2onnx", "slim", "optimizer")
    path = {name: folder / f"{name}.onnx" for name in names}
    result = {"jaxport": with_jaxport(fn, given, path["jaxport"])}
    result["newest"] = attempt(lambda: for_newest(fn, given, path["newest"]))
    result["jax2onnx"] = attempt(lambda: with_jax2onnx(fn, given, path["jax2onnx"]))
    if path["jax2onnx"].exists():
        result["onnxslim"] = attempt(lambda: with_onnxslim(path["jax2onnx"], path["slim"]))
        result["optimizer"] = attempt(lambda: with_optimizer(path["jax2onnx"], path["optimizer"]))
    print(json.dumps(result))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Conversion of ViT-B/16: jaxport and jax2onnx in one process, on the same weights.

Every round converts a new function object, because JAX remembers the trace of the old one. Both
converters stop at the finished model in memory; writing is measured apart.
"""

import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax2onnx
from measure import SCRATCH, count_equations, save_result, seconds, summary
from networks import network

import jaxport

VIT = network("ViT-B/16")
ROUNDS = 7
WRITE_ROUNDS = 21


def fresh(model: Callable[..., Any]) -> Callable[..., Any]:
    return lambda image: model(image)


def trace_seconds(model: Callable[..., Any]) -> float:
    return seconds(lambda: jax.make_jaxpr(fresh(model))(*VIT.structs()))


def measure_jaxport(model: Callable[..., Any]) -> tuple[dict[str, Any], Any]:
    times = []
    for _ in range(ROUNDS):
        onnx_model = jaxport.to_onnx(fresh(model), VIT.structs(), return_mode="model")
        times.append(onnx_model.times)
    stats = onnx_model.stats()
    return {
        "trace_seconds": summary([t["trace"] for t in times]),
        "compile_seconds": summary([t["compile"] for t in times]),
        "nodes": stats["nodes"],
        "ops": stats["ops"],
        "initializer_bytes": stats["initializer_bytes"],
    }, onnx_model


def measure_jax2onnx(model: Callable[..., Any]) -> dict[str, Any]:
    """What jax2onnx spends beyond tracing: its whole call less the best trace of JAX itself."""
    totals = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        jax2onnx.to_onnx(fresh(model), inputs=VIT.structs(), return_mode="ir")
        totals.append(time.perf_counter() - start)
    tracing = min(trace_seconds(model) for _ in range(ROUNDS))
    proto = jax2onnx.to_onnx(fresh(model), inputs=VIT.structs())
    return {
        "total_seconds": summary(totals),
        "trace_seconds": tracing,
        "compile_seconds": summary([total - tracing for total in totals]),
        "nodes": len(proto.graph.node),
    }


def new_file(path: Path) -> Path:
    """Removes the file and flushes the disk, so that no earlier write is charged to the next."""
    path.unlink(missing_ok=True)
    os.sync()
    return path


def measure_write(onnx_model: Any) -> dict[str, Any]:
    """Writing, `cp` of the same bytes and one plain `write` of them, in turns on the same disk.

    The plain write is the control: what it varies by is the machine's."""
    source = SCRATCH / "vit.jaxport.onnx"
    onnx_model.save(source)
    content = source.read_bytes()
    ours, copy, plain = (SCRATCH / f"{name}.onnx" for name in ("written", "copied", "plain"))
    write, cp, control = [], [], []
    for _ in range(WRITE_ROUNDS):
        new_file(ours)
        write.append(seconds(lambda: onnx_model.save(ours)))
        new_file(copy)
        cp.append(seconds(lambda: subprocess.run(["cp", source, copy], check=True)))
        new_file(plain)
        control.append(seconds(lambda: plain.write_bytes(content)))
    for path in (ours, copy, plain):
        path.unlink()
    return {
        "bytes": source.stat().st_size,
        "write_seconds": summary(write),
        "cp_seconds": summary(cp),
        "plain_write_seconds": summary(control),
        "speed_relative_to_cp": statistics.median(cp) / statistics.median(write),
        "plain_write_relative_to_cp": statistics.median(cp) / statistics.median(control),
    }


def main() -> None:
    shutil.rmtree(SCRATCH, ignore_errors=True)
    SCRATCH.mkdir(parents=True)
    model = VIT.build()
    equations = count_equations(jax.make_jaxpr(model)(*VIT.structs()).jaxpr)
    print(f"ViT-B/16: {equations} equations", flush=True)

    ours, onnx_model = measure_jaxport(model)
    written = measure_write(onnx_model)
    theirs = measure_jax2onnx(model)
    ratios = {
        statistic: theirs["compile_seconds"][statistic] / ours["compile_seconds"][statistic]
        for statistic in ("first", "median", "best")
    }
    save_result(
        "conversion",
        {
            "equations": equations,
            "jaxport": ours,
            "write": written,
            "jax2onnx": theirs,
            "times_less_than_jax2onnx": ratios,
        },
    )
    for statistic, ratio in ratios.items():
        print(f"compile, {statistic}: {ours['compile_seconds'][statistic]:.4f} s, 1/{ratio:.0f}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""All networks of bench/networks: conversion, size and latency, beside jax2onnx and jax.jit.

    python bench/fleet.py                    all networks, each in processes of its own
    python bench/fleet.py "ViT-B/16" …       some of them; the results of the others are kept

A network is converted in one process and run in two others, with one thread and with two. The
candidates take turns, and each turn times the second of two runs.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from measure import RESULTS, environment

STEPS = ("conversion", "1", "2")  # the number of threads is the name of a latency step


def measured(name: str, step: str, folder: Path) -> dict[str, Any]:
    """The step in a process of its own, because XLA reads its threads when it starts."""
    environ = dict(os.environ)
    if step == "1":
        environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    script = "fleet_conversion.py" if step == "conversion" else "fleet_latency.py"
    command = [sys.executable, Path(__file__).with_name(script), name, folder, step]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environ)
    if run.returncode != 0:  # the others are still worth measuring
        return {"error": f"exit status {run.returncode}"}
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


def line(name: str, result: dict[str, Any]) -> str:
    failed = [step for step in STEPS if "error" in result[step]]
    if failed:
        return f"{name:24} fails: {', '.join(failed)}"
    ours = result["conversion"]["jaxport"]
    ratios = result["1"]["ratios"]
    to = "  ".join(f"{other} {ratio:.2f}" for other, ratio in ratios.items())
    compiled = f"compile {ours['compile_seconds'] * 1e3:6.1f} ms"
    return f"{name:24} {ours['nodes']:5} nodes  {compiled}  of {to}"


def main() -> None:
    from networks import NETWORKS

    path = RESULTS / "fleet.json"
    kept = json.loads(path.read_text())["networks"] if path.exists() else {}
    wanted = sys.argv[1:] or [network.name for network in NETWORKS]
    for name in wanted:
        with tempfile.TemporaryDirectory() as folder:
            kept[name] = {step: measured(name, step, Path(folder)) for step in STEPS}
        print(line(name, kept[name]), flush=True)
        ordered = {network.name: kept[network.name] for network in NETWORKS if network.name in kept}
        text = json.dumps({"environment": environment(), "networks": ordered}, indent=1)
        path.write_text(text + "\n")


if __name__ == "__main__":
    main()

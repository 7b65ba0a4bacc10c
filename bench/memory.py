# SPDX-License-Identifier: Apache-2.0
"""Peak memory of converting and writing networks, above what was there when the model existed.

    python bench/memory.py                    all networks
    python bench/memory.py "ViT-B/16" …       some of them; the results of the others are kept

Each converter runs in a process of its own. Before the measurement the process converts a function
of one equation, so that imports and first-use tables do not count. Then freed memory goes back to
the system, the kernel's high-water mark of the resident set (VmHWM) is reset, and the resident set
is read: weights, JAX and the interpreter. The result is the high-water mark after the file is
written, less that.
"""

import ctypes
import gc
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measure import RESULTS, SCRATCH, load_result, save_result
from networks import NETWORKS, Network, network

CONVERTERS = ("jaxport", "jax2onnx")
ONE = "--one"  # a converter and a network follow: what the processes are started with
RESET_HIGH_WATER_MARK = "5"  # proc(5), clear_refs


def resident_bytes(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise ValueError(field)


def give_back_freed_memory() -> None:
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)


Convert = Callable[[Any, Any, Path], object]


def converter(name: str) -> Convert:
    if name == "jaxport":
        import jaxport

        return lambda fn, inputs, path: jaxport.to_onnx(
            fn, inputs, return_mode="file", output_path=path
        )
    import jax2onnx

    return lambda fn, inputs, path: jax2onnx.to_onnx(
        fn, inputs=inputs, return_mode="file", output_path=str(path)
    )


def measure(name: str, given: Network) -> dict[str, int]:
    SCRATCH.mkdir(parents=True, exist_ok=True)
    path = SCRATCH / f"memory.{name}.onnx"
    convert = converter(name)
    model = given.build()
    convert(lambda x: x + 1, [(2,)], path)

    give_back_freed_memory()
    Path("/proc/self/clear_refs").write_text(RESET_HIGH_WATER_MARK)
    before = resident_bytes("VmRSS")
    convert(lambda *args: model(*args), given.structs(), path)
    peak = resident_bytes("VmHWM")
    size = sum(part.stat().st_size for part in path.parent.glob(f"{path.name}*"))
    for part in path.parent.glob(f"{path.name}*"):
        part.unlink()
    return {"before_bytes": before, "above_bytes": peak - before, "file_bytes": size}


def measured(converter_name: str, network_name: str) -> dict[str, Any]:
    """In a process of its own. Other converters may fail."""
    command = [sys.executable, __file__, ONE, converter_name, network_name]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        return {"error": (run.stderr.strip().splitlines() or [str(run.returncode)])[-1][:200]}
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


def line(name: str, result: dict[str, Any]) -> str:
    cells = (
        f"{key} fails" if "error" in found else f"{key} {found['above_bytes'] / 1e6:.0f} MB"
        for key, found in result.items()
    )
    return f"{name:24} {', '.join(cells)} above the weights"


def main() -> None:
    if sys.argv[1:2] == [ONE]:
        print(json.dumps(measure(sys.argv[2], network(sys.argv[3]))))
        return
    path = RESULTS / "memory.json"
    kept = load_result("memory").get("networks", {}) if path.exists() else {}
    for name in sys.argv[1:] or [given.name for given in NETWORKS]:
        kept[name] = {key: measured(key, name) for key in CONVERTERS}
        print(line(name, kept[name]), flush=True)
        ordered = {given.name: kept[given.name] for given in NETWORKS if given.name in kept}
        save_result("memory", {"networks": ordered})


if __name__ == "__main__":
    main()

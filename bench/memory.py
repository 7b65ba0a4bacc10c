# SPDX-License-Identifier: Apache-2.0
"""Peak memory of converting and writing ViT-B/16, above what was there when the model existed.

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

from measure import SCRATCH, save_result
from networks import network

CONVERTERS = ("jaxport", "jax2onnx")
RESET_HIGH_WATER_MARK = "5"  # proc(5), clear_refs


def resident_bytes(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise ValueError(field)


def give_back_freed_memory() -> None:
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)


def converter(name: str) -> Callable[[Any, tuple[int, ...], Path], None]:
    if name == "jaxport":
        import jaxport

        return lambda fn, shape, path: jaxport.to_onnx(
            fn, [shape], return_mode="file", output_path=path
        )
    import jax2onnx

    return lambda fn, shape, path: jax2onnx.to_onnx(
        fn, inputs=[shape], return_mode="file", output_path=str(path)
    )


def measure(name: str) -> dict[str, int]:
    SCRATCH.mkdir(parents=True, exist_ok=True)
    path = SCRATCH / f"memory.{name}.onnx"
    convert = converter(name)
    vit = network("ViT-B/16")
    model = vit.build()
    convert(lambda x: x + 1, (2,), path)

    give_back_freed_memory()
    Path("/proc/self/clear_refs").write_text(RESET_HIGH_WATER_MARK)
    before = resident_bytes("VmRSS")
    convert(lambda image: model(image), vit.inputs[0][0], path)
    peak = resident_bytes("VmHWM")
    size = sum(part.stat().st_size for part in path.parent.glob(f"{path.name}*"))
    for part in path.parent.glob(f"{path.name}*"):
        part.unlink()
    return {"before_bytes": before, "above_bytes": peak - before, "file_bytes": size}


def main() -> None:
    if len(sys.argv) == 2:
        print(json.dumps(measure(sys.argv[1])))
        return
    result = {}
    for name in CONVERTERS:
        command = [sys.executable, __file__, name]
        run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        result[name] = json.loads(run.stdout.splitlines()[-1])
        print(f"{name}: {result[name]['above_bytes'] / 1e6:.0f} MB above the weights", flush=True)
    save_result("memory", result)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""libFuzzer by way of atheris: any bytes as a checkpoint, .safetensors or .pth.

    PYTHONPATH=tests:. python -m fuzz.parsers.checkpoint safetensors -max_total_time=60 CORPUS SEEDS

What can be read has arrays whose elements can be read; everything else is refused with
CheckpointError.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import atheris
import numpy as np

with atheris.instrument_imports(include=["examples.dinov3.checkpoint"]):
    from examples.dinov3.checkpoint import (
        CheckpointError,
        read_pth,
        read_safetensors,
        write_safetensors,
    )

READERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "pth": read_pth,
    "safetensors": read_safetensors,
}


def target(reader: Callable[[Path], dict[str, Any]], path: Path) -> Callable[[bytes], None]:
    def one_input(data: bytes) -> None:
        path.write_bytes(data)
        try:
            for array in reader(path).values():
                np.asarray(array).tobytes()
        except CheckpointError:
            pass

    return one_input


def write_seed(kind: str, folder: Path) -> None:
    """One file that can be read, to start from."""
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "safetensors":
        tensors = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.ones(4, np.int64)}
        write_safetensors(folder / "seed", tensors)
        return
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("a/data.pkl", b"\x80\x02}q\x00.")  # an empty state
        archive.writestr("a/byteorder", "little")
        archive.writestr("a/data/0", bytes(16))
    (folder / "seed").write_bytes(content.getvalue())


def main() -> None:
    kind, *options = sys.argv[1:]
    folders = [Path(option) for option in options if not option.startswith("-")]
    write_seed(kind, folders[0])
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if os.access(shared, os.W_OK) else None) as folder:
        path = Path(folder) / f"file.{kind}"
        atheris.Setup([sys.argv[0], *options], target(READERS[kind], path))
        atheris.Fuzz()


if __name__ == "__main__":
    main()

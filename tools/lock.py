# SPDX-License-Identifier: Apache-2.0
"""Writes requirements/lock: every package of each environment in one version, with its hashes.

    make lock

uv resolves for every Python from 3.11 on at once. It asks the index that pip is configured with.
What is pinned in requirements/ keeps its version; what that needs beside it gets the newest that
fits, or keeps the one it has in the lock.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

REQUIREMENTS = Path(__file__).resolve().parent.parent / "requirements"
LOCK = REQUIREMENTS / "lock"
HEADER = "# Written by `make lock` from requirements/{}.\n"

# What shares an environment with another has the versions of that one.
ENVIRONMENTS: dict[str, tuple[str, ...]] = {
    "newest.txt": (),
    "oldest.txt": (),
    "bench.txt": ("newest.txt",),
    "check.txt": ("newest.txt",),
    "docs.txt": ("newest.txt", "bench.txt"),
    "examples.txt": ("newest.txt", "bench.txt", "docs.txt"),
    "release.txt": ("newest.txt", "bench.txt", "docs.txt", "examples.txt"),
    "ecosystem.txt": (),
    "fuzz.txt": ("newest.txt",),
    "node.txt": (),
    "reference.txt": ("newest.txt",),
    "runtimes.txt": (),
    "uv.txt": (),
}
# Some packages name TensorFlow, PyTorch or CUDA, which nobody needs: they are listed with all they
# need.
COMPLETE = {"ecosystem.txt", "runtimes.txt"}
# One package in several versions: each line is resolved alone.
LINE_BY_LINE = {"runtimes.txt"}


def index_of_pip() -> str:
    asked = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def resolved(uv: str, name: str, shares: tuple[str, ...], asked: Path, target: Path) -> str:
    """The lock of one file of requirements, which keeps what `target` has."""
    command = [uv, "pip", "compile", "--universal", "--python-version", "3.11"]
    command += ["--generate-hashes", "--no-header", "--no-annotate", "--quiet"]
    command += [option for other in shares for option in ("--constraint", str(LOCK / other))]
    command += ["--no-deps"] if name in COMPLETE else []
    command += ["--output-file", str(target), str(asked)]
    environment = dict(os.environ)
    if index := index_of_pip():
        environment.setdefault("UV_INDEX_URL", index)
    subprocess.run(command, check=True, env=environment)
    lines = target.read_text().splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("#"))


def lock(uv: str, name: str, shares: tuple[str, ...]) -> None:
    target, asked = LOCK / name, REQUIREMENTS / name
    if name not in LINE_BY_LINE:
        text = resolved(uv, name, shares, asked, target)
    else:
        text = ""
        with tempfile.TemporaryDirectory() as folder:
            line, one = Path(folder) / "line.txt", Path(folder) / "lock.txt"
            for pin in asked.read_text().splitlines():
                if pin.startswith("#"):
                    continue
                line.write_text(pin)
                text += resolved(uv, name, shares, line, one)
                one.unlink()
    target.write_text(HEADER.format(name) + text)


def main() -> int:
    LOCK.mkdir(exist_ok=True)
    for name, shares in ENVIRONMENTS.items():
        lock(sys.argv[1], name, shares)
    return 0


if __name__ == "__main__":
    sys.exit(main())

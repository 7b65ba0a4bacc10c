# SPDX-License-Identifier: Apache-2.0
"""A conversion that is killed, or whose file may not grow, leaves the old model.

    PYTHONPATH=tests python -m fuzz.files.kills --kills 200

tests/unit/wire_kill_test.cpp kills a process at each of its system calls; here it is any moment of
a whole conversion.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import onnx

from fuzz.files.run import core

OPTIONS = {"inline": [], "external": ["--inline-limit", "0", "--external-threshold", "1"]}
LIMITS = (0, 1, 100, 4096, 19_999)  # bytes that a file may have; the model needs 20,000
PROGRAM = """func @f(%x: f32[{size}]) {{
  %w: f32[{size}] = constant dense<"0x{content}">
  %y: f32[{size}] = add %x %w
  return %y
}}
"""


class Place:
    """Two programs of different size that are converted to one file."""

    def __init__(self, compiler: ModuleType, folder: Path, options: list[str]):
        self.compiler, self.options, self.output = compiler, options, folder / "m.onnx"
        self.programs = [folder / f"{size}.jir" for size in (3000, 5000)]
        for path in self.programs:
            size = int(path.stem)
            path.write_text(PROGRAM.format(size=size, content="0000803f" * size))

    def convert(self, program: Path) -> int:
        arguments = ["convert", str(program), "-o", str(self.output), *self.options]
        code: int = self.compiler.run_command(arguments, {})
        return code

    def alternate(self) -> int:
        while True:
            for program in self.programs:
                self.convert(program)

    def content(self) -> bytes | None:
        """The model with its data, whatever the file of the data is called."""
        if not self.output.exists():
            return None
        try:
            return bytes(onnx.load(self.output).SerializeToString())
        except Exception:  # whatever the reader says of a model without its data
            return b"broken"


def child_of(action: Callable[[], int]) -> int:
    child = os.fork()
    if child == 0:
        code = 3
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(1, 2)
            code = action()
        finally:
            os._exit(code)
    return child


def code_of(action: Callable[[], int]) -> int:
    _, status = os.waitpid(child_of(action), 0)
    return os.waitstatus_to_exitcode(status)


def kill(place: Place, kills: int, rng: random.Random) -> Counter[str]:
    """What was there after each of so many kills: the name of a program, "none" or "broken"."""
    whole = {}
    for program in place.programs:
        assert code_of(lambda program=program: place.convert(program)) == 0  # type: ignore[misc]
        whole[place.content()] = program.stem
    assert len(whole) == 2
    found: Counter[str] = Counter()
    for _ in range(kills):
        child = child_of(place.alternate)
        time.sleep(rng.uniform(0.002, 0.04))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        content = place.content()
        found["none" if content is None else whole.get(content, "broken")] += 1
    return found


def limit(place: Place) -> int:
    """How many conversions that may not write enough left something else than the old model."""
    assert code_of(lambda: place.convert(place.programs[0])) == 0
    before, changes = place.content(), 0
    for size in LIMITS:

        def limited(size: int = size) -> int:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
            return place.convert(place.programs[1])

        refused = code_of(limited) == 2
        left_over = list(place.output.parent.glob(".jaxport-*"))
        changes += not refused or place.content() != before or bool(left_over)
    return changes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    compiler, rng, bad = core(), random.Random(given.seed), 0
    for name, options in OPTIONS.items():
        with tempfile.TemporaryDirectory() as folder:
            bad += limit(Place(compiler, Path(folder), options))
        with tempfile.TemporaryDirectory() as folder:
            found = kill(Place(compiler, Path(folder), options), given.kills, rng)
        bad += found["broken"] + found["none"]
        print(f"{name}: {len(LIMITS)} full disks, {given.kills} kills, left: {dict(found)}")
    print(f"{bad} models were damaged")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())

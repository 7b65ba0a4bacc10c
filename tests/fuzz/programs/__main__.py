# SPDX-License-Identifier: Apache-2.0
"""Compares random JAX programs with their models in ONNX Runtime.

    PYTHONPATH=tests:tests/python python -m fuzz.programs --minutes 10 --seed 7
    PYTHONPATH=tests:tests/python python -m fuzz.programs --programs 20000
    PYTHONPATH=tests:tests/python python -m fuzz.programs --show 4711    the program of one seed

Everything that is not right, refused or documented is shrunk and written to build/fuzz/programs/
as a file that runs by itself. Exit code 1: there is such a file.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--programs", type=int, default=10**9, help="stop after as many programs")
    parser.add_argument("--minutes", type=float, default=10**9, help="stop after this time")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--limit", type=float, default=60, help="seconds of a processor for one")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "fuzz" / "programs")
    parser.add_argument("--show", type=int, help="print the program of a seed and its outcome")
    parser.add_argument("--junit", type=Path, help="write a JUnit file")
    given = parser.parse_args()
    if given.programs == given.minutes == 10**9 and given.show is None:
        given.programs = 1000
    return given


def main() -> int:
    given = arguments()
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    if given.show is not None:
        return show(given.show)
    from fuzz.programs.run import run

    start = time.monotonic()
    tally = run(
        given.seed, given.programs, given.minutes * 60, given.jobs, given.limit, given.folder
    )
    print(tally.text(time.monotonic() - start), flush=True)
    if given.junit:
        tally.write_junit(given.junit)
    return 1 if tally.files else 0


def show(seed: int) -> int:
    from fuzz.programs.generate import generate
    from fuzz.programs.program import module_source
    from fuzz.programs.worker import Task, Worker

    worker = Worker(60)
    program, outcome = worker.run(Task(seed))
    worker.stop()
    assert program == generate(seed)
    print(module_source(program))
    for given in program.inputs:
        print(f"# {given}")
    print(f"# {program.options}, sizes {program.sizes}, values {program.values}")
    print(f"# run {outcome.turn}: {outcome.kind}: {outcome.detail}")
    return 1 if outcome.is_find else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Converts a corpus with two versions of the compiler and prints which models differ.

    make replay                 the working tree against where this branch left main
    make replay BASE=HEAD~3     against another commit
    make replay EVERY=1         with all of JAX's own cases for its primitives, not every 13th

Exit code 0: nothing differs, 1: something does, 2: the versions cannot be compared.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import shutil
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from replay.compare import Difference, Side, compare
from replay.progress import progress
from replay.traces import traces_of
from replay.version import (
    FOLDER,
    ROOT,
    ReplayError,
    Version,
    base_commit,
    build,
    check_out,
    compiler_of,
    git,
)

# Each program is converted with each of these.
OPTIONS: dict[str, tuple[str, ...]] = {
    "": (),
    "opset 17": ("--opset", "17"),
    "opset 26, target onnx": ("--opset", "26", "--target", "onnx"),
}
DIFFERENT = FOLDER / "different"
REPORT = FOLDER / "report.txt"
MOST_ROWS = 60  # that a terminal gets; the report has all


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="replay", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--base", default="", help="the commit to compare with")
    parser.add_argument("--every", type=int, default=13, help="every n-th of JAX's own cases")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    return parser.parse_args()


def versions(base: str, jobs: int) -> tuple[Version, Version]:
    """Both versions, built."""
    commit = base_commit(base)
    print(f"before: {git('log', '-1', '--format=%h %s', commit)}", flush=True)
    changes = len(git("status", "--porcelain").splitlines())
    print(f"after:  {git('log', '-1', '--format=%h %s')}, {changes} files changed", flush=True)
    before, after = check_out(commit), Version("after", ROOT)
    build(after, jobs)
    build(before, jobs, compiler_of(after))
    return before, after


def differences(before: Version, after: Version, every: int, jobs: int) -> list[Difference]:
    """Everything that differs, in the order of the corpus."""
    traces = [(version, traces_of(version, every, jobs)) for version in (before, after)]
    shutil.rmtree(DIFFERENT, ignore_errors=True)
    tasks = list(itertools.product(traces[1][1], OPTIONS))

    def run(task: tuple[str, str]) -> Difference | None:
        program, title = task
        label = f"{program} | {title}" if title else program
        old, new = (Side(v.name, v.build / "jaxport", files[program]) for v, files in traces)
        return compare(label, (old, new), OPTIONS[title], DIFFERENT / file_name(label))

    with ThreadPoolExecutor(jobs) as pool:
        results = progress("converted", pool.map(run, tasks), len(tasks))
        return [difference for difference in results if difference]


def file_name(label: str) -> str:
    """A name for a folder, which no other label has: those of JAX's cases may be very long."""
    return f"{re.sub(r'[^a-z0-9]+', '_', label.lower())[:80]}_{zlib.crc32(label.encode()):08x}"


def table(rows: Sequence[Difference]) -> Iterator[str]:
    """The lines of an aligned table."""
    cells = [("model", "nodes", "price", "difference")]
    cells += [(r.name, " -> ".join(r.nodes), " -> ".join(r.price), r.what) for r in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        yield "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip()


def show(rows: Sequence[Difference]) -> None:
    """Prints the table, and writes all of it to the report."""
    lines = list(table(rows))
    REPORT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if rows:
        print("", *lines[: MOST_ROWS + 1], "", sep="\n")
        print(f"all rows: {REPORT.relative_to(ROOT)}; models: {DIFFERENT.relative_to(ROOT)}/")


def main() -> int:
    given = arguments()
    start = time.monotonic()
    try:
        before, after = versions(given.base, given.jobs)
        print(f"built in {time.monotonic() - start:.0f} s", flush=True)
        found = differences(before, after, given.every, given.jobs)
    except ReplayError as error:
        print(f"replay: {error}", file=sys.stderr)
        return 2
    show(found)
    print(f"{len(found) or 'no'} models differ; {time.monotonic() - start:.0f} s in all")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

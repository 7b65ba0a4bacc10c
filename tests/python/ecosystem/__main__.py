# SPDX-License-Identifier: Apache-2.0
"""Runs every program and rewrites docs/ecosystem.md: `make ecosystem`.

python -m ecosystem [PART OF A NAME]   programs with this in their name; no page is written
python -m ecosystem --these NAME...    these, in this process; prints each result as a line of JSON

A package has a process of its own. A program that ends it or takes too long is a row of the page;
those after it get a new process. JOBS packages run at the same time, 1 unless the environment says
so.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

from ecosystem.all_programs import ALL
from ecosystem.measure import Result, measure
from ecosystem.page import PAGE, page
from ecosystem.table import Program

CONVERT_SECONDS = 60
# For both ways to compile, and for the imports of a package.
SECONDS = 180


def run_these(names: list[str]) -> None:
    by_name = {program.id: program for program in ALL}
    for name in names:
        print(json.dumps(dataclasses.asdict(measure(by_name[name]))), flush=True)


def run_package(programs: Sequence[Program]) -> list[Result]:
    results: list[Result] = []
    while len(results) < len(programs):
        results += run(programs[len(results) :])
    return results


def run(programs: Sequence[Program]) -> list[Result]:
    """The results of the first programs, in one process: all, or up to the one that ended it."""
    command = [sys.executable, "-m", "ecosystem", "--these", *(program.id for program in programs)]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "KERAS_BACKEND": "jax"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            out, err = process.communicate(timeout=SECONDS * len(programs))
            last = (err.strip().splitlines() or ["no output"])[-1]
            problem = f"exit code {process.returncode}: {last}"
        except subprocess.TimeoutExpired:
            process.kill()
            out, _ = process.communicate()
            problem = f"takes more than {SECONDS} seconds"
    lines = [line for line in out.splitlines() if line.startswith('{"problem"')]
    results = [in_time(Result(**json.loads(line))) for line in lines]
    return results if len(results) == len(programs) else [*results, Result(problem)]


def in_time(result: Result) -> Result:
    if result.problem or result.convert_seconds <= CONVERT_SECONDS:
        return result
    return dataclasses.replace(result, problem=f"converts in {result.convert_seconds:.0f} s")


def version_of(program: Program) -> str:
    try:
        return importlib.metadata.version(program.package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--these"]:
        run_these(arguments[1:])
        return 0
    chosen = [program for program in ALL if not arguments or arguments[0] in program.id]
    packages = [list(group) for _, group in groupby(chosen, key=lambda program: program.package)]
    rows = []
    with ThreadPoolExecutor(int(os.environ.get("JOBS", "1"))) as pool:
        for programs, results in zip(packages, pool.map(run_package, packages), strict=True):
            for program, result in zip(programs, results, strict=True):
                rows.append((program, version_of(program), result))
                print(f"{program.id}: {result.problem or 'holds'}", flush=True)
    if not arguments:
        PAGE.write_text(page(rows), encoding="utf-8")
    return 1 if any(result.problem for _, _, result in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

# SPDX-License-Identifier: Apache-2.0
"""Runs every program in a process of its own and rewrites docs/ecosystem.md: `make ecosystem`.

python -m ecosystem [PART OF A NAME]   programs with this in their name; no page is written
python -m ecosystem --one NAME         one program in this process; prints its result as JSON

JOBS programs run at the same time, 1 unless the environment says so.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from ecosystem.all_programs import ALL
from ecosystem.measure import Result, measure
from ecosystem.page import PAGE, page
from ecosystem.table import Program

# Both ways to compile together, imports included.
SECONDS = 180
CONVERT_SECONDS = 60


def run_one(name: str) -> None:
    (program,) = [program for program in ALL if program.id == name]
    print(json.dumps(dataclasses.asdict(measure(program))))


def run(program: Program) -> Result:
    command = [sys.executable, "-m", "ecosystem", "--one", program.id]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "KERAS_BACKEND": "jax"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        return Result(f"takes more than {SECONDS} seconds")
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return Result(f"exit code {done.returncode}: {last}")
    result = Result(**json.loads(done.stdout.strip().splitlines()[-1]))
    if result.convert_seconds > CONVERT_SECONDS and not result.problem:
        return dataclasses.replace(result, problem=f"converts in {result.convert_seconds:.0f} s")
    return result


def version_of(program: Program) -> str:
    try:
        return importlib.metadata.version(program.package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--one"]:
        run_one(arguments[1])
        return 0
    chosen = [program for program in ALL if not arguments or arguments[0] in program.id]
    rows = []
    with ThreadPoolExecutor(int(os.environ.get("JOBS", "1"))) as pool:
        for program, result in zip(chosen, pool.map(run, chosen), strict=True):
            rows.append((program, version_of(program), result))
            print(f"{program.id}: {result.problem or 'holds'}", flush=True)
    if not arguments:
        PAGE.write_text(page(rows), encoding="utf-8")
    return 1 if any(result.problem for _, _, result in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

# SPDX-License-Identifier: Apache-2.0
"""The programs that are converted, and their traces: runs with the jaxport of one version."""

from __future__ import annotations

import functools
import itertools
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import test_models
from conformance import harness
from conformance.case import Case
from jaxport.trace import trace
from raising.all_rows import ROWS
from raising.near_misses import NEAR_MISSES
from replay.progress import progress
from support.cases import structs

# A function and its inputs, made when they are traced: some rows have large weights.
Program = Callable[[], tuple[Callable[..., Any], list[Any]]]


def programs(every: int) -> Iterator[tuple[str, Program]]:
    """The raising suite, the networks, and every n-th of JAX's own cases, each with its name."""
    for row in ROWS:
        yield row.id, functools.partial(_of_row, row)
    for near_miss in NEAR_MISSES:
        yield f"near miss | {near_miss.id}", functools.partial(_of_case, near_miss)
    for case in itertools.chain(*test_models.CASES, *test_models.RECURRENT):
        yield f"network | {case.id}", functools.partial(_of_case, case)
    for case in harness.cases()[::every]:
        yield f"conformance | {case.name}", functools.partial(_of_jax, case)


def _of_row(row: Any) -> tuple[Callable[..., Any], list[Any]]:
    if "keras" in sys.modules:  # which counts its layers; their numbers are names in the model
        sys.modules["keras"].backend.clear_session()
    return row.function(), structs(row.inputs)


def _of_case(case: Any) -> tuple[Callable[..., Any], list[Any]]:
    return case.fn, structs(case.inputs)


def _of_jax(case: Case) -> tuple[Callable[..., Any], list[Any]]:
    program = case.program()
    return program.fn, list(program.inputs)


@functools.cache
def _programs(every: int) -> list[tuple[str, Program]]:
    found = list(programs(every))
    assert len(dict(found)) == len(found), "two programs have one name"
    return found


def trace_to_file(folder: Path, every: int, index: int) -> tuple[str, str]:
    """Traces one program; its name and its file, which holds the error if there is one."""
    name, program = _programs(every)[index]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # libraries about each other
            suffix, text = "jir", trace(*program()).module.text()
    except Exception as error:  # a program that cannot be traced is a result too
        suffix, text = "error", str(error) or type(error).__name__
    file = f"{index:05}.{suffix}"
    (folder / file).write_text(text, encoding="utf-8")
    return name, file


def main(folder: Path, every: int, jobs: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    count = len(_programs(every))
    task = functools.partial(trace_to_file, folder, every)
    # JAX has threads, which do not survive a fork.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        index = dict(progress("traced", pool.map(task, range(count), chunksize=20), count))
    (folder / "index.json").write_text(json.dumps(index, indent=1))  # last: it says all are there


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))

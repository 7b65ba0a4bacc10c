# SPDX-License-Identifier: Apache-2.0
"""docs/ecosystem.md."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from ecosystem.measure import Result
from ecosystem.table import Program

PAGE = Path(__file__).resolve().parents[3] / "docs" / "ecosystem.md"

_HEAD = """# The ecosystem

Programs of packages from PyPI, exported as they are, run in ONNX Runtime and compared with
`jax.jit`: solvers, samplers, simulators, games, optimisers, networks with random weights.
`make ecosystem` installs the packages (`requirements/ecosystem.txt`) into an environment of their
own, runs the programs of each in a process of its own, and writes this page. What fails, gives
other numbers or takes too long is a row too. The programs are in `tests/python/ecosystem/`; those
of some small packages also run in `make test`.

{summary}

* *error* is the largest difference from `jax.jit`, as a part of the largest number of the same
  result. A program holds when it is within the tolerance for networks
  (`tests/python/support/tolerances.py`), integers and bools being equal. Adaptive methods may take
  other steps in f32: there a program holds when the model is at least as near to JAX in f64 as
  `jit` is.
* *convert* is the time of `to_onnx` in seconds, *jit* that of tracing and compiling the same
  program; JAX's caches are cleared in between.

| package | version | program | nodes | error | convert | jit |
|---|---|---|---:|---:|---:|---:|
"""


def page(rows: Sequence[tuple[Program, str, Result]]) -> str:
    """The whole page; a row is a program, the version of its package and what became of it."""
    lines = []
    for _, group in groupby(rows, key=lambda row: row[0].package):
        for index, (program, version, result) in enumerate(group):
            package = (program.package, version) if index == 0 else ("", "")
            lines.append(_line([*package, program.name], result))
    return _HEAD.format(summary=_summary(rows)) + "\n".join(lines) + "\n"


def _line(cells: list[str], result: Result) -> str:
    if result.problem:
        problem = result.problem.replace("|", "\\|")[:200]
        return f"| {' | '.join(cells)}: **{problem}** | {result.nodes or ''} | | | |"
    numbers = [
        str(result.nodes),
        f"{result.error:.0e}" if result.error else "0",
        f"{result.convert_seconds:.2f}",
        f"{result.compile_seconds:.2f}",
    ]
    return f"| {' | '.join([*cells, *numbers])} |"


def _summary(rows: Sequence[tuple[Program, str, Result]]) -> str:
    held = [result for _, _, result in rows if not result.problem]
    packages = {program.package for program, _, _ in rows}
    ratios = sorted(result.convert_seconds / result.compile_seconds for result in held)
    median = f"{ratios[len(ratios) // 2]:.2f}" if ratios else "unknown"
    return (
        f"**{len(held)} of {len(rows)} programs of {len(packages)} packages convert and give JAX's "
        f"numbers.** A conversion takes {median} of the time of jit's compilation (median)."
    )

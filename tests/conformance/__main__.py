# SPDX-License-Identifier: Apache-2.0
"""Runs JAX's own cases for its primitives through jaxport and ONNX Runtime.

    PYTHONPATH=tests python -m conformance              all cases; rewrites docs/coverage.md
    PYTHONPATH=tests python -m conformance --double     all with 64-bit types; their part of it
    PYTHONPATH=tests python -m conformance --every 11   a sample
    PYTHONPATH=tests python -m conformance 'sort_*'     cases by pattern, each with its outcome

Exit code 1: a control has another outcome than it must, or a case fails that known.toml does not
list.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "coverage.md"
FOLDER = ROOT / "build" / "conformance"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("patterns", nargs="*", help="run only cases whose names match")
    parser.add_argument("--every", type=int, default=1, help="run every n-th case only")
    parser.add_argument("--failed", action="store_true", help="run again what did not pass")
    parser.add_argument("--fresh", action="store_true", help="forget earlier outcomes")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--opset", type=int, default=23)
    parser.add_argument("--double", action="store_true", help="with 64-bit types")
    parser.add_argument("--limit", type=float, default=120, help="seconds for one case")
    parser.add_argument("--junit", type=Path, help="write a JUnit file")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ["JAX_ENABLE_X64"] = "1" if given.double else "0"  # read once, by every process

    from conformance import report
    from conformance.outcome import known_list

    outcomes = run(given)
    entries = known_list(given.opset)
    unexpected = report.surprises(outcomes, entries)
    print(report.tally(outcomes))
    show("listed in known.toml, but better than that", report.cured(outcomes, entries))
    show("not listed in known.toml", [f"{o.name}: {o.kind} {o.detail}" for o in unexpected])
    if given.junit:
        report.write_junit(given.junit, outcomes, entries)
    if not given.patterns and given.every == 1:
        write_page(given, outcomes, entries)
    return 1 if unexpected or not controls_hold(given.opset) else 0


def write_page(given: argparse.Namespace, outcomes: list, entries: list) -> None:
    """Replaces the part of docs/coverage.md that this run is about."""
    from conformance import report

    single, title, double = PAGE.read_text().partition(report.DOUBLE_TITLE)
    if given.double:
        title, double = report.DOUBLE_TITLE, report.double_part(outcomes, entries)
    else:
        single = report.coverage_page(outcomes, entries, given.opset)
    PAGE.write_text(single.rstrip() + "\n" + (f"\n{title}{double}" if title else ""))


def run(given: argparse.Namespace) -> list:
    """The outcomes of the cases that were asked for, new or remembered, sorted by name."""
    from conformance import harness, pool
    from conformance.results import Results

    chosen = [
        case
        for case in harness.cases()[:: given.every]
        if not given.patterns or any(fnmatch.fnmatch(case.name, p) for p in given.patterns)
    ]
    suffix = "-double" if given.double else ""
    results = Results(FOLDER / f"opset{given.opset}{suffix}.jsonl", given.fresh)
    known = results.by_name
    todo = [
        pool.Task(case.name, case.group, case.dtype, given.limit)
        for case in chosen
        if case.name not in known or (given.failed and known[case.name].kind != "pass")
    ]
    for count, outcome in enumerate(pool.run_all(todo, given.jobs, given.opset), 1):
        results.add(outcome)
        if count % 100 == 0 or count == len(todo):
            print(f"{count} of {len(todo)}", flush=True)
    return [results.by_name[case.name] for case in chosen]


def controls_hold(opset: int) -> bool:
    from conformance import pool
    from conformance.controls import CONTROLS

    wanted = {control.case.name: control.outcome for control in CONTROLS}
    tasks = [pool.Task(c.case.name, c.case.group, c.case.dtype, c.seconds or 120) for c in CONTROLS]
    hold = True
    for outcome in pool.run_all(tasks, 1, opset):
        if outcome.kind != wanted[outcome.name]:
            hold = False
            print(f"control: {outcome.name} gives {outcome.kind}, not {wanted[outcome.name]}")
    return hold


def show(title: str, lines: Sequence[str]) -> None:
    if lines:
        print(f"\n{title}: {len(lines)}")
    for line in lines[:50]:
        print(f"  {line}")
    if len(lines) > 50:
        print("  …")


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Runs cases of others through jaxport and ONNX Runtime: JAX's own, and those of jax2onnx.

    PYTHONPATH=tests python -m conformance                     all of JAX; rewrites docs/coverage.md
    PYTHONPATH=tests python -m conformance --source jax2onnx   all of jax2onnx; docs/drop-in.md
    PYTHONPATH=tests python -m conformance --source jax2onnx --sizes  of its own models
    PYTHONPATH=tests python -m conformance --source jax2onnx --count  of ours, which are not run
    PYTHONPATH=tests python -m conformance --source jax2onnx --witness  why ours are larger
    PYTHONPATH=tests python -m conformance --source transforms functions under vmap, grad, …
    PYTHONPATH=tests python -m conformance --double            with 64-bit types; their part of it
    PYTHONPATH=tests python -m conformance --every 11          a sample
    PYTHONPATH=tests python -m conformance 'sort_*'            cases by pattern, with outcomes

Exit code 1: a control has another outcome than it must, a case fails that the list of the source
does not expect, or a model is larger than jax2onnx's and nobody looked at it.
"""

from __future__ import annotations

import argparse
import fnmatch
import functools
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import quick_xla

if TYPE_CHECKING:
    from conformance.case import Case
    from conformance.outcome import Outcome
    from conformance.pool import Start
    from conformance.results import Results

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "build" / "conformance"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("patterns", nargs="*", help="run only cases whose names match")
    parser.add_argument("--source", choices=("jax", "jax2onnx", "transforms"), default="jax")
    parser.add_argument("--every", type=int, default=1, help="run every n-th case only")
    parser.add_argument("--failed", action="store_true", help="run again what did not pass")
    parser.add_argument("--fresh", action="store_true", help="forget earlier outcomes")
    parser.add_argument("--remembered", action="store_true", help="run nothing, report only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--opset", type=int, default=23)
    parser.add_argument("--double", action="store_true", help="with 64-bit types")
    parser.add_argument("--sizes", action="store_true", help="rewrite jax2onnx_sizes.txt only")
    parser.add_argument("--count", action="store_true", help="rewrite jaxport_nodes.txt only")
    parser.add_argument("--witness", action="store_true", help="rewrite larger_evidence.txt only")
    parser.add_argument("--limit", type=float, default=120, help="seconds for one case")
    parser.add_argument("--junit", type=Path, help="write a JUnit file")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    # Read once, by every process. jax2onnx's cases switch the types themselves.
    os.environ["JAX_ENABLE_X64"] = "1" if given.double and given.source == "jax" else "0"

    # Layers draw their weights by many small programs. JAX's own cases are judged by last digits.
    if given.source != "jax":
        os.environ.setdefault("XLA_FLAGS", quick_xla.FLAGS)
    if given.sizes:
        return make_sizes(given)
    if given.count:
        return count_nodes(given)
    if given.witness:
        return show_evidence(given)

    from conformance import drop_in, evidence, larger, report, sizes
    from conformance.outcome import known_list
    from conformance.source import SOURCES

    chosen = chosen_cases(given)
    outcomes = run(given, chosen)
    entries = known_list(given.opset, SOURCES[given.source].known)
    unexpected = report.surprises(outcomes, entries)
    print(report.tally(outcomes))
    show("listed as not holding, but better than that", report.cured(outcomes, entries))
    show("not listed", [f"{o.name}: {o.kind} {o.detail}" for o in unexpected])
    complaints: list[str] = []
    is_whole = not given.patterns and given.every == 1
    if given.source == "jax2onnx":
        found = sizes.of_installed(given.opset)
        comparison = drop_in.Comparison(outcomes, found, larger.read(), evidence.read())
        show("nodes beside jax2onnx's", comparison.summary())
        complaints = comparison.complaints(sizes.our_nodes())
        show("larger models", complaints)
    if given.junit:
        report.write_junit(given.junit, outcomes, entries)
    if is_whole:
        if given.source == "jax":
            parts = report.coverage_page, report.double_part
        elif given.source == "transforms":
            from conformance import transforms_page

            parts = transforms_page.page, report.double_part
        else:
            parts = comparison.page, comparison.double_part
            ours = {o.name: o.facts["nodes"] for o in outcomes if "nodes" in o.facts}
            sizes.write_our_nodes(ours, given.opset)
        write_page(SOURCES[given.source].page, given, outcomes, entries, *parts)
    return 1 if unexpected or complaints or not controls_hold(given) else 0


def write_page(
    path: Path,
    given: argparse.Namespace,
    outcomes: list[Outcome],
    entries: list,
    page: Callable[..., str],
    double_part: Callable[..., str],
) -> None:
    """Replaces the part of a page that this run is about."""
    from conformance.report import DOUBLE_TITLE

    text = path.read_text() if path.exists() else ""
    single, title, double = text.partition(DOUBLE_TITLE)
    if given.double:
        title, double = DOUBLE_TITLE, double_part(outcomes, entries)
    else:
        single = page(outcomes, entries, given.opset)
    path.write_text(single.rstrip() + "\n" + (f"\n{title}{double}" if title else ""))


def chosen_cases(given: argparse.Namespace) -> list[Case]:
    from conformance import source

    cases = source.cases(given.source)
    if given.source == "jax2onnx":
        cases = [case for case in cases if case.is_double_variant == given.double]
    return matching(given, cases)


def matching(given: argparse.Namespace, cases: Sequence[Case]) -> list[Case]:
    return [
        case
        for case in cases[:: given.every]
        if not given.patterns or any(fnmatch.fnmatch(case.name, p) for p in given.patterns)
    ]


def run(given: argparse.Namespace, chosen: Sequence[Case]) -> list[Outcome]:
    """The outcomes of these cases, new or remembered, in order."""
    from conformance import check
    from conformance.results import Results, of_jaxport
    from conformance.source import SOURCES

    suffix = "-double" if given.double else ""
    file = f"{SOURCES[given.source].prefix}opset{given.opset}{suffix}.jsonl"
    results = Results(FOLDER / file, given.fresh, of_jaxport())
    again = [o.name for o in results.by_name.values() if given.failed and o.kind != "pass"]
    start = functools.partial(check.start, given.source, given.opset)
    if not given.remembered:
        gather(given, chosen, results, start, again)
    return [results.by_name[case.name] for case in chosen if case.name in results.by_name]


def make_sizes(given: argparse.Namespace) -> int:
    """Makes jax2onnx's own models of all its cases, and writes how many nodes they have."""
    from conformance import jax2onnx_cases, jax2onnx_export, sizes
    from conformance.results import Results, fingerprint

    code = [Path(jax2onnx_export.__file__), Path(jax2onnx_cases.__file__)]
    mark = fingerprint(code, ("equinox", "flax", "jax2onnx"))
    results = Results(FOLDER / f"jax2onnx-models-opset{given.opset}.jsonl", given.fresh, mark)
    cases = jax2onnx_cases.described_cases()
    gather(given, cases, results, functools.partial(jax2onnx_export.start, given.opset))
    made = (results.by_name[case.name] for case in cases)
    sizes.write(((o.name, o.facts.get("ops")) for o in made), given.opset)
    return 0


def count_nodes(given: argparse.Namespace) -> int:
    """Converts all cases, those with 64-bit types too, and writes how many nodes they have."""
    from conformance import counting, sizes, source
    from conformance.results import Results, of_jaxport

    cases = matching(given, source.cases("jax2onnx"))
    results = Results(FOLDER / f"nodes-opset{given.opset}.jsonl", given.fresh, of_jaxport())
    gather(given, cases, results, functools.partial(counting.start, given.opset))
    made = (results.by_name[case.name] for case in cases)
    nodes = {o.name: o.facts["nodes"] for o in made if "nodes" in o.facts}
    sizes.write_our_nodes(nodes, given.opset)
    return 0


def show_evidence(given: argparse.Namespace) -> int:
    """Looks for what speaks for each model that is larger than jax2onnx's, and writes it."""
    from conformance import evidence, hostile, jax2onnx_export, sizes, source, witness
    from conformance.results import Results, fingerprint, of_jaxport

    theirs, ours = sizes.read(), sizes.our_nodes()
    pairs = ((name, count, theirs.nodes(name)) for name, count in ours.items())
    larger = {name: (n, their) for name, n, their in pairs if their is not None and n > their}
    cases = matching(given, [c for c in source.cases("jax2onnx") if c.name in larger])
    before = evidence.read()

    folder = FOLDER / f"jax2onnx-models-opset{given.opset}"
    folder.mkdir(parents=True, exist_ok=True)
    path_of = functools.partial(witness.model_path, folder)
    models = Results(folder.with_suffix(".jsonl"), given.fresh, evidence.installed())
    gather(given, cases, models, functools.partial(jax2onnx_export.start, given.opset, path_of))

    mark = of_jaxport() + fingerprint([Path(witness.__file__), Path(hostile.__file__)])
    results = Results(FOLDER / f"evidence-opset{given.opset}.jsonl", given.fresh, mark)
    changes = {name: found.change for name, found in before.by_case.items()}
    gather(given, cases, results, functools.partial(witness.start, given.opset, path_of, changes))

    outcomes = [results.by_name[case.name] for case in cases]
    kept = {name: found for name, found in before.by_case.items() if name in larger}
    found = {o.name: evidence.of_outcome(o, larger[o.name]) for o in outcomes}
    evidence.write({**kept, **found}, evidence.installed())
    print(*(f"{count} {kind}" for kind, count in evidence.counted(found.values())), sep=", ")
    # At some inputs a loop never ends, in JAX either.
    bad = (o for o in outcomes if not o.facts and o.kind != "timeout")
    failed = [f"{o.name}: {o.kind} {o.detail}" for o in bad]
    lost = [
        f"{name}: {kept[name].kind} at {kept[name].change}"
        for name, new in found.items()
        if new.kind == evidence.NONE and name in kept and kept[name].kind != evidence.NONE
    ]
    show("not judged", failed)
    show("no longer shown", lost)
    return 1 if failed or lost else 0


def gather(
    given: argparse.Namespace,
    chosen: Sequence[Case],
    results: Results,
    start: Start,
    again: Sequence[str] = (),
) -> None:
    """Runs what is not remembered, and what is to run again."""
    from conformance import pool

    todo = [
        pool.Task(case.name, case.group, case.dtype, given.limit)
        for case in chosen
        if case.name not in results.by_name or case.name in again
    ]
    for count, outcome in enumerate(pool.run_all(todo, given.jobs, start), 1):
        results.add(outcome)
        if count % 100 == 0 or count == len(todo):
            print(f"{count} of {len(todo)}", flush=True)


def controls_hold(given: argparse.Namespace) -> bool:
    from conformance import check, pool
    from conformance.controls import CONTROLS

    if given.source != "jax":  # the judge is the same
        return True
    wanted = {control.case.name: control.outcome for control in CONTROLS}
    tasks = [pool.Task(c.case.name, c.case.group, c.case.dtype, c.seconds or 120) for c in CONTROLS]
    hold = True
    for outcome in pool.run_all(tasks, 1, functools.partial(check.start, "jax", given.opset)):
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

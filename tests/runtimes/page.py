# SPDX-License-Identifier: Apache-2.0
"""docs/runtimes.md."""

from __future__ import annotations

import collections
from collections.abc import Iterable

from runtimes.causes import CAUSES, Cause, Outcome, cause_of
from runtimes.places import Place

Outcomes = dict[str, dict[str, Outcome]]  # program, key of a place -> outcome
FINE = ("ok", "loads")

INTRODUCTION = """\
# Runtimes

Written by `make runtimes`: {} programs (JAX's own cases with 64-bit types, networks, control flow,
symbolic sizes), converted for each runtime with the target and the opset in the table (23 or the
newest that is older, and for ONNX Runtime the newest of all; 18 for tract), run there, and compared
with JAX at the tolerances of the tests.
"""
NOTES = """\
*Load*: the runtime took the model. *Agree*: its results are JAX's. ONNX Runtime Web, tract and the
Python package of ONNX Runtime 1.17 have no way to feed bfloat16 and floats of 8 bits: there such
inputs and outputs of these models are f32, with a Cast. OpenVINO computes f64 in f32 and integers
of 64 bits in 32 (its precision hint is f32 here); results are compared at the tolerances of f32.
WebGPU runs in SwiftShader, which computes on the CPU; nodes that have no kernel there run in
WebAssembly.
"""


def failures(outcomes: Outcomes, key: str) -> list[tuple[str, Outcome]]:
    return [
        (program, of[key])
        for program, of in outcomes.items()
        if key in of and of[key][0] not in FINE
    ]


def surprises(outcomes: Outcomes, places: Iterable[Place]) -> list[str]:
    """What no cause explains."""
    return [
        f"{place.key}: {program}: {outcome[0]} {outcome[1]}"[:600]
        for place in places
        for program, outcome in failures(outcomes, place.key)
        if cause_of(place.key, program, outcome) is None
    ]


def unused(outcomes: Outcomes, places: Iterable[Place]) -> list[str]:
    """Causes of these places that explain nothing any more."""
    keys = [place.key for place in places]
    used = {
        cause_of(key, program, outcome)
        for key in keys
        for program, outcome in failures(outcomes, key)
    }
    return [
        f"nothing is explained by: {cause.why}"
        for cause in CAUSES
        if cause not in used and any(key.startswith(cause.place) for key in keys)
    ]


def share(part: int, whole: int) -> str:
    return f"{part} ({100 * part / whole:.1f} %)" if whole else "-"


def summary(outcomes: Outcomes, places: Iterable[Place]) -> list[str]:
    lines = ["| runtime | target | models | load | agree |", "|---|---|---:|---:|---:|"]
    for place in places:
        kinds = collections.Counter(of[place.key][0] for of in outcomes.values() if place.key in of)
        total = sum(kinds.values())
        loaded = total - kinds["not loadable"] - kinds["refused"]
        target = f'`"{place.target}"`, {place.opset}'
        lines.append(
            f"| {place.title} | {target} | {total} | {share(loaded, total)} "
            f"| {share(kinds['ok'], total)} |"
        )
    return lines


def exceptions(outcomes: Outcomes, places: Iterable[Place]) -> list[str]:
    lines = ["| runtime | models | | why | fault of | for example |", "|---|---:|---|---|---|---|"]
    for place in places:
        of_cause: dict[tuple[Cause | None, str], list[str]] = {}
        for program, outcome in failures(outcomes, place.key):
            cause = cause_of(place.key, program, outcome)
            of_cause.setdefault((cause, outcome[0]), []).append(program)
        for (cause, kind), programs in of_cause.items():
            why, fault = (cause.why, cause.fault) if cause else ("not explained", "?")
            example = programs[0][:70].replace("|", "\\|")
            title = f"{place.title}, opset {place.opset}"
            row = [title, str(len(programs)), kind, why, fault, example]
            lines.append(f"| {' | '.join(row)} |")
    return lines if len(lines) > 2 else []


def page(outcomes: Outcomes, places: list[Place]) -> str:
    parts = [
        INTRODUCTION.format(len(outcomes)),
        "\n".join(summary(outcomes, places)) + "\n",
        NOTES,
        "## What does not, and whose fault it is\n",
        "\n".join(exceptions(outcomes, places)) + "\n",
    ]
    return "\n".join(parts)

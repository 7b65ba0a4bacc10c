# SPDX-License-Identifier: Apache-2.0
"""Runs a fixed set of models on many versions of ONNX Runtime and compares them with JAX.

    PYTHONPATH=tests:tests/python:tools python -m runtimes              450 models; docs/runtimes.md
    PYTHONPATH=tests:tests/python:tools python -m runtimes --models 60  a sample; nothing is written

Exit code 1: a model does not load or does not agree where KNOWN does not say so.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import subprocess
import sys
from pathlib import Path

from runtime_versions import FOLDER, RELEASES, ROOT

PAGE = ROOT / "docs" / "runtimes.md"
VERSIONS = ("1.17", "1.20", "1.23", "1.25", "1.28", "1.30", "1.31")
LONG = 450
# The kinds of programs with JAX_ENABLE_X64: JAX's own cases, and our networks and control flow.
KINDS = ("1", "0")

# Part of the name of a program, versions, and why it is so.
KNOWN = [
    (
        "symbolic features [LayerNormalization]",
        ("1.23",),
        "1.21 to 1.23 refuse a LayerNormalization over one element, which a symbolic size may be",
    ),
]

Outcomes = dict[str, dict[str, tuple[str, str]]]  # program, version -> kind, detail


def outcomes_of(kind: str, count: int, versions: list[str]) -> Outcomes:
    folder = FOLDER / f"models-{kind}"
    command = [sys.executable, "-m", "runtimes.run", str(folder), str(count), "onnxruntime"]
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": kind}
    run = subprocess.run([*command, *versions], env=env, stdout=subprocess.PIPE, check=True)
    answer: Outcomes = json.loads(run.stdout)
    return answer


def reason(program: str, version: str) -> str | None:
    for part, versions, why in KNOWN:
        if part in program and version in versions:
            return why
    return None


def cell(text: str) -> str:
    """The beginning of a text, fit for a table."""
    return " ".join(text.split())[:120].replace("|", "\\|")


def page(outcomes: Outcomes, versions: list[str]) -> str:
    """docs/runtimes.md."""
    lines = [
        "# Runtimes",
        "",
        f"Written by `make runtimes`: {len(outcomes)} programs (JAX's own cases with 64-bit types,",
        'networks, control flow, symbolic sizes), converted with `target="onnxruntime"` for the',
        "newest opset up to 23 that a version loads, run in ONNX Runtime on the CPU, and compared",
        "with JAX at the tolerances of the tests.",
        "",
        "| ONNX Runtime | models | load | agree | not compared |",
        "|---|---:|---:|---:|---:|",
    ]
    for version in versions:
        kinds = collections.Counter(of[version][0] for of in outcomes.values())
        total = sum(kinds.values())
        loaded = total - kinds["not loadable"]
        lines.append(
            f"| {RELEASES[version]} | {total} | {loaded} | {kinds['ok']} | {kinds['loads']} |"
        )
    lines += [
        "",
        "Not compared: the Python package of 1.17 has no way to feed bfloat16 and 8-bit floats.",
        "These models were loaded only.",
        "",
    ]
    rows = [
        f"| {RELEASES[version]} | {cell(name)} | {kind} | {reason(name, version) or cell(detail)} |"
        for name, of in outcomes.items()
        for version, (kind, detail) in of.items()
        if kind not in ("ok", "loads")
    ]
    if rows:
        lines += ["| ONNX Runtime | program | | why |", "|---|---|---|---|", *rows, ""]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="runtimes", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--models", type=int, default=LONG)
    parser.add_argument("--versions", nargs="+", default=list(VERSIONS), choices=list(RELEASES))
    given = parser.parse_args()
    outcomes: Outcomes = {}
    for kind in KINDS:
        outcomes |= outcomes_of(kind, given.models // len(KINDS), given.versions)
    surprises = [
        f"{version} {name}: {kind} {detail}"
        for name, of in outcomes.items()
        for version, (kind, detail) in of.items()
        if kind not in ("ok", "loads") and reason(name, version) is None
    ]
    text = page(outcomes, given.versions)
    print(text, *surprises, sep="\n")
    if given.models >= LONG and given.versions == list(VERSIONS):
        Path(PAGE).write_text(text)
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())

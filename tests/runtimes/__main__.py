# SPDX-License-Identifier: Apache-2.0
"""Runs a fixed set of models on many runtimes and versions, and compares them with JAX.

    PYTHONPATH=tests:tests/python:tools python -m runtimes              450 models; docs/runtimes.md
    PYTHONPATH=tests:tests/python:tools python -m runtimes --models 60  a sample; nothing is written

With --places some places are run again; the page has the last run of the others.
Exit code 1: a model does not load or does not agree, and causes.py does not say why.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from runtime_versions import FOLDER, ROOT

from runtimes.page import Outcomes, page, surprises, unused
from runtimes.places import places

PAGE = ROOT / "docs" / "runtimes.md"
LONG = 450
# The kinds of programs with JAX_ENABLE_X64: JAX's own cases, and our networks and control flow.
KINDS = ("1", "0")


def folder_of(kind: str, count: int) -> Path:
    return FOLDER / (f"models-{kind}" if count >= LONG else f"sample-{kind}")


def run(count: int, keys: list[str]) -> None:
    for kind in KINDS:
        folder = folder_of(kind, count)
        command = [sys.executable, "-m", "runtimes.run", str(folder), str(count // len(KINDS))]
        env = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": kind}
        subprocess.run([*command, *keys], env=env, check=True)


def known_outcomes(count: int, keys: Iterable[str]) -> Outcomes:
    """Those of the last run of each place."""
    outcomes: Outcomes = {}
    for kind, key in itertools.product(KINDS, keys):
        path = folder_of(kind, count) / f"{key}.json"
        answer = json.loads(path.read_text()) if path.exists() else {}
        for program, outcome in answer.items():
            outcomes.setdefault(program, {})[key] = outcome
    return outcomes


def main() -> int:
    known = places()
    parser = argparse.ArgumentParser(prog="runtimes", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--models", type=int, default=LONG)
    parser.add_argument("--places", nargs="+", default=list(known), choices=list(known))
    given = parser.parse_args()
    run(given.models, given.places)
    is_whole = given.models >= LONG
    outcomes = known_outcomes(given.models, known if is_whole else given.places)
    wanted = [place for key, place in known.items() if any(key in of for of in outcomes.values())]
    text = page(outcomes, wanted)
    print(text)
    wrong = surprises(outcomes, wanted)
    if is_whole:
        wrong += unused(outcomes, wanted)
        PAGE.write_text(text)
    print(*wrong, sep="\n", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

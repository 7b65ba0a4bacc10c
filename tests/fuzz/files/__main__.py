# SPDX-License-Identifier: Apache-2.0
"""Runs every command on damaged .jir and .onnx files.

    PYTHONPATH=tests python -m fuzz.files --minutes 10 --seed 7

A signal, JXP-BUG, another exit code than 0, 1 and 2, ten seconds of a processor: such a file is
written to build/fuzz/files/. Exit code 1: there is one.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from fuzz.files.run import ROOT, search


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--files", type=int, default=10**9, help="stop after as many files")
    parser.add_argument("--minutes", type=float, default=10, help="stop after this time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "fuzz" / "files")
    given = parser.parse_args()
    start = time.monotonic()
    tally = search(given.seed, given.files, given.minutes * 60, given.folder)
    print(tally.text(time.monotonic() - start))
    return 1 if tally.finds else 0


if __name__ == "__main__":
    sys.exit(main())

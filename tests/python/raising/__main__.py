# SPDX-License-Identifier: Apache-2.0
"""Measures every row and rewrites the tables of docs/raising.md: `make raising-table`."""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from raising.all_rows import ROWS, measure_at
from raising.expected import NOT_YET
from raising.page import PAGE, with_tables


def main() -> int:
    # JAX has threads, which do not survive a fork.
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        results = list(pool.map(measure_at, range(len(ROWS)), chunksize=20))
    held = {
        row.id: not row.complaints(measured) for row, measured in zip(ROWS, results, strict=True)
    }
    wrong = [name for name, holds in held.items() if holds == (name in NOT_YET)]
    for name in wrong:
        action = "take it out of" if held[name] else "add it to"
        print(f"{name}: {action} raising/expected.py")
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), ROWS, results), encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

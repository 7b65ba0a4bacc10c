# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/raising.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from raising.expected import NOT_YET
from raising.near_misses import NEAR_MISSES
from raising.table import Measured, Row

PAGE = Path(__file__).resolve().parents[3] / "docs" / "raising.md"
MARK = "<!-- What follows is written by `make raising-table`. -->\n"
TITLES = {
    "attention": "Attention",
    "rotary": "Rotary embeddings",
    "norm": "Normalisation",
    "activation": "Activations",
    "idiom": "Idioms",
    "model": "Networks",
    "layout": "Layout-hard graphs",
}


def with_tables(page: str, rows: Sequence[Row], results: Sequence[Measured]) -> str:
    """The page with new tables below the mark."""
    head, _, _ = page.partition(MARK)
    parts = [head + MARK, tally(rows)]
    for group, pairs in groupby(zip(rows, results, strict=True), key=lambda pair: pair[0].group):
        parts.append(_table(TITLES[group], pairs))
    return "\n".join(parts)


def tally(rows: Sequence[Row]) -> str:
    """How many rows of each group hold, and how many near misses there are."""
    groups = [(group, list(members)) for group, members in groupby(rows, key=lambda r: r.group)]
    lines = ["| group | rows | hold |", "|---|---|---|"]
    for group, members in groups:
        lines.append(f"| {TITLES[group]} | {len(members)} | {_held(members)} |")
    share = f"{_held(rows)} ({100 * _held(rows) / len(rows):.1f} %)"
    lines.append(f"| all | {len(rows)} | {share} |")
    lines.append(f"| near misses | {len(NEAR_MISSES)} | no rule fires on one |")
    return "\n".join(["## Results", "", *lines, ""])


def names_in(page: str) -> list[str]:
    """The names of the rows that the tables list."""
    tables = page.partition(MARK)[2]
    cells = [line.split(" | ") for line in tables.splitlines() if line.startswith("| `")]
    return [cell[0].removeprefix("| ").strip("`") for cell in cells]


def name_of(row: Row) -> str:
    """The id of a row without the sign that ends a cell of a table."""
    return row.id.replace(" | ", " / ").replace("|", " or ")


def _held(rows: Iterable[Row]) -> int:
    return sum(row.id not in NOT_YET for row in rows)


def _table(title: str, pairs: Iterable[tuple[Row, Measured]]) -> str:
    lines = [f"### {title}", "", "| spelling | becomes | moves data | error |", "|---|---|---|---|"]
    lines += [_line(row, measured) for row, measured in pairs]
    return "\n".join([*lines, ""])


def _line(row: Row, measured: Measured) -> str:
    ops = [op for names in row.ops for op in names.split("|") if measured.ops.get(op)]
    becomes = ", ".join(_counted(op, measured.ops[op]) for op in ops) or f"{measured.nodes} nodes"
    if row.id in NOT_YET:
        becomes += f"; not yet: {NOT_YET[row.id]}"
    return f"| `{name_of(row)}` | {becomes} | {row.moves_in(measured)} | {measured.error:.0e} |"


def _counted(op: str, count: int) -> str:
    return op if count == 1 else f"{count} {op}"

# SPDX-License-Identifier: Apache-2.0
"""Every spelling becomes its op, every network has few nodes; the tables say what a row wants."""

from __future__ import annotations

import pytest

from raising import page
from raising.all_rows import ROWS
from raising.expected import NOT_YET
from raising.libraries import HAS_EQUIMO, HAS_HAIKU, HAS_KERAS
from raising.table import measure
from support.cases import assert_quiet

IDS = [row.id for row in ROWS]


# Libraries use deprecated parts of each other.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_spelling_becomes_its_op(row, capfd):
    measured = measure(row)
    assert_quiet(capfd)
    complaints = row.complaints(measured)
    if row.id in NOT_YET:
        assert complaints, "it holds: take it out of raising/expected.py"
        pytest.xfail(NOT_YET[row.id])
    assert not complaints, complaints


def test_names_are_unique():
    assert len(set(IDS)) == len(IDS)


def test_expected_failures_are_rows():
    libraries = {row.library for row in ROWS}
    known = {name for name in NOT_YET if name.split(" | ")[1] in libraries}
    assert known <= set(IDS)


@pytest.mark.skipif(not (HAS_EQUIMO and HAS_HAIKU and HAS_KERAS), reason="a library is missing")
def test_the_page_lists_these_rows():
    names = page.names_in(page.PAGE.read_text(encoding="utf-8"))
    assert names == [page.name_of(row) for row in ROWS], "run `make raising-table`"

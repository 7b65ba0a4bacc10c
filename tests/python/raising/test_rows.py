# SPDX-License-Identifier: Apache-2.0
"""Every spelling becomes its op, every network has few nodes; the tables say what a row wants."""

from __future__ import annotations

import pytest

from raising.all_rows import MODELS, SPELLINGS
from raising.expected import NOT_YET
from raising.table import measure
from support.cases import assert_quiet

ROWS = [*SPELLINGS, *MODELS]
IDS = [row.id for row in ROWS]


# Libraries use deprecated parts of each other.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_row(row, capfd):
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

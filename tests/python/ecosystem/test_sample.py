# SPDX-License-Identifier: Apache-2.0
"""Programs of small packages, where these are installed: `make ecosystem` runs all."""

from __future__ import annotations

import pytest

from ecosystem.all_programs import ALL
from ecosystem.measure import measure

SAMPLE = [program for program in ALL if program.in_sample]


# Warnings of other libraries are theirs.
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("program", SAMPLE, ids=[program.id for program in SAMPLE])
def test_a_program_has_no_problem(program):
    pytest.importorskip(program.module, reason="the oldest environment has no such package")
    assert measure(program).problem == ""


def test_programs_have_names_of_their_own():
    ids = [program.id for program in ALL]
    assert len(set(ids)) == len(ids)

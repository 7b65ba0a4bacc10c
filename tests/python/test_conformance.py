# SPDX-License-Identifier: Apache-2.0
"""The parts of tests/conformance that decide and remember; its controls test the rest."""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from conformance import report
from conformance.outcome import Known, Outcome, explanation, known_list
from conformance.results import Results, fingerprint
from conformance.tolerances import DEFAULT, WIDER, difference

FAILED = Outcome("sort_stable", "sort", "float32", "error E013", "more than one key")
PASSED = Outcome("sort_plain", "sort", "int32", "pass")


@pytest.mark.parametrize(
    ("want", "have", "found"),
    [
        (np.float32([1, 2]), np.float32([1, 2]), None),
        (np.float32([np.nan, np.inf]), np.float32([np.nan, np.inf]), None),
        (np.float32([1, 2]), np.float64([1, 2]), "dtype float64, JAX has float32"),
        (np.float32([1, 2]), np.float32([[1, 2]]), "shape (1, 2), JAX has (2,)"),
        (np.float32([1, np.nan]), np.float32([1, 2]), "[1]: 2.0, JAX has nan"),
        (np.float32([1, np.inf]), np.float32([1, 3e38]), "JAX has inf"),
        (np.int32([7, 8]), np.int32([7, 9]), "[1]: 9, JAX has 8"),
        (np.zeros(0, np.int8), np.zeros(0, np.int8), None),
    ],
)
def test_a_difference_is_found_and_described(
    want: np.ndarray, have: np.ndarray, found: str | None
) -> None:
    said = difference(want, have, "add")
    assert (said is None) if found is None else (said is not None and found in said)


def test_difference_counts_units_in_the_last_place() -> None:
    one = np.float32([1])
    unit = float(jnp.finfo(jnp.float32).eps)
    assert difference(one, one + np.float32(DEFAULT["float32"] * unit), "add") is None
    assert difference(one, one + np.float32((DEFAULT["float32"] + 1) * unit), "add") is not None


def test_wider_tolerances_have_reasons_and_are_wider() -> None:
    for entry in WIDER:
        assert entry.reason
        for dtype, ulps in entry.ulps.items():
            assert ulps > DEFAULT[dtype] or entry.at_largest, (entry.groups, dtype)


def test_an_entry_explains_its_outcome_only() -> None:
    entry = Known("ties", "error E013", group="sort", cases="*_stable", dtypes=("float32",))
    assert explanation(FAILED, [entry]) == entry
    assert explanation(PASSED, [entry]) is None
    other = Outcome("sort_stable", "sort", "float32", "wrong value")
    assert explanation(other, [entry]) is None
    assert report.surprises([FAILED, PASSED, other], [entry]) == [other]


def test_a_listed_case_that_passes_is_reported() -> None:
    entry = Known("ties", "error E013", group="sort")
    (line,) = report.cured([FAILED, PASSED], [entry])
    assert "1 of 2 cases pass, such as sort_plain" in line
    assert report.cured([FAILED], [entry]) == []


def test_the_list_has_reasons_and_no_broken_models() -> None:
    for entry in known_list(17):
        assert entry.reason
        assert entry.outcome == "wrong value" or entry.outcome.startswith("error E"), entry


def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.jsonl"
    Results(path, fresh=True).add(FAILED)
    with path.open("a") as file:
        file.write(PASSED.to_json()[:20])  # the process died while it wrote
    assert Results(path, fresh=False).by_name == {FAILED.name: FAILED}
    assert Results(path, fresh=True).by_name == {}


def test_outcomes_of_another_build_are_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.jsonl"
    Results(path, fresh=True).add(FAILED)
    first, *rest = path.read_text().splitlines()
    path.write_text("\n".join([first.replace("fingerprint", "mark"), *rest]))
    assert Results(path, fresh=False).by_name == {}


def test_every_module_of_the_package_is_in_the_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    read_bytes = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda p: (read.append(p.name), read_bytes(p))[1])
    fingerprint()
    assert {"api.py", "complex_numbers.py", "tolerances.py"} <= set(read)


def test_the_page_counts_and_explains() -> None:
    page = report.coverage_page([FAILED, PASSED], [Known("ties", "error E013")], 23)
    assert "| group | int32 | float32 |" in page
    assert "| sort | 1 | **0/1** |" in page
    assert "| sort | 1 | float32 | error E013 | ties |" in page

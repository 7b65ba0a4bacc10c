# SPDX-License-Identifier: Apache-2.0
"""The parts of tests/conformance that decide and remember; its controls test the rest."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import MappingProxyType

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend.core import Primitive

from conformance import drop_in, jax2onnx_cases, report, sizes
from conformance.outcome import Known, Outcome, explanation, known_list
from conformance.results import Results, of_jaxport
from conformance.source import SOURCES
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
    for entry in itertools.chain(*(known_list(17, source.known) for source in SOURCES.values())):
        assert entry.reason
        is_described = entry.outcome in ("wrong value", "refused by jax", "unlike the case")
        assert is_described or entry.outcome.startswith("error E"), entry


def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.jsonl"
    Results(path, True, "mark").add(FAILED)
    with path.open("a") as file:
        file.write(PASSED.to_json()[:20])  # the process died while it wrote
    assert Results(path, False, "mark").by_name == {FAILED.name: FAILED}
    assert Results(path, True, "mark").by_name == {}


def test_outcomes_of_another_build_are_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.jsonl"
    Results(path, True, "mark").add(FAILED)
    assert Results(path, False, "mark").by_name == {FAILED.name: FAILED}
    assert Results(path, False, "another mark").by_name == {}


def test_every_module_of_the_package_is_in_the_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    read_bytes = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda p: (read.append(p.name), read_bytes(p))[1])
    of_jaxport()
    deciding = {"tolerances.py", "transforms.py", "jax_numpy.py"}
    assert {"api.py", "complex_numbers.py"} | deciding <= set(read)


def test_the_page_counts_and_explains() -> None:
    page = report.coverage_page([FAILED, PASSED], [Known("ties", "error E013")], 23)
    assert "| group | int32 | float32 |" in page
    assert "| sort | 1 | **0/1** |" in page
    assert "| sort | 1 | float32 | error E013 | ties |" in page


def sized(name: str, **ops: int) -> Outcome:
    facts = {"nodes": sum(ops.values()), "ops": ops, "graph": None}
    return Outcome(name, "primitives.lax", "float32", "pass", facts=facts)


def test_a_model_is_compared_with_that_of_jax2onnx() -> None:
    ours = [sized("a", Add=3, Mul=1), sized("b", Add=1), sized("c", Add=1)]
    theirs = {"a": "2 Add", "b": "4 Add, 4 Mul", "c": sizes.NONE}
    comparison = drop_in.Comparison(ours, sizes.Sizes("0.17.1", 23, theirs))
    assert comparison.summary() == [
        "at most as many nodes as jax2onnx in 1 of 2 cases (50.0%)",
        "0.13 times as many in the geometric mean over the 1 cases in which jax2onnx has 8 nodes "
        "or more",
        "a: 4, 2: +1 Add, +1 Mul",
    ]
    page = comparison.page(ours, [], 23)
    assert "| primitives.lax | 3 | 3 | 1 | 0 | 1 |  |" in page
    assert "| 1 | not looked at yet | a | 4, 2: +1 Add, +1 Mul |" in page


def test_sizes_of_other_models_are_kept_as_a_file(tmp_path: Path) -> None:
    path = tmp_path / "sizes.txt"
    found = [
        ("p/b_f64", {"Add": 1}),
        ("p/b", {"Add": 1}),
        ("p/a", {}),
        ("p/a_f64", {"Mul": 2, "Add": 1}),
        ("p/c", None),
        ("p/c_f64", {"Add": 1}),
    ]
    sizes.write(found, 23, path, "0.17.1")
    assert path.read_text().splitlines() == [
        "# jax2onnx 0.17.1 opset 23",
        "p/a:",
        "p/a_f64: Add, 2 Mul",
        "p/b: Add",
        "p/c: no model",
        "p/c_f64: Add",
    ]
    again = sizes.read(path)
    assert (again.version, again.opset) == ("0.17.1", 23)
    assert [(name, again.ops(name)) for name, _ in found] == found
    assert again.ops("p/d") is None


def test_the_sizes_are_of_the_version_that_is_installed() -> None:
    pins = (Path(__file__).parents[2] / "requirements" / "bench.txt").read_text()
    assert f"jax2onnx=={sizes.read().version}" in pins


@pytest.mark.parametrize(
    ("entry", "names"),
    [
        ({}, ["c", "c_f64"]),
        ({"input_shapes": [("B", 2)]}, ["c_dynamic", "c_dynamic_f64", "c", "c_f64"]),
        ({"input_shapes": [("B",)], "run_only_dynamic": True}, ["c_dynamic", "c_dynamic_f64"]),
        ({"run_only_f32_variant": True}, ["c"]),
        ({"disable_float64_test": True}, ["c"]),
        ({"run_only_f64_variant": True}, ["c: double"]),
        ({"enable_double_precision": True}, ["c: double"]),
        ({"testcase": "c_f64"}, ["c_f64"]),
    ],
)
def test_a_description_of_jax2onnx_is_several_cases(entry: dict, names: list[str]) -> None:
    variants = list(jax2onnx_cases._variants({"testcase": "c", **entry}, {}))
    is_named = [v.testcase.endswith("_f64") or not v.double for v in variants]
    found = [
        v.testcase if named else f"{v.testcase}: double"
        for v, named in zip(variants, is_named, strict=True)
    ]
    assert found == names
    assert all(
        v.double == (name.endswith(("_f64", "double")))
        for v, name in zip(variants, found, strict=True)
    )


def test_a_case_of_jax2onnx_is_given_sizes_and_dtypes() -> None:
    entry = {"testcase": "c", "input_shapes": [("B", 4), (2,)], "input_dtypes": [np.float32, int]}
    dynamic, dynamic_f64, static, _ = jax2onnx_cases._variants(entry, {})
    shapes = [spec.shape for spec in jax2onnx_cases._specifications(static)]
    assert shapes == [(3, 4), (2,)]
    assert [a.shape for a in jax2onnx_cases._arguments(dynamic)] == [(2, 4), (2,)]
    dtypes = [a.dtype.name for a in jax2onnx_cases._arguments(dynamic_f64)]
    assert dtypes == ["float64", "int64"]


@pytest.mark.parametrize(
    ("given", "stated", "fits"),
    [
        ((3, 4), (3, 4), True),
        ((3, 4), (4, 3), False),
        (("B", 4), ("B", 4), True),
        ((None, 4), ("B", 4), True),
        ((3, 4), ("B", 4), False),
        ((3, 4), (jax2onnx_cases.ANY_SIZE, 4), True),
        ((4,), (4, 4), False),
    ],
)
def test_the_stated_shape_of_an_output_is_compared(given: tuple, stated: tuple, fits: bool) -> None:
    assert jax2onnx_cases._fits(given, stated) == fits


def test_primitives_of_jax2onnx_get_the_shapes_of_their_results() -> None:
    class Plugin:
        def __init__(self, primitive: Primitive) -> None:
            self._PRIM = primitive

        def ensure_abstract_eval_bound(self) -> None:
            self._PRIM.def_abstract_eval(lambda x: x)

    class System:
        PLUGIN_REGISTRY = MappingProxyType(
            {"own": Plugin(Primitive("own")), "tan": Plugin(lax.tan_p), "function": object()}
        )

    before = lax.tan_p.abstract_eval
    jax2onnx_cases._finish_primitives(System)
    own = System.PLUGIN_REGISTRY["own"]._PRIM
    assert jax.eval_shape(own.bind, jnp.ones(3)).shape == (3,)
    assert lax.tan_p.abstract_eval is before

# SPDX-License-Identifier: Apache-2.0
"""The parts of tests/conformance that decide and remember; its controls test the rest."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import MappingProxyType

import jax
import jax.numpy as jnp
import numpy as np
import onnx.parser
import pytest
from jax import lax
from jax.extend.core import Primitive

from conformance import drop_in, evidence, hostile, jax2onnx_cases, larger, report, sizes, witness
from conformance.case import Program
from conformance.evidence import FASTER, NONE, Evidence, EvidenceFile
from conformance.larger import Causes
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


def test_larger_models_are_told_by_cause_with_what_speaks_for_them() -> None:
    names = ("p/a", "p/a_f64", "p/b", "p/c", "p/d")
    ours = [sized(name, Add=2) for name in names]
    theirs = dict.fromkeys(names[:4], "Add") | {"p/d": "3 Add"}
    causes = Causes({"p/a": "NaN", "p/a_f64": "NaN", "p/b": "time"})
    shown = EvidenceFile(
        "",
        {
            "p/a": Evidence("wrong value", "x0[0] = nan", (2, 1), "y[0] is 1, JAX has nan"),
            "p/a_f64": Evidence("wrong value", "x0[0] = nan", (3, 1), "of another size"),
            "p/b": Evidence(FASTER, "as given", (2, 1), "0.50 of the time"),
        },
    )
    comparison = drop_in.Comparison(ours, sizes.Sizes("", 23, theirs), causes, shown)
    page = comparison.page(ours, [], 23)
    assert "| 1 | 20.0% | at most as many nodes |" in page
    assert "| 1 | 20.0% | more nodes, and a witness" in page
    assert "| 1 | 20.0% | more nodes, and measured faster |" in page
    assert "| 2 | 40.0% | more nodes and neither of these |" in page
    found = "1 wrong value (x0[0] = nan: y[0] is 1, JAX has nan); 1 nothing"
    assert f"| 2 | NaN | {found} | p: a[_f64] |" in page
    assert "| 1 | time | 1 faster (as given: 0.50 of the time) | p: b |" in page
    assert "| 1 | not looked at | 1 nothing | p: c |" in page
    assert "| p/c | 2, 1: +1 Add | nothing was tried | not looked at |" in page


def test_a_larger_model_needs_a_cause_and_a_trial_at_its_size() -> None:
    causes = Causes(dict.fromkeys(("listed", "grown", "stale", "no longer"), "reason"))
    tried = {
        "listed": Evidence(NONE, "as given", (3, 2), "1.10 of the time"),
        "stale": Evidence(FASTER, "as given", (4, 2), "0.50 of the time"),
    }
    nodes = dict.fromkeys(("listed", "grown", "stale", "unknown"), (3, 2))
    nodes |= {"no longer": (2, 2), "small": (2, 2)}
    before = {"listed": 3, "grown": 2, "stale": 4, "small": 1}
    found = larger.complaints(nodes, causes, EvidenceFile("", tried), before)
    assert [(line.split(": ")[0], line.split(": ")[-1]) for line in found] == [
        ("grown", "grew, it had 2"),
        ("no longer", "has a cause in larger.toml and is not larger"),
        ("stale", "nothing was tried at this size (--witness)"),
        ("unknown", "not looked at, has no cause in larger.toml"),
    ]


def test_every_larger_model_has_a_cause_and_was_tried() -> None:
    ours, theirs = sizes.our_nodes(), sizes.read()
    found = {case: (n, theirs.nodes(case)) for case, n in ours.items()}
    nodes = {case: (n, their) for case, (n, their) in found.items() if their is not None}
    causes, shown = larger.read(), evidence.read()
    assert larger.complaints(nodes, causes, shown, ours) == []
    assert set(causes.by_case) <= set(nodes)
    assert set(shown.by_case) == set(causes.by_case)
    assert {e.kind for e in shown.by_case.values()} <= {*evidence.KINDS, NONE}


def test_lines_of_causes_name_cases() -> None:
    cases = ["q/a", "p/a", "p/a_f64", "p/b_f64"]
    assert larger.lines(cases) == ["p: a[_f64], b_f64", "q: a"]
    assert sorted(n for line in larger.lines(cases) for n in larger.names(line)) == sorted(cases)


def test_a_case_has_one_cause(tmp_path: Path) -> None:
    path = tmp_path / "larger.toml"
    path.write_text('[[cause]]\nreason = "one"\ncases = ["p: a[_f64]", "p: a_f64"]\n')
    with pytest.raises(ValueError, match="p/a_f64 has two causes"):
        larger.read(path)


def test_evidence_is_kept_as_a_file(tmp_path: Path) -> None:
    path = tmp_path / "evidence.txt"
    found = {
        "p/b": Evidence("sign of zero", "x[:] *= -1.0", (3, 1), ""),
        "p/a": Evidence("wrong value", "x0[0] = nan", (2, 1), "y[0] is 1, JAX has nan"),
    }
    evidence.write(found, "jax 1", path)
    again = evidence.read(path)
    assert (again.versions, dict(again.by_case)) == ("jax 1", found)
    assert list(again.by_case) == ["p/a", "p/b"]
    assert again.of("p/a", (2, 1)) == found["p/a"]
    assert again.of("p/a", (3, 1)) is None
    assert evidence.read(tmp_path / "none.txt").by_case == {}


def test_nodes_of_our_models_are_replaced_where_they_were_counted(tmp_path: Path) -> None:
    path = tmp_path / "nodes.txt"
    sizes.write_our_nodes({"p/a": 1, "p/b": 2}, 23, path)
    sizes.write_our_nodes({"p/b": 3}, 23, path)
    assert sizes.our_nodes(path) == {"p/a": 1, "p/b": 3}


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        (hostile.AS_GIVEN, [[1.0, 2.0, 3.0], [4, 5]]),
        ("x0[0] = nan", [[np.nan, 2.0, 3.0], [4, 5]]),
        ("x0[-1] = -inf", [[1.0, 2.0, -np.inf], [4, 5]]),
        ("x0[:] = 7.0, 8.0", [[7.0, 8.0, 7.0], [4, 5]]),
        ("x1[:] = MIN, -1", [[1.0, 2.0, 3.0], [-(2**31), -1]]),
        ("x[:] *= 1e+20", [[1e20, 2e20, 3e20], [4, 5]]),
        ("x0[:] = 0.0; x1[:] = 9", [[0.0, 0.0, 0.0], [9, 9]]),
    ],
)
def test_a_change_of_inputs_is_read_and_applied(change: str, changed: list) -> None:
    values = [np.float32([1, 2, 3]), np.int32([4, 5])]
    new = hostile.changed(values, change, None)
    for have, want in zip(new, changed, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-6)
    np.testing.assert_array_equal(values[0], [1, 2, 3])


@pytest.mark.parametrize(
    "dtype",
    [np.float32, np.float64, np.complex64, jnp.bfloat16, np.int32, np.int64, np.uint8, np.bool_],
)
def test_every_candidate_can_be_applied(dtype: type) -> None:
    values = [np.zeros((2, 3), dtype), np.zeros((), dtype), np.zeros((0, 3), dtype)]
    found = list(hostile.candidates(values, has_symbols=False))
    assert len(found) == len(set(found)) > 5
    for change in found:
        new = hostile.changed(values, change, None)
        assert [(a.shape, a.dtype) for a in new] == [(a.shape, a.dtype) for a in values]


def model_of(
    nodes: str, inputs: str = "float[3] x", outputs: str = "float[3] y"
) -> onnx.ModelProto:
    head = '<ir_version: 10, opset_import: ["" : 23]>'
    return onnx.parser.parse_model(f"{head} model ({inputs}) => ({outputs}) {{ {nodes} }}")


FLOOR = "y = Floor (x)"


def of_floor() -> Program:
    entry = {"testcase": "c", "callable": jnp.floor, "input_shapes": [(3,)]}
    variant, _ = jax2onnx_cases._variants(entry, {})
    return jax2onnx_cases._program(variant)


@pytest.mark.parametrize(
    ("theirs", "kind", "change"),
    [
        ("y = Abs (x)", "wrong value", hostile.AS_GIVEN),
        ("f = Floor (x) s = Sub (x, x) y = Add (f, s)", "wrong value", "x0[0] = inf"),
        (
            "c = Constant <value = float {1e5}> () m = Min (x, c) y = Floor (m)",
            "wrong value",
            "x0[0] = inf",
        ),
        (
            "c = Constant <value = float {0.0}> () f = Floor (x) y = Add (f, c)",
            "sign of zero",
            "x0[0] = -0.0",
        ),
        (
            "c = Constant <value = int64 {0}> () y = CumProd (x, c)",
            "checker",
            hostile.AS_GIVEN,
        ),
    ],
)
def test_a_witness_is_found_where_models_differ(theirs: str, kind: str, change: str) -> None:
    found = witness.judged(of_floor(), model_of(FLOOR), model_of(theirs))
    assert (found.kind, found.change) == (kind, change)


def test_a_model_that_ends_the_process_is_a_witness() -> None:
    entry = {
        "testcase": "c",
        "callable": lambda x: jnp.einsum("bij,bkj->bik", x, x),
        "input_shapes": [("B", 2, 3)],
        "run_only_dynamic": True,
    }
    variant, _ = jax2onnx_cases._variants(entry, {})
    ours = "t = Transpose <perm = [0, 2, 1]> (x) y = MatMul (x, t)"
    theirs = 'y = Einsum <equation = "bij,bkj->bik"> (x, x)'
    models = (model_of(nodes, "float[B,2,3] x", "float[B,2,2] y") for nodes in (ours, theirs))
    found = witness.judged(jax2onnx_cases._program(variant), *models, before="B = 0")
    assert (found.kind, found.change) == ("does not run", "B = 0")


def test_there_is_no_witness_for_equal_models() -> None:
    ours = "a = Floor (x) b = Identity (a) y = Identity (b)"
    found = witness.judged(of_floor(), model_of(ours), model_of(FLOOR))
    assert found.kind in (NONE, FASTER)
    assert found.nodes == (3, 1)
    assert found.detail.endswith("of the time")


def test_an_input_at_which_our_model_is_wrong_is_no_witness() -> None:
    found = witness.judged(of_floor(), model_of("y = Cos (x)"), model_of("y = Abs (x)"))
    assert found.kind in (NONE, FASTER)


def test_a_model_with_other_inputs_is_not_run() -> None:
    theirs = model_of("y = Add (x, z)", "float[3] x, float[3] z")
    found = witness.judged(of_floor(), model_of(FLOOR), theirs)
    assert (found.kind, found.detail) == (NONE, "inputs or outputs of another number or type")


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

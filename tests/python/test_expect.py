# SPDX-License-Identifier: Apache-2.0
"""jaxport.testing.expect_graph: what holds, what does not, and that jax2onnx's checker agrees."""

from __future__ import annotations

import ast
import dataclasses
import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import jaxport
from jaxport.testing import expect_graph, specification

OPSETS = '"" : 23, "custom" : 1'


@cache
def model(name: str) -> onnx.ModelProto:
    parsed = onnx.parser.parse_model(f"<ir_version: 10, opset_import: [{OPSETS}]>\n{MODELS[name]}")
    return onnx.shape_inference.infer_shapes(parsed, data_prop=True)


MODELS = {
    "mlp": """
        mlp (float[B,3] x) => (float[B,2] y)
        <float[3,10] w = {WEIGHTS}, float[10,2] v = {VALUES}> {
          h = Gemm (x, w)
          r = Relu (h)
          y = Gemm (r, v)
        }""".replace("WEIGHTS", ", ".join(["1"] * 30)).replace("VALUES", ", ".join(["2"] * 20)),
    "helpers": """
        helpers (float[2,6] x, float[2,6] unused) => (float[3,4] y)
        <int64[2] shape = {3, 4}, int64[1] zero = {0}, float half = {0.5}> {
          a = Exp (x)
          b = Identity (a)
          c = Reshape (b, shape)
          d = Cast <to = 1> (c)
          e = Unsqueeze (d, zero)
          f = Squeeze (e, zero)
          y = Mul (f, half)
          dead = Transpose <perm = [1, 0]> (a)
        }""",
    "fork": """
        fork (float[4,5] x) => (float[4,5] y, float[5,4] z) {
          a = Exp (x)
          t = Transpose <perm = [1, 0]> (a)
          u = Transpose <perm = [0, 1]> (a)
          y = Tanh (u)
          z = Sin (t)
        }""",
    "constants": """
        constants (float[3] x) => (float[3] y)
        <bool flag = {0}> {
          two = Constant <value = float {2.0}> ()
          shape = Constant <value = int64[1] {3}> ()
          twos = Expand (two, shape)
          y = Pow (x, twos)
          d, m = Dropout (x, two, flag)
        }""",
    "branch": """
        branch (bool flag, float[3] x, float[3] captured) => (float[3] y) {
          e = Exp (x)
          y = If (flag) <
            then_branch = inner () => (float[3] p) { p = Neg (e) },
            else_branch = other () => (float[3] q) { r = Sub (e, captured) q = Tanh (r) }
          >
        }""",
    "function": """
        calls (float[3] x) => (float[3] y) {
          h = custom.Block (x)
          y = custom.Block_1 (h)
        }
        <domain: "custom", opset_import: ["" : 23]>
        Block (a) => (b) { c = Exp (a) b = Tanh (c) }
        <domain: "custom", opset_import: ["" : 23]>
        Block_1 (a) => (b) { c = Exp (a) b = Sin (c) }""",
    "attribute": """
        calls (float[3] x) => (float[3] y) {
          y = custom.Leaky <slope = 0.5> (x)
        }
        <domain: "custom", opset_import: ["" : 23]>
        Leaky <slope> (a) => (b) { b = LeakyRelu <alpha: float = @slope> (a) }""",
}


@dataclasses.dataclass(frozen=True)
class Case:
    """A call of expect_graph, whether it holds, and whether jax2onnx says something else."""

    model: str
    specs: list[Any]
    holds: bool
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    theirs: bool | None = None


def holds(model: str, *specs: Any, **options: Any) -> Case:
    return Case(model, list(specs), True, options)


def fails(model: str, *specs: Any, **options: Any) -> Case:
    return Case(model, list(specs), False, options)


def ours_alone(case: Case) -> Case:
    """A deliberate difference; docs/testing-models.md lists them."""
    return dataclasses.replace(case, theirs=not case.holds)


def inputs(op: str, **rules: Any) -> tuple[str, dict[str, Any]]:
    return op, {"inputs": {key.removeprefix("at"): rule for key, rule in rules.items()}}


CASES = [
    # Paths, and the shape after each node.
    holds("mlp", "Gemm -> Relu -> Gemm"),
    holds("mlp", "Gemm:Bx10 -> Relu:Bx10 -> Gemm:Bx2", no_unused_inputs=True),
    holds("mlp", "^Gemm:Bx10->Relu$", "Relu:? x 10 -> Gemm:B\u00d72"),
    holds("mlp", "Gemm:Nx10 -> Relu:Nx10"),
    holds("mlp", "Gemm:BxF -> Relu:BxF -> Gemm:BxG"),
    fails("mlp", "Gemm:BxF -> Relu:BxF -> Gemm:BxF"),
    fails("mlp", "Gemm:Bx10 -> Relu:Bx10 -> Gemm:Bx3"),
    fails("mlp", "Gemm:1x10"),
    fails("mlp", "Gemm:10"),
    fails("mlp", "Relu -> Relu"),
    fails("mlp", "Sigmoid"),
    fails("mlp", "Relu -> Gemm -> Relu"),
    holds("mlp", "Relu:Bx10", symbols={"B": None}),
    holds("mlp", "Relu:NxF", symbols={"N": "B", "F": 10}),
    fails("mlp", "Relu:NxF", symbols={"F": 11}),
    holds("mlp", ("Relu:NxF", {"symbols": {"F": 10}}), symbols={"F": 11}),
    holds("mlp", "Sigmoid", "Relu", mode="any"),
    fails("mlp", "Sigmoid", "Tanh", mode="any"),
    fails("mlp", "Sigmoid", "Relu"),
    holds("mlp"),
    # Ops that a path may leave out.
    holds("helpers", "Exp -> Mul:3x4"),
    holds("helpers", "Exp:2x6 -> Reshape:3x4 -> Squeeze -> Mul"),
    fails("helpers", "Mul -> Exp"),
    fails("fork", "Exp -> Tanh"),
    holds("fork", "Exp -> Transpose -> Sin"),
    ours_alone(holds("fork", "Exp -> Transpose -> Tanh")),
    ours_alone(holds("fork", "Exp:4x5 -> Transpose:4x5")),
    # Counts, what must be absent, inputs that nobody uses.
    holds("mlp", ("Gemm", {"counts": {"Gemm": 2, "Relu": 1, "Tanh": 0}})),
    fails("mlp", ("Gemm", {"counts": {"Gemm": 1}})),
    holds("helpers", {"path": "Exp", "counts": {"Transpose": 1}}),
    holds("mlp", must_absent=["Transpose"]),
    fails("mlp", must_absent=["Transpose", "Relu"]),
    holds("helpers", must_absent=["Transpose"]),
    fails("helpers", ("Exp", {"must_absent": ["Cast"]})),
    fails("helpers", no_unused_inputs=True),
    ours_alone(fails("mlp", "Relu", mode="any", must_absent=["Relu"])),
    # Inputs of the last node.
    holds("helpers", inputs("Exp -> Mul", at1={"const": 0.5})),
    fails("helpers", inputs("Exp -> Mul", at1={"const": 0.25})),
    fails("helpers", inputs("Exp -> Mul", at0={"const": 0.5})),
    holds("helpers", inputs("Exp -> Mul", at1={"initializer_name": "half"})),
    fails("helpers", inputs("Exp -> Mul", at1={"initializer_name": "whole"})),
    holds("helpers", inputs("Reshape", at1={"const": [3, 4]})),
    fails("helpers", inputs("Reshape", at1={"const": [3, 4, 5]})),
    fails("helpers", inputs("Reshape", at2={"const": 1})),
    holds("helpers", inputs("Reshape", at2={"absent": True})),
    fails("helpers", inputs("Reshape", at1={"absent": True})),
    ours_alone(holds("constants", inputs("Pow", at1={"const": 2.0}))),
    ours_alone(holds("constants", inputs("Pow", at1={"const": np.float32(2)}))),
    holds("constants", inputs("Dropout", at2={"const_bool": False})),
    fails("constants", inputs("Dropout", at2={"const_bool": True})),
    holds("constants", inputs("Pow", at0={})),
    # Functions and bodies.
    holds("function", "Block:3 -> Block:3"),
    fails("function", "Exp -> Tanh"),
    holds("function", "Exp -> Tanh", "Exp -> Sin", search_functions=True),
    fails("function", "Exp -> Cos", search_functions=True),
    holds("function", {"graph": "fn:custom:Block", "path": "Exp"}, search_functions=True),
    holds("function", {"graph": ["custom:Block"], "path": "Tanh"}, search_functions=True),
    fails("function", {"graph": "custom:Block_1", "path": "Cos"}, search_functions=True),
    fails("function", {"graph": "custom:Other", "path": "Exp"}, search_functions=True),
    holds("function", {"graph": "top", "path": "Block"}, search_functions=True),
    holds("function", search_functions=True, no_unused_function_inputs=True),
    holds("attribute", "Leaky:3", "LeakyRelu", search_functions=True),
    fails("branch", "Exp -> Neg"),
    fails("branch", "Sub -> Tanh"),
    ours_alone(holds("branch", must_absent=["Sin"], no_unused_inputs=True)),
    ours_alone(fails("branch", must_absent=["Exp"])),
]


def _name(case: Case) -> str:
    return f"{case.model} {case.specs} {case.options}"


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_verdict(case):
    check = expect_graph(case.specs, **case.options)
    assert check(model(case.model)) is case.holds
    assert bool(check.explain(model(case.model))) is not case.holds


# --- bodies, counts without a path, other ops to leave out: what jax2onnx has no words for


def test_bodies_of_control_flow():
    check = expect_graph(
        ["Sub -> Tanh", {"graph": "top/If_0.then_branch", "path": "Neg:3"}], search_subgraphs=True
    )
    assert check(model("branch"))
    wrong = {"graph": "top/If_0.else_branch", "path": "Neg:3"}
    assert not expect_graph([wrong], search_subgraphs=True)(model("branch"))


def test_counts_without_a_path():
    assert expect_graph([{"counts": {"Gemm": 2}}])(model("mlp"))
    assert not expect_graph([{"counts": {"Gemm": 3}}])(model("mlp"))


def test_passthrough_can_be_chosen():
    assert not expect_graph(["Exp -> Mul"], passthrough=[])(model("helpers"))
    assert expect_graph(["Gemm -> Gemm"], passthrough=["Relu"])(model("mlp"))


def test_attributes():
    assert expect_graph([("Exp", {"attrs": {"Transpose": {"perm": [1, 0]}}})])(model("helpers"))
    assert expect_graph([("Exp", {"attrs": {"Cast": {"to": 1}}})])(model("helpers"))
    check = expect_graph([("Exp", {"attrs": {"Cast": {"to": 7}}})])
    assert "to is 1, not 7" in check.explain(model("helpers"))


# --- what a failure says


def test_report_shows_both_sides():
    check = expect_graph(["Gemm:Bx10 -> Relu -> Gemm:Bx3"])
    assert check.explain(model("mlp")) == (
        "path Gemm:Bx10 -> Relu -> Gemm:Bx3: in top 2 of 3 steps were found\n"
        "     expected   found\n"
        "     Gemm:Bx10  Gemm:Bx10  node 0\n"
        "     Relu       Relu:Bx10  node 1\n"
        "  >  Gemm:Bx3   Gemm:Bx2   node 2: dim 1 is 2\n"
    )


@pytest.mark.parametrize(
    ("specs", "options", "line"),
    [
        (["Gemm -> Tanh"], {}, "  >  Tanh      -          then comes Relu:Bx10"),
        (["Gemm:Bx2 -> Tanh"], {}, "  >  Tanh      -         it is an output of the graph"),
        (["Tanh"], {}, "  >  Tanh      -      the graph has Gemm, Relu"),
        (["Gemm:BxF -> Relu:FxB"], {}, "dim 0 is B, but F is 10"),
        ([("Gemm", {"counts": {"Gemm": 1}})], {}, "path Gemm: top has 2 Gemm, not 1"),
        ([], {"must_absent": ["Gemm"]}, "Gemm must be absent: 2 in top (node 0, node 2)"),
        ([{"graph": "fn:a:b", "path": "Gemm"}], {}, "there is no graph fn:a:b; searched were top"),
    ],
)
def test_report_says_what_stands_there(specs, options, line):
    assert line in expect_graph(specs, **options).explain(model("mlp"))


def test_failure_is_printed_unless_told_otherwise(capsys):
    assert not expect_graph(["Tanh"])(model("mlp"))
    assert "expect_graph does not hold:" in capsys.readouterr().out
    assert not expect_graph(["Tanh"], explain_on_fail=False)(model("mlp"))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("specs", "options", "message"),
    [
        (["Gemm -> -> Relu"], {}, "a step of path 'Gemm -> -> Relu' names no op"),
        ([("Gemm", {"count": {}})], {}, "a path has no entry 'count', only path, symbols"),
        (["Gemm"], {"mode": "some"}, "mode is 'some', not 'all' or 'any'"),
        ([("Gemm", {"inputs": {"x": {}}})], {}, "'x' is no position of an input"),
        ([], {"no_unused_function_inputs": True}, "needs search_functions"),
        ([17], {}, "a path is no mapping: 17"),
        ([("Gemm", {"attrs": {"Gemm": 1}})], {}, "attrs of 'Gemm' are no mapping"),
        ([("Gemm", {"inputs": {0: {"const": [[1], 2]}}})], {}, "const is no regular array"),
        ([("Gemm", {"inputs": {0: {"const": "one"}}})], {}, 'const holds "one", which is no'),
    ],
)
def test_specification_that_cannot_be_used(specs, options, message):
    with pytest.raises(jaxport.ConversionError, match="E090") as caught:
        expect_graph(specs, **options)
    assert message in str(caught.value)


# --- models in every form, and their specification


def test_every_form_of_a_model(tmp_path):
    converted = jaxport.to_onnx(jnp.tanh, [("B", 3)], return_mode="model")
    path = Path(converted.save(tmp_path / "tanh.onnx"))
    check = expect_graph(["Tanh:Bx3"], no_unused_inputs=True)
    proto = converted.to_proto()
    for form in (converted, proto, proto.SerializeToString(), path, str(path)):
        assert check(form)
    onnx_ir = pytest.importorskip("onnx_ir", reason="make test-jax2onnx installs onnx_ir")
    assert check(onnx_ir.from_proto(proto))


def _perceptron(x):
    for size in (16, 16, 4):
        x = jax.nn.relu(x @ jnp.ones((x.shape[-1], size)) + 1.0)
    return x


def _steps(x):
    return jax.lax.scan(lambda c, _: (jnp.cos(c) * x, jnp.sum(c)), x, None, length=9)


PROGRAMS = {
    "one op": (jnp.tanh, [("B", 3)]),
    "sizes that are expressions": (lambda x: jnp.tanh(jnp.concatenate([x, x])), [("T", 2)]),
    "perceptron": (_perceptron, [("B", 8)]),
    "softmax": (jax.nn.softmax, [("B", "T")]),
    "a scan": (_steps, [(3,)]),
    "many outputs": (lambda x, y: (x + y, x * y, jnp.sin(x)), [(3,), (3,)]),
    "a long chain": (lambda x: jnp.cumsum(jnp.sort(jnp.fft.fft(x).real), axis=-1), [(4, 8)]),
    "no node": (lambda x: x, [(3,)]),
}


@pytest.mark.parametrize("name", [*PROGRAMS, *MODELS])
def test_a_model_fulfils_its_own_specification(name):
    given = MODELS.get(name)
    subject = model(name) if given else jaxport.to_onnx(*PROGRAMS[name])
    text = specification(subject)
    check = eval(text, {"expect_graph": expect_graph})
    assert check.explain(subject) == ""
    assert text.count("\n") < 40
    if subject.graph.node:
        assert not check(model("mlp" if name != "mlp" else "fork"))


def test_graphs_that_do_not_fit_are_mentioned():
    def fn(x):
        for n in range(5):
            x = jax.lax.cond(
                x[0] > n, lambda x: jnp.tanh(x).cumsum(), lambda x: jnp.sin(x).cumsum(), x
            )
        return x

    text = specification(jaxport.to_onnx(fn, [(9,)]))
    assert "        # 5 more graphs\n" in text


def test_specification_reads_like_this():
    assert specification(model("mlp")) == (
        "expect_graph(\n"
        "    [\n"
        '        "Gemm:Bx10 -> Relu:Bx10 -> Gemm:Bx2",\n'
        "    ],\n"
        "    no_unused_inputs=True,\n"
        ")\n"
    )


# --- the checker of jax2onnx


def _package() -> Path:
    found = importlib.util.find_spec("jax2onnx")
    if found is None or found.origin is None:
        pytest.skip("make test-jax2onnx installs jax2onnx")
    return Path(found.origin).parent


@cache
def _their_checker() -> Any:
    """Its checker alone: the package itself would patch JAX."""
    path = _package() / "plugins" / "_post_check_onnx_graph.py"
    spec = importlib.util.spec_from_file_location("post_check", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _theirs(specs: list[Any], options: dict[str, Any], subject: onnx.ModelProto) -> bool:
    check = _their_checker().expect_graph(specs, explain_on_fail=False, **options)
    return bool(check(subject))


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_jax2onnx_agrees(case):
    expected = case.holds if case.theirs is None else case.theirs
    assert _theirs(case.specs, case.options, model(case.model)) is expected


@cache
def _their_specifications() -> list[tuple[list[Any], dict[str, Any]]]:
    """The calls of expect_graph in its sources whose arguments are literals."""
    found = []
    for path in sorted((_package() / "plugins").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(getattr(node, "func", None), "id", None)
            if name not in ("EG", "expect_graph") or not node.args:
                continue
            try:
                options = {k.arg: ast.literal_eval(k.value) for k in node.keywords}
                found.append((ast.literal_eval(node.args[0]), options))
            except ValueError:  # made of other names
                continue
    return found


def _path_and_options(entry: Any) -> tuple[str, dict[str, Any]]:
    if isinstance(entry, str):
        return entry, {}
    if isinstance(entry, tuple):
        return entry
    return entry["path"], entry


def _built_for(specs: list[Any]) -> onnx.ModelProto:
    """A model with a chain of nodes for each path, of the shapes that the path asks for."""
    nodes, values, outputs, constants = [], [], [], []
    for i, entry in enumerate(specs):
        path, options = _path_and_options(entry)
        last = "x"
        for j, step in enumerate(path.strip("^$ ").split("->")):
            op, _, shape = (part.strip() for part in step.partition(":"))
            name = f"v{i}_{j}"
            nodes.append(helper.make_node(op, [last], [name]))
            if shape:
                sizes = _their_checker()._parse_shape(shape)
                values.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes))
            last = name
        for index, rule in sorted(options.get("inputs", {}).items(), key=lambda item: int(item[0])):
            value = rule.get("const", rule.get("const_bool"))
            nodes[-1].input.extend([""] * (int(index) + 1 - len(nodes[-1].input)))
            if value is not None:
                constants.append(onnx.numpy_helper.from_array(np.asarray(value), f"c{i}_{index}"))
                nodes[-1].input[int(index)] = constants[-1].name
        outputs.append(onnx.ValueInfoProto(name=last))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["B"])
    graph = helper.make_graph(nodes, "built", [x], outputs, constants, value_info=values)
    return helper.make_model(graph)


def test_specifications_of_jax2onnx_mean_the_same():
    """Each is checked on the model that it describes, on that model without its last node, and on
    models that have little to do with it. Where the verdicts differ, a rule about inputs holds for
    another node than the first that fits."""
    others = [model(name) for name in MODELS if name not in ("branch", "constants")]
    agreed = fulfilled = 0
    for specs, given in _their_specifications():
        options = {**given, "explain_on_fail": False}
        built = _built_for(specs)
        shorter = onnx.ModelProto()
        shorter.CopyFrom(built)
        del shorter.graph.node[-1:]
        for subject in (built, shorter, *others):
            ours = expect_graph(specs, **options)(subject)
            theirs = bool(_their_checker().expect_graph(specs, **options)(subject))
            if ours is not theirs:
                assert ours, (specs, options)
                assert any("inputs" in _path_and_options(spec)[1] for spec in specs), specs
            agreed += theirs is ours
            fulfilled += ours
    assert agreed > 6000
    assert fulfilled > 1000

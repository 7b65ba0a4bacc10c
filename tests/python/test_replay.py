# SPDX-License-Identifier: Apache-2.0
"""tools/replay reports what differs between two versions of the compiler, and nothing else."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from replay import traces
from replay.__main__ import file_name, table
from replay.compare import Difference, Side, compare
from replay.version import ROOT, base_commit, git

E012 = "error[JXP-E012]: no lowering for primitive 'foo'"


def model(*ops: str, name: str = "y", version: str = "0.1.0") -> onnx.ModelProto:
    """A chain of nodes."""
    names = ["x", *(f"{name}{i}" for i in range(len(ops)))]
    nodes = [
        helper.make_node(op, [a], [b]) for op, a, b in zip(ops, names[:-1], names[1:], strict=True)
    ]
    border = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in ("x", names[-1])]
    graph = helper.make_graph(nodes, "g", border[:1], border[1:])
    return helper.make_model(graph, producer_version=version)


def branch(*ops: str) -> onnx.ModelProto:
    """An If whose branches are chains."""
    graph = model(*ops).graph
    del graph.input[:]
    node = helper.make_node("If", ["x"], ["y"], then_branch=graph, else_branch=graph)
    return helper.make_model(helper.make_graph([node], "g", [], []))


@pytest.fixture
def replay(tmp_path):
    """Compares two compilers that give what they are told: a model, or an error."""

    def side(name, result, trace):
        file = tmp_path / f"{name}.out"
        is_model = isinstance(result, onnx.ModelProto)
        file.write_bytes(result.SerializeToString() if is_model else result.encode())
        tool = tmp_path / name
        action = f"cp {file} $4" if is_model else f"cat {file} >&2; exit 2"
        tool.write_text(f"#!/bin/sh\n{action}\n")
        tool.chmod(0o755)
        (tmp_path / trace).touch()
        return Side(name, tool, tmp_path / trace)

    def run(before, after, trace="a.jir"):
        sides = side("before", before, trace), side("after", after, trace)
        return compare("m", sides, (), tmp_path / "different")

    return run


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (model("Exp", "Neg"), model("Exp", "Neg")),
        (model("Exp", version="0.1.0"), model("Exp", version="0.2.0")),
        (E012, E012),
    ],
    ids=["model", "version of the producer", "error"],
)
def test_what_is_the_same_is_not_reported(replay, tmp_path, before, after):
    assert replay(before, after) is None
    assert not (tmp_path / "different").exists()


@pytest.mark.parametrize(
    ("before", "after", "nodes", "price", "what"),
    [
        (model("Exp"), model("Exp", "Transpose"), "1 2", "1 4", "+1 Transpose"),
        (model("Exp", "Abs"), model("Neg"), "2 1", "2 1", "-1 Abs, -1 Exp, +1 Neg"),
        (branch("Exp"), branch("Exp", "Expand"), "3 5", "3 7", "+2 Expand"),
        (
            model("Exp", "Neg"),
            model("Neg", "Exp"),
            "2 2",
            "2 2",
            "order, names, attributes or constants",
        ),
        (model("Exp"), E012, "1 E012", "1 -", "error"),
        (E012, model("Exp"), "E012 1", "- 1", "error"),
        (E012, E012 + "!", "E012 E012", "- -", "text of the error"),
        (model("Exp"), "", "1 error", "1 -", "error"),
    ],
    ids=["more", "others", "inside", "order", "new error", "mended", "text", "crash"],
)
def test_what_differs_is_reported(replay, tmp_path, before, after, nodes, price, what):
    found = replay(before, after)
    assert found == Difference("m", tuple(nodes.split()), tuple(price.split()), what)
    kept = {path.name for path in (tmp_path / "different").iterdir()}
    for name, result in (("before", before), ("after", after)):
        assert f"{name}.{'onnx' if isinstance(result, onnx.ModelProto) else 'error'}" in kept
        assert f"{name}.jir" in kept


def test_another_encoding_of_the_same_message_is_reported(replay, tmp_path):
    assert replay(model("Exp"), model("Exp")) is None
    tool = tmp_path / "after"
    data = (tmp_path / "after.out").read_bytes()
    (tmp_path / "after.out").write_bytes(data + data[:2])  # a field twice: the last one counts
    sides = [Side(n, tmp_path / n, tmp_path / "a.jir") for n in ("before", tool.name)]
    found = compare("m", tuple(sides), (), tmp_path / "different")
    assert found is not None
    assert found.what == "encoding"


def test_a_program_that_is_not_traced_is_an_error(replay, tmp_path):
    (tmp_path / "a.error").write_text("error[JXP-E074]: JAX cannot trace the function")
    assert replay(model("Exp"), model("Neg"), trace="a.error") is None


def test_the_table_is_aligned():
    rows = [
        Difference("a long name", ("1", "2"), ("1", "4"), "+1 Transpose"),
        Difference("short", ("224", "E012"), ("300", "-"), "error"),
    ]
    lines = list(table(rows))
    assert (
        len({line.index(word) for line, word in zip(lines, ("diff", "+1", "error"), strict=True)})
        == 1
    )


def test_folders_differ_where_labels_do():
    labels = ["x" * 100 + "a", "x" * 100 + "b", "a | b", "a || b"]
    assert len({file_name(label) for label in labels}) == len(labels)


def test_what_decides_about_traces_is_there():
    assert [path for path in traces.TRACING + traces.CORPUS if not (ROOT / path).exists()] == []


@pytest.mark.skipif(not git("rev-parse", "HEAD"), reason="sources without a repository")
def test_the_base_is_a_commit():
    assert base_commit("HEAD") == git("rev-parse", "HEAD")

# SPDX-License-Identifier: Apache-2.0
"""jaxport.optimize and `jaxport opt`: models of others with fewer nodes and the same results."""

import re
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper, parser

import jaxport
from jaxport.command import main as command

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from optimize.judge import in_runtime, judge, kept, node_cases, node_count

# Files of ONNX's node tests; `make test-optimize` runs all of them.
OPS = (
    "affinegrid",
    "castlike",
    "dropout",
    "groupnormalization",
    "if_",
    "loop",
    "optionalgetelement",
    "sequence_map",
    "split",
    "string_concat",
)


def test_onnx_node_tests():
    outcomes = {case.name: judge(case) for case in node_cases(OPS)}
    held = ("equal", "equal in reference", "not run")
    wrong = {
        name: outcome
        for name, outcome in outcomes.items()
        if outcome not in held and "training" not in name
    }
    assert wrong == {}
    assert sum(outcome != "not run" for outcome in outcomes.values()) > 50


HEADER = '<ir_version: 10, opset_import: ["" : 20, "other" : 1, "local" : 1]>\n'


def model_of(text: str) -> onnx.ModelProto:
    return parser.parse_model(HEADER + text)


CORRIDOR = """
heads (float[B,4,16] x) => (float[B,4,2,8] y)
<int64 zero = {0}, int64[1] front = {0}, int64[1] rest = {4}, int64[2] split = {2, 8},
 float one = {1.0}>
{
  shape = Shape (x)
  batch = Gather (shape, zero)
  batch_1 = Unsqueeze (batch, front)
  target = Concat <axis = 0> (batch_1, rest, split)
  scaled = Mul (x, one)
  there = Transpose <perm = [0, 2, 1]> (scaled)
  back = Transpose <perm = [0, 2, 1]> (there)
  y = Reshape (back, target)
}
"""


def test_corridor_of_shapes():
    before = model_of(CORRIDOR)
    after = jaxport.optimize(before)
    assert [node.op_type for node in after.graph.node] == ["Reshape"]
    assert kept(before, after) == ""
    for batch in (1, 3):
        x = np.arange(batch * 64, dtype=np.float32).reshape(batch, 4, 16)
        np.testing.assert_array_equal(in_runtime(after, [x])[0], x.reshape(batch, 4, 2, 8))


def test_sizes_of_zero():
    after = jaxport.optimize(model_of(CORRIDOR))
    x = np.zeros((0, 4, 16), np.float32)
    assert in_runtime(after, [x])[0].shape == (0, 4, 2, 8)


def test_ops_of_other_domains_stay():
    before = model_of("""
      g (float[2] x) => (float[2] y) <float zero = {0.0}>
      { a = other.Dropout (x) b = other.Log (a) c = Add (a, zero) y = other.Neg <alpha = 2> (c) }
    """)
    after = jaxport.optimize(before)
    nodes = [(node.domain, node.op_type) for node in after.graph.node]
    assert nodes == [("other", "Dropout"), ("other", "Log"), ("other", "Neg")]
    assert after.graph.node[2].attribute[0].i == 2


def test_functions_stay_and_may_replace_an_op():
    before = model_of("""
      g (float[2] x) => (float[2] y) { a = Neg (x) b = Neg (a) y = local.twice (b) }
      <domain: "local", opset_import: ["" : 20]>
      twice (v) => (w) { z = Identity (v) w = Add (z, z) }
      <domain: "", opset_import: ["" : 20]> Neg (v) => (w) { w = Mul (v, v) }
    """)
    after = jaxport.optimize(before)
    assert kept(before, after) == ""
    assert [node.op_type for node in after.graph.node] == ["Neg", "Neg", "twice"]


def test_strings_sequences_and_sparse_tensors_stay():
    words = helper.make_tensor("words", TensorProto.STRING, [2], [b"a", b"b"])
    values = numpy_helper.from_array(np.array([3.0], np.float32), "sparse")
    indices = numpy_helper.from_array(np.array([1], np.int64), "indices")
    sparse = helper.make_sparse_tensor(values, indices, [3])
    nodes = [
        helper.make_node("Identity", ["words"], ["named"]),
        helper.make_node("Identity", ["named"], ["w"]),
        helper.make_node("Identity", ["s"], ["t"], doc_string="kept"),
        helper.make_node("Add", ["sparse", "x"], ["y"], doc_string="of a node"),
    ]
    sequence = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    out = helper.make_tensor_sequence_value_info("t", TensorProto.FLOAT, None)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])
    graph = helper.make_graph(
        nodes,
        "g",
        [sequence, x],
        [helper.make_tensor_value_info("w", TensorProto.STRING, [2]), out,
         helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])],
        [words],
        doc_string="of the graph",
        sparse_initializer=[sparse],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    helper.set_model_props(model, {"key": "value"})
    after = jaxport.optimize(model)
    onnx.checker.check_model(after)
    assert kept(model, after) == ""
    assert after.graph.doc_string == "of the graph"
    assert [node.doc_string for node in after.graph.node][-1] == "of a node"
    feeds = [[np.ones(2, np.float32)], np.ones(3, np.float32)]
    before, now = in_runtime(model, feeds), in_runtime(after, feeds)
    assert [str(a) for a in before] == [str(b) for b in now]


def test_a_name_inside_is_not_the_same_name_outside():
    """What moves out of a branch must not meet a name of another one."""
    before = model_of("""
      g (bool p, float[2] x) => (float[2] y) <bool yes = {1}>
      {
        a = If (yes) <
          then_branch = t () => (float[2] r) { v = Neg (x) r = Neg (v) },
          else_branch = e () => (float[2] s) { s = Identity (x) } >
        y = If (p) <
          then_branch = t2 () => (float[2] r2) { v = Abs (x) r2 = Add (v, a) },
          else_branch = e2 () => (float[2] s2) { v = Exp (x) s2 = Add (v, a) } >
      }
    """)
    after = jaxport.optimize(before)
    onnx.checker.check_model(after, full_check=True)
    x = np.array([1.0, -2.0], np.float32)
    for p in (True, False):
        np.testing.assert_array_equal(
            in_runtime(after, [np.array(p), x])[0], in_runtime(before, [np.array(p), x])[0]
        )
    assert node_count(after.graph) < node_count(before.graph)


def test_wrong_types_in_the_file_decide_nothing():
    """A declared shape that is not the real one must not remove the Reshape."""
    before = model_of(
        "g (float[2,3] x, int64[1] s) => (float[N] y) { a = Reshape (x, s) y = Neg (a) }"
    )
    declared = helper.make_tensor_value_info("a", TensorProto.FLOAT, [2, 3])
    before.graph.value_info.append(declared)
    after = jaxport.optimize(before)
    assert [node.op_type for node in after.graph.node] == ["Reshape", "Neg"]


def test_nodes_that_contradict_themselves_stay():
    before = model_of(
        "g (float[2] x) => (float[2] y) { a = Transpose <perm = [4, 7]> (x) y = Neg (a) }"
    )
    after = jaxport.optimize(before)
    assert [node.op_type for node in after.graph.node] == ["Transpose", "Neg"]


def test_sizes_that_no_tensor_has_are_not_computed():
    for op, sizes in (
        ("Expand (one, sizes)", (2**32, 2**32)),
        ("ConstantOfShape (sizes)", (-5, 3)),
        ("Range (least, most, step)", (0, 0)),
    ):
        before = model_of(f"""
          g (int64 i) => (float[N] y)
          <int64[2] sizes = {{{sizes[0]}, {sizes[1]}}}, float[1,1] one = {{1}},
           int64 least = {{-9223372036854775807}}, int64 most = {{9223372036854775807}},
           int64 step = {{1}}>
          {{ a = {op} b = Cast <to = 1> (a) y = Gather (b, i) }}
        """)
        after = jaxport.optimize(before)
        assert op.startswith(after.graph.node[0].op_type)


def assert_agrees(before, *feeds):
    """The model after jaxport.optimize, which gives the same for these inputs by name."""
    after = jaxport.optimize(before)
    for feed in feeds:
        for have, want in zip(results(after, feed), results(before, feed), strict=True):
            np.testing.assert_array_equal(have, want)
    return after


def results(model, feed):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, feed)


def test_a_size_may_be_zero():
    """What is asked of a size of 0 is not known before."""
    before = model_of("""
      g (float[B,3] x) => (float[N,3] y)
      <int64[1] none = {0}, int64[1] front = {0}, int64[1] next = {1},
       float[1,3] filler = {7, 8, 9}>
      {
        shape = Shape (x)
        rows = Slice (shape, front, next)
        is_empty = Equal (rows, none)
        y = If (is_empty) <
          then_branch = t () => (float[L,3] r) { r = Identity (filler) },
          else_branch = e () => (float[M,3] s) { s = Identity (x) } >
      }
    """)
    assert_agrees(before, *({"x": np.ones((rows, 3), np.float32)} for rows in (0, 1, 2)))


def test_a_default_of_an_input_decides_nothing():
    """The caller may give another target, which copies a size of the Reshape before it."""
    before = model_of("""
      g (float[6,4] x, int64[2] target = {4, 6}) => (float[N,M] y) <int64[2] first = {2, 12}>
      { a = Reshape (x, first) y = Reshape (a, target) }
    """)
    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    assert_agrees(before, {"x": x}, {"x": x, "target": np.array([0, -1], np.int64)})


def test_an_input_that_is_not_used_keeps_its_default():
    """Without one the caller would have to give it."""
    before = model_of("""
      g (float[2] x, float[2] w = {1, 2}) => (float[2] y) { a = Mul (x, w) y = Neg (x) }
    """)
    after = assert_agrees(before, {"x": np.ones(2, np.float32)})
    assert [node.op_type for node in after.graph.node] == ["Neg"]


def test_a_negative_size_is_not_known():
    """Some exporters write -1 for a size that is left open."""
    before = model_of("""
      g (float[N,3] x, float[3] scale) => (float[3] y)
      <int64[1] open = {-1}, int64[1] front = {0}, int64[1] next = {1}, float[3] two = {2, 2, 2},
       float[3] one = {1, 1, 1}>
      {
        shape = Shape (x)
        rows = Slice (shape, front, next)
        is_open = Equal (rows, open)
        factor = Where (is_open, two, one)
        y = Mul (factor, scale)
      }
    """)
    dim = before.graph.input[0].type.tensor_type.shape.dim[0]
    dim.Clear()
    dim.dim_value = -1
    scale = np.array([1, 2, 3], np.float32)
    assert_agrees(before, {"x": np.ones((2, 3), np.float32), "scale": scale})


def test_nodes_without_a_first_result_or_operand_stay():
    """Nothing looks inside of them; one that ONNX Runtime can run gives the same as before."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 2])
    last = helper.make_node("Neg", ["x"], ["y"])
    for op, operands in (("MatMul", ["x", "x"]), ("Identity", ["x"]), ("Concat", [""])):
        for outputs in ([], [""], ["", "z"]) if operands != [""] else (["z"],):
            node = helper.make_node(op, operands, outputs)
            for domain in ("", "other"):
                node.domain = domain
                graph = helper.make_graph([node, last], "g", [x], [y])
                after = jaxport.optimize(helper.make_model(graph))
                assert [node.op_type for node in after.graph.node] == [op, "Neg"]


def test_old_operator_sets_get_no_newer_nodes():
    """Squeeze took its axes as an attribute before opset 13, DepthToSpace had no mode before 11."""
    layers = """
      g (float[2,3,64,64] x) => (float[64,64] y) <int64 one = {1}, int64 two = {2}>
      { layer = Gather <axis = 0> (x, one) y = Gather <axis = 0> (layer, two) }
    """
    blocks = """
      g (float[1,8,4,4] x) => (float[1,2,8,8] y)
      <int64[6] split = {1, 2, 2, 2, 4, 4}, int64[4] joined = {1, 2, 8, 8}>
      {
        a = Reshape (x, split)
        b = Transpose <perm = [0, 1, 4, 2, 5, 3]> (a)
        y = Reshape (b, joined)
      }
    """
    for opset in (9, 12):
        for text, shape in ((layers, (2, 3, 64, 64)), (blocks, (1, 8, 4, 4))):
            before = parser.parse_model(f'<ir_version: 4, opset_import: ["" : {opset}]>\n{text}')
            x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
            assert_agrees(before, {"x": x})


def test_what_may_fail_stays_in_a_loop_that_may_take_no_step():
    """Division by zero, and an element of nothing, end the run."""
    before = model_of("""
      g (int64 n, float[K] x) => (int64 total, float y, float z)
      <int64 hundred = {100}, int64 start = {0}, float zero = {0.0}>
      {
        total, y, z = Loop (n, , start, zero, zero) <
          body = step (int64 i, bool go, int64 t, float a, float b)
            => (bool on, int64 t1, float a1, float b1)
          {
            on = Identity (go)
            part = Div (hundred, n)
            t1 = Add (t, part)
            first = Gather (x, start)
            a1 = Add (a, first)
            waves = Sin (x)
            wave = ReduceSum <keepdims = 0> (waves)
            b1 = Add (b, wave)
          }
        >
      }
    """)
    x = np.arange(3, dtype=np.float32)
    after = assert_agrees(before, {"n": np.array(0), "x": x[:0]}, {"n": np.array(3), "x": x})
    assert [node.op_type for node in after.graph.node] == ["Sin", "ReduceSum", "Loop"]


def test_a_scale_that_would_make_weights_vanish_stays():
    before = model_of("""
      g (float[1,2] x) => (float[1,2] y) <float[2,2] w = {1e-30, 1e-30, 0, 0}, float s = {1e-20}>
      { a = MatMul (x, w) y = Mul (a, s) }
    """)
    after = assert_agrees(before, {"x": np.array([[1e30, 2.0]], np.float32)})
    assert [node.op_type for node in after.graph.node] == ["MatMul", "Mul"]


def test_command_keeps_external_data(tmp_path, capfd, monkeypatch):
    weight = numpy_helper.from_array(np.arange(4096, dtype=np.float32).reshape(64, 64), "w")
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 64]) for n in "xy")
    nodes = [
        helper.make_node("Transpose", ["w"], ["t"]),
        helper.make_node("MatMul", ["x", "t"], ["z"]),
        helper.make_node("Identity", ["z"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", [x], [y], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(model, source, save_as_external_data=True, location="in.data", size_threshold=0)
    arguments = ["jaxport", "opt", str(source), "-o", str(target), "--counts"]
    monkeypatch.setattr(sys, "argv", arguments)
    assert command() == 0
    printed = capfd.readouterr().out
    assert "3 -> 1 nodes" in printed
    assert re.search(r"^ +move_weights +\d+ +[\d.]+ ms$", printed, re.MULTILINE)
    small = onnx.load(target, load_external_data=False)
    assert small.graph.initializer[0].data_location == TensorProto.EXTERNAL
    given = np.ones((2, 64), np.float32)
    expected = given @ np.arange(4096, dtype=np.float32).reshape(64, 64).T
    np.testing.assert_allclose(in_runtime(onnx.load(target), [given])[0], expected)
    assert [node.op_type for node in jaxport.optimize(str(source)).graph.node] == ["MatMul"]

# SPDX-License-Identifier: Apache-2.0
"""What has no lowering becomes a node that the user implements."""

from __future__ import annotations

import dataclasses
import importlib

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest
from jax import lax
from jax.extend.core import Primitive, jaxpr_as_fun
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

import jaxport

DOMAIN = "jaxport.custom"


def primitive(name, results=1):
    made = Primitive(name)
    made.multiple_results = results > 1
    made.def_abstract_eval(lambda x, **_: [x] * results if results > 1 else x)
    return made.bind


scale = primitive("scale")
both = primitive("both", results=2)


def op(name, run):
    """A class that ONNX's own evaluator calls for nodes of this name."""
    body = {
        "op_domain": DOMAIN,
        "_run": lambda self, *operands, **attributes: run(*operands, **attributes),
    }
    return type(name, (OpRun,), body)


SCALE = op("scale", lambda x, by=1.0, **_: (x * np.float32(by),))
BOTH = op("both", lambda x: (x + 1, x - 1))


def exported(fn, inputs, **options):
    model = jaxport.to_onnx(fn, inputs, on_unsupported="custom_op", return_mode="model", **options)
    proto = model.to_proto()
    onnx.checker.check_model(proto)
    return model, proto


def custom_nodes(graph):
    for node in graph.node:
        if node.domain == DOMAIN:
            yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from custom_nodes(attribute.g)


def run(proto, *arrays):
    names = [value.name for value in proto.graph.input]
    evaluator = ReferenceEvaluator(proto, new_ops=[SCALE, BOTH])
    return evaluator.run(None, dict(zip(names, arrays, strict=True)))


def test_a_node_has_the_name_the_parameters_and_the_types_of_its_equation():
    def fn(x):
        y = scale(
            x.T, by=2.5, count=3, is_wide=True, mode="high", axes=(0, 1), rates=(0.5, 2.0),
            names=("a", "b"), nothing=None, pairs=((1, 2), (3,)), dtype=np.dtype("int8"),
        )  # fmt: skip
        return jnp.sin(y)

    model, proto = exported(fn, [("B", 3)])
    (node,) = custom_nodes(proto.graph)
    assert node.op_type == "scale"
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    assert attributes == {
        "axes": [0, 1],
        "by": 2.5,
        "count": 3,
        "dtype": b"i8",
        "is_wide": 1,
        "mode": b"high",
        "names": [b"a", b"b"],
        "pairs": b"((1, 2), (3))",
        "rates": [0.5, 2.0],
    }
    assert {entry.domain: entry.version for entry in proto.opset_import}[DOMAIN] == 1
    types = {value.name: value.type.tensor_type for value in proto.graph.value_info}
    shape = [dim.dim_param or dim.dim_value for dim in types[node.output[0]].shape.dim]
    assert shape == [3, "B"]
    assert model.stats()["custom_ops"] == {f"{DOMAIN}::scale": 1}
    (finding,) = model.report.custom_ops
    assert finding.rule == "scale"
    assert finding.reason == "no lowering for primitive 'scale' at opset 23 (1 use)"
    assert f"test_custom_ops.py:{fn.__code__.co_firstlineno + 1} in " in finding.source
    assert "left to you: 1" in str(model.report)
    assert '"custom_ops"' in model.report.json()


def test_the_rest_is_converted_as_ever():
    """Also around it: a node between a norm and a product, with symbolic sizes."""

    def fn(x, w):
        normed = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
        up, down = both(scale(normed, by=2.0))
        return up @ w - down

    model, proto = exported(fn, [("B", 4), (4, 4)])
    assert model.stats()["ops"]["LayerNormalization"] == 1
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    w = np.eye(4, dtype=np.float32)
    np.testing.assert_allclose(run(proto, x, w)[0], np.full((3, 4), 2.0), atol=1e-5)


@pytest.mark.parametrize("precision", ["f16", "bf16"])
def test_beside_halves_they_stay_in_f32(precision):
    def fn(x, w):
        return scale(x @ w, by=2.0) @ w

    _, proto = exported(fn, [(2, 4), (4, 4)], precision=precision, target="onnx")
    (node,) = custom_nodes(proto.graph)
    types = {info.name: info.type.tensor_type.elem_type for info in proto.graph.value_info}
    assert types[node.output[0]] == onnx.TensorProto.FLOAT


def test_equations_that_differ_in_an_object_or_a_large_number_are_two():
    @dataclasses.dataclass(frozen=True)
    class Setting:
        number: int

    def fn(x):
        same = scale(x, by=Setting(1)) + scale(x, by=Setting(1))
        large = scale(x, by=2**70) + scale(x, by=2**64)
        return same + scale(x, by=Setting(2)) + large

    _, proto = exported(fn, [(2,)])
    values = {onnx.helper.get_attribute_value(n.attribute[0]) for n in custom_nodes(proto.graph)}
    assert values == {
        b'opaque<"Setting">',
        b'opaque<"Setting #2">',
        b'opaque<"1180591620717411303424">',
        b'opaque<"18446744073709551616">',
    }


def test_equations_in_branches_and_loops():
    def step(carry, x):
        return scale(carry, by=0.5) + x, both(carry)[0]

    def fn(x):
        total, seen = lax.scan(step, x[0], x)
        return lax.cond(x[0, 0] > 0, lambda v: scale(v, by=3.0), jnp.negative, total), seen

    model, proto = exported(fn, [(6, 3)])
    assert {node.op_type for node in custom_nodes(proto.graph)} == {"scale", "both"}
    assert sum(model.stats()["custom_ops"].values()) == len(list(custom_nodes(proto.graph)))
    x = np.ones((6, 3), np.float32)
    carry, seen = x[0], []
    for row in x:
        seen.append(carry + 1)
        carry = carry * np.float32(0.5) + row
    have = run(proto, x)
    np.testing.assert_allclose(have[0], 3 * carry, rtol=1e-6)
    np.testing.assert_allclose(have[1], np.stack(seen), rtol=1e-6)


def test_only_the_equations_that_are_refused_are_left():
    """One of two calls of a primitive has parameters that no op stands for."""

    def fn(x):
        plain, _ = lax.approx_max_k(x, 2)
        odd, _ = lax.approx_max_k(x, 2, aggregate_to_topk=False)
        return plain, odd

    with pytest.raises(jaxport.ConversionError) as caught:
        jaxport.to_onnx(fn, [(8,)])
    model, proto = exported(fn, [(8,)])
    (node,) = custom_nodes(proto.graph)
    assert node.op_type == "approx_top_k"
    assert model.report.custom_ops[0].reason.startswith(caught.value.message)
    assert "TopK" in model.stats()["ops"]


def test_two_names_of_onnx_are_not_mixed_up():
    """A primitive may be called as an op of ONNX is: no pass takes it for that."""
    negative = primitive("Neg")
    model, proto = exported(lambda x: negative(negative(x)), [(3,)])
    assert [node.op_type for node in custom_nodes(proto.graph)] == ["Neg", "Neg"]
    assert model.stats()["nodes"] == 2


def test_a_model_without_such_equations_is_the_same():
    fn = jax.nn.gelu
    plain = jaxport.to_onnx(fn, [("B", 3)], return_mode="model")
    model, _ = exported(fn, [("B", 3)])
    assert model.to_bytes() == plain.to_bytes()
    assert model.report.custom_ops == ()
    assert model.stats()["custom_ops"] == {}


def test_other_errors_stay_errors():
    with pytest.raises(jaxport.ConversionError) as caught:
        jaxport.to_onnx(lambda x: x[x > 0], [(4,)], on_unsupported="custom_op")
    assert caught.value.code == "E074"
    with pytest.raises(jaxport.ConversionError) as caught:
        jaxport.to_onnx(scale, [(4,)], on_unsupported="ignore")
    assert caught.value.code == "E075"


def test_what_is_left_to_the_user_cannot_be_verified():
    with pytest.raises(jaxport.ConversionError) as caught:
        jaxport.to_onnx(scale, [(4,)], on_unsupported="custom_op", verify=True)
    assert caught.value.code == "E103"
    assert "scale" in caught.value.message


def test_the_trace_of_such_a_program_is_converted_alike(tmp_path):
    """Parameters beside a problem of a decomposition are in the .jir text, too."""
    closed = jax.make_jaxpr(lambda x: both(x)[1])(np.ones(3, np.float32))
    model, _ = exported(jaxpr_as_fun(closed), [(3,)])
    assert "both" in model.jir()


def test_the_example_runs_in_three_ways():
    results = importlib.import_module("examples.custom_op").main()
    assert {"function", "evaluator"} <= set(results["have"])
    for have in results["have"].values():
        np.testing.assert_allclose(have, results["want"], rtol=1e-6)

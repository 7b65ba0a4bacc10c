# SPDX-License-Identifier: Apache-2.0
"""Plants one fault into a finished model, as a wrong lowering, rule, pass or dtype would."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SOURCE = "jaxport.source"

# Ops of one signature: any may stand for any other.
FAMILIES = (
    ("Abs", "Cos", "Erf", "Exp", "Neg", "Relu", "Sigmoid", "Sin", "Softplus", "Sqrt", "Tanh"),
    ("Add", "Div", "Max", "Min", "Mul", "Sub"),
    ("And", "Or", "Xor"),
    ("Greater", "GreaterOrEqual", "Less", "LessOrEqual"),
    ("LogSoftmax", "Softmax"),
    ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum"),
)
ORDERED = ("Concat", "Div", "Greater", "Less", "MatMul", "Pow", "Sub", "Where")


@dataclasses.dataclass(frozen=True)
class Plant:
    """A fault: what was done to which node, and the lines of the program that it belongs to."""

    kind: str
    op: str
    lines: frozenset[str]


def graphs(model: onnx.ModelProto) -> Iterator[Any]:
    """All graphs and functions with nodes."""

    def inside(graph: Any) -> Iterator[Any]:
        yield graph
        for node in graph.node:
            for attr in node.attribute:
                if attr.HasField("g"):
                    yield from inside(attr.g)

    yield from inside(model.graph)
    for function in model.functions:
        yield from inside(function)


def source(node: Any) -> str:
    return next((p.value for p in node.metadata_props if p.key == SOURCE), "")


def plant(model: onnx.ModelProto, random: np.random.Generator) -> Plant | None:
    """Alters one node or constant, chosen at random; None when this try found nothing to do."""
    owners = [(graph, node) for graph in graphs(model) for node in graph.node if source(node)]
    graph, node = owners[int(random.integers(len(owners)))]
    ways = list(WAYS.items())
    name, way = ways[int(random.integers(len(ways)))]
    op = node.op_type
    lines = frozenset([source(node)])
    done = way(model, graph, node, random)
    if not done:
        return None
    return Plant(name, op, done if isinstance(done, frozenset) else lines)


def _other_op(model: Any, graph: Any, node: Any, random: np.random.Generator) -> bool:
    for family in FAMILIES:
        if node.op_type in family:
            others = [op for op in family if op != node.op_type]
            node.op_type = others[int(random.integers(len(others)))]
            return True
    return False


def _other_order(model: Any, graph: Any, node: Any, random: np.random.Generator) -> bool:
    if node.op_type not in ORDERED or len(set(node.input)) < 2:
        return False
    node.input[-1], node.input[-2] = node.input[-2], node.input[-1]
    return True


def _other_attribute(model: Any, graph: Any, node: Any, random: np.random.Generator) -> bool:
    changes: dict[str, Callable[[Any], None]] = {
        "alpha": lambda a: setattr(a, "f", a.f * 1.5),
        "axis": lambda a: setattr(a, "i", 0 if a.i else -1),
        "epsilon": lambda a: setattr(a, "f", 0.1),
        "exclusive": lambda a: setattr(a, "i", 1 - a.i),
        "largest": lambda a: setattr(a, "i", 1 - a.i),
        "reverse": lambda a: setattr(a, "i", 1 - a.i),
        "scale": lambda a: setattr(a, "f", a.f * 1.5),
        "transB": lambda a: setattr(a, "i", 1 - a.i),
        "perm": lambda a: a.ints.__setitem__(slice(-2, None), list(a.ints)[:-3:-1]),
        "scan_input_directions": lambda a: a.ints.__setitem__(0, 1 - a.ints[0]),
    }
    found = [attr for attr in node.attribute if attr.name in changes]
    if not found:
        return False
    attr = found[int(random.integers(len(found)))]
    changes[attr.name](attr)
    return True


def _other_constant(model: Any, graph: Any, node: Any, random: np.random.Generator) -> Any:
    tensors = {t.name: t for g in graphs(model) if hasattr(g, "initializer") for t in g.initializer}
    used = [name for name in node.input if name in tensors]
    if not used:
        return False
    name = used[int(random.integers(len(used)))]
    array = numpy_helper.to_array(tensors[name]).copy()
    if array.dtype.kind != "f" or not array.size:
        return False
    flat = array.reshape(-1)
    if random.integers(2):
        flat *= 1.25
    flat[int(random.integers(array.size))] += 0.5
    tensors[name].CopyFrom(numpy_helper.from_array(array, name))
    return frozenset(source(n) for g in graphs(model) for n in g.node if name in n.input)


def _other_dtype(model: Any, graph: Any, node: Any, random: np.random.Generator) -> bool:
    """The results are rounded to 8 bits on the way, as by a Cast that was left out elsewhere."""
    result = node.output[0]
    types = {
        v.name: v.type.tensor_type.elem_type
        for v in onnx.shape_inference.infer_shapes(model).graph.value_info
    }
    if types.get(result) != TensorProto.FLOAT:
        return False
    position = list(graph.node).index(node)
    node.output[0] = f"{result}~wide"
    narrow = helper.make_node(
        "Cast", [node.output[0]], [f"{result}~narrow"], to=TensorProto.BFLOAT16
    )
    back = helper.make_node("Cast", [f"{result}~narrow"], [result], to=TensorProto.FLOAT)
    for cast in (narrow, back):
        cast.metadata_props.extend(node.metadata_props)
    graph.node.insert(position + 1, narrow)
    graph.node.insert(position + 2, back)
    return True


def _other_operand(model: Any, graph: Any, node: Any, random: np.random.Generator) -> bool:
    """One operand is another value, as after a wrong elimination of equal nodes."""
    position = list(graph.node).index(node)
    before = [name for n in list(graph.node)[:position] for name in n.output if name]
    own = [i for i, name in enumerate(node.input) if name in before]
    if not own or len(before) < 2:
        return False
    place = own[int(random.integers(len(own)))]
    others = [name for name in before if name != node.input[place]]
    node.input[place] = others[int(random.integers(len(others)))]
    return True


WAYS: dict[str, Callable[..., Any]] = {
    "attribute": _other_attribute,
    "constant": _other_constant,
    "dtype": _other_dtype,
    "op": _other_op,
    "operand": _other_operand,
    "order": _other_order,
}

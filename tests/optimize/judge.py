# SPDX-License-Identifier: Apache-2.0
"""Compares a model with what jaxport.optimize makes of it."""

import importlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime

import jaxport


@dataclass(frozen=True)
class NodeCase:
    """A model of ONNX's node tests with one set of inputs."""

    name: str
    model: onnx.ModelProto
    inputs: Sequence[Any]
    rtol: float
    atol: float


def node_cases(ops: Sequence[str] = ()) -> Iterator[NodeCase]:
    """All of ONNX's node tests, or those of the files with these names, which are made faster."""
    from onnx.backend.test.case import node

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tests divide by zero
        if ops:
            for op in ops:
                importlib.import_module(f"onnx.backend.test.case.node.{op}")
            found = list(node._NodeTestCases)
        else:
            found = node.collect_testcases(None)
    for case in found:
        if case.model is not None and case.data_sets:
            yield NodeCase(case.name, case.model, case.data_sets[0][0], case.rtol, case.atol)


def node_count(graph: onnx.GraphProto) -> int:
    """Nodes of a graph and of those inside it."""
    inner = [
        a.g for node in graph.node for a in node.attribute if a.type == onnx.AttributeProto.GRAPH
    ]
    return len(graph.node) + sum(node_count(g) for g in inner)


def in_runtime(model: onnx.ModelProto, inputs: Sequence[Any]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [given.name for given in session.get_inputs()]
    return list(session.run(None, dict(zip(names, inputs, strict=False))))


def in_reference(model: onnx.ModelProto, inputs: Sequence[Any]) -> list[Any]:
    from onnx.reference import ReferenceEvaluator

    names = [given.name for given in model.graph.input]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        feeds = dict(zip(names, inputs, strict=False))
        return list(ReferenceEvaluator(model).run(None, feeds))


def same(a: Any, b: Any, rtol: float, atol: float) -> bool:
    """Equal structure, dtypes and shapes, and values within the tolerances."""
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(_close(rtol, atol), a, b))
    if a is None or b is None:
        return a is b
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind in "OUSb":
        return bool((a == b).all())
    if a.dtype.kind not in "c":
        a, b = a.astype(np.float64), b.astype(np.float64)
    return bool(np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True))


def _close(rtol: float, atol: float) -> Any:
    return lambda a, b: same(a, b, rtol, atol)


def kept(before: onnx.ModelProto, after: onnx.ModelProto) -> str:
    """What must not change and did; empty when nothing did."""
    parts = {
        "inputs": lambda m: [x.SerializeToString() for x in m.graph.input],
        "outputs": lambda m: [x.SerializeToString() for x in m.graph.output],
        "functions": lambda m: [x.SerializeToString() for x in m.functions],
        "opsets": lambda m: [(x.domain, x.version) for x in m.opset_import],
        "metadata": lambda m: [(x.key, x.value) for x in m.metadata_props],
    }
    return ", ".join(name for name, part in parts.items() if part(before) != part(after))


def judge(case: NodeCase) -> str:
    """ "equal", "equal in reference", "not run", or what is wrong."""
    smaller = jaxport.optimize(case.model)
    if changed := kept(case.model, smaller):
        return f"changed {changed}"
    if node_count(smaller.graph) > node_count(case.model.graph):
        return "more nodes"
    narrow = "16" in case.name  # sums of 16-bit floats in another order
    rtol, atol = (case.rtol, case.atol) if narrow else (1e-5, 1e-6)
    for name, run in (("equal", in_runtime), ("equal in reference", in_reference)):
        try:
            expected = run(case.model, case.inputs)
        except Exception:  # each library says in its own way that it cannot
            continue
        try:
            found = run(smaller, case.inputs)
        except Exception as error:
            return f"does not run: {error}"
        return name if same(expected, found, rtol, atol) else "differs"
    return "not run"

# SPDX-License-Identifier: Apache-2.0
"""A primitive that ONNX has no op for is left to the runtime, and three ways to run it.

`middle` is the median of each row, which a library computes and says nothing else about. Around
it is a model like any other. docs/custom-ops.md explains each step.

    python -m examples.custom_op
"""

from __future__ import annotations

import importlib.util
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime
from jax.extend.core import Primitive
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

import jaxport

middle_p = Primitive("middle")
middle_p.def_impl(lambda x, *, lower: jnp.asarray(middle_of(np.asarray(x), lower)))
middle_p.def_abstract_eval(lambda x, *, lower: x.update(shape=x.shape[:-1]))


def middle_of(x: np.ndarray, lower: bool) -> np.ndarray:
    """What the library computes."""
    count = x.shape[-1]
    return np.sort(x, axis=-1)[..., (count - 1) // 2 if lower else count // 2]


def centred(x: jax.Array) -> jax.Array:
    """Rows without their median, in units of its deviation."""
    x = x - middle_p.bind(x, lower=False)[:, None]
    return x / (1.0 + middle_p.bind(jnp.abs(x), lower=True)[:, None])


def export() -> jaxport.Model:
    return jaxport.to_onnx(
        centred, [("B", 6)], on_unsupported="custom_op", return_mode="model", target="onnxruntime"
    )


# --- a function of the model: any runtime that knows ONNX


def with_function(model: onnx.ModelProto) -> onnx.ModelProto:
    """The op in terms of ONNX ops: the whole row is sorted by TopK."""
    nodes = [
        helper.make_node("Constant", [], ["six"], value_ints=[6]),
        helper.make_node("TopK", ["x", "six"], ["sorted", "places"], largest=0),
        helper.make_node("Constant", [], ["at"]),
        helper.make_node("Gather", ["sorted", "at"], ["y"], axis=-1),
    ]
    # lower=1 takes the third of six, lower=0 the fourth.
    at = nodes[2].attribute.add(name="value_int", type=onnx.AttributeProto.INT)
    at.ref_attr_name = "place"
    opset = [helper.make_opsetid("", 23)]
    function = helper.make_function(
        "jaxport.custom", "middle", ["x"], ["y"], nodes, opset, attributes=["place"]
    )
    model.functions.append(function)
    for node in model.graph.node:
        if node.domain == "jaxport.custom":
            (lower,) = node.attribute
            lower.CopyFrom(helper.make_attribute("place", 2 if lower.i else 3))
    return model


def in_onnxruntime(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": x})[0]


# --- a Python function, with onnxruntime-extensions


def in_extensions(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    """Its Python ops live in a domain of their own."""
    from onnxruntime_extensions import PyCustomOpDef, get_library_path, onnx_op

    @onnx_op(
        op_type="middle",
        inputs=[PyCustomOpDef.dt_float],
        outputs=[PyCustomOpDef.dt_float],
        attrs={"lower": PyCustomOpDef.dt_int64},
    )
    def _middle(x: Any, lower: Any = None) -> Any:
        return middle_of(x, bool(lower))

    for entry in (*model.graph.node, *model.opset_import):
        if entry.domain == "jaxport.custom":
            entry.domain = "ai.onnx.contrib"
    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(get_library_path())
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": x})[0]


# --- a Python class, in ONNX's own evaluator


class Middle(OpRun):
    op_domain = "jaxport.custom"

    def _run(self, x: np.ndarray, lower: int = 0) -> tuple[np.ndarray]:
        return (middle_of(x, bool(lower)),)


Middle.__name__ = "middle"  # the evaluator knows an op by the name of its class


def in_evaluator(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    return ReferenceEvaluator(model, new_ops=[Middle]).run(None, {"x": x})[0]


def main() -> dict[str, Any]:
    x = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    model = export()
    print(model.report)
    results = {
        "function": in_onnxruntime(with_function(model.to_proto()), x),
        "evaluator": in_evaluator(model.to_proto(), x),
    }
    if importlib.util.find_spec("onnxruntime_extensions"):
        results["extensions"] = in_extensions(model.to_proto(), x)
    want = np.asarray(centred(jnp.asarray(x)))
    for name, have in results.items():
        print(f"{name}: largest difference from JAX {np.abs(have - want).max():.1e}")
    return {"model": model, "have": results, "want": want}


if __name__ == "__main__":
    main()

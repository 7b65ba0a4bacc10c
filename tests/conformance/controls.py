# SPDX-License-Identifier: Apache-2.0
"""Cases with a known outcome: they show that the runner tells good models from bad ones."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import onnx
from jax.extend.core import Primitive

from conformance.case import Case, Program
from conformance.harness import program_of

_unknown_p = Primitive("conformance_unknown")
_unknown_p.def_abstract_eval(lambda x: x)
_unknown_p.def_impl(np.asarray)  # which cannot be traced, so that it is no definition
jax.interpreters.mlir.register_lowering(_unknown_p, lambda _, x: [x])


@dataclasses.dataclass(frozen=True)
class Control:
    """A case, the outcome it must have, and what is done to its model before it is checked."""

    case: Case
    outcome: str
    alter: Callable[[onnx.ModelProto], None] = lambda model: None
    seconds: float | None = None  # another limit of time than that of all cases


def _case(name: str, fn: Callable[..., Any]) -> Case:
    return _with_arguments(name, lambda: np.linspace(-2, 2, 5, dtype=np.float32), fn)


def _with_arguments(
    name: str, make_argument: Callable[[], Any], fn: Callable[..., Any] = jax.numpy.sin
) -> Case:
    def program() -> Program:
        return program_of(fn, [make_argument()], "control")

    return Case(name, "control", "float32", program)


def _perturb(model: onnx.ModelProto) -> None:
    """Makes every Sin a Cos."""
    for node in model.graph.node:
        if node.op_type == "Sin":
            node.op_type = "Cos"


def _break_type(model: onnx.ModelProto) -> None:
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT32


def _name_unknown_op(model: onnx.ModelProto) -> None:
    """A node of a domain that the checker must leave alone and the runtime does not know."""
    model.graph.node[0].domain = "nowhere"
    model.opset_import.add(domain="nowhere", version=1)


def _declare_older_opset(model: onnx.ModelProto) -> None:
    model.opset_import[0].version = 6


CONTROLS = [
    Control(_case("control_sin", jax.numpy.sin), "pass"),
    Control(_case("control_perturbed", jax.numpy.sin), "wrong value", _perturb),
    Control(_case("control_wrong_type", jax.numpy.sin), "checker", _break_type),
    Control(_case("control_unknown_op", jax.numpy.sin), "not loadable", _name_unknown_op),
    Control(_case("control_newer_op", jax.numpy.sin), "checker", _declare_older_opset),
    Control(_case("control_unknown_primitive", lambda x: _unknown_p.bind(x)), "error E012"),
    Control(_with_arguments("control_dies", lambda: os._exit(3)), "crash"),
    Control(_with_arguments("control_endless", lambda: time.sleep(3600)), "timeout", seconds=10),
]

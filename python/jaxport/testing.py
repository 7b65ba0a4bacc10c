# SPDX-License-Identifier: Apache-2.0
"""Tests of what a model looks like: expect_graph. docs/testing-models.md has examples."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from . import _core
from .model import Model

# "Gemm:Bx10 -> Relu", ("Gemm", {"counts": {"Gemm": 1}}) or {"path": "Gemm", "graph": "top"}
Spec = str | tuple[str, Mapping[str, Any]] | Mapping[str, Any]
Size = int | str | None


class GraphCheck:
    """What expect_graph returns: called with a model, it says whether the model is as expected."""

    def __init__(self, expectation: str, explain_on_fail: bool) -> None:
        _core.check_expectation(expectation)
        self._expectation = expectation
        self._explain_on_fail = explain_on_fail

    def __call__(self, model: Any) -> bool:
        """Whether the model is as expected; prints what is not, unless explain_on_fail is False.

        Args:
            model: an onnx.ModelProto, bytes, a path, a jaxport.Model or an onnx_ir.Model.
        """
        report = self.explain(model)
        if report and self._explain_on_fail:
            print(f"expect_graph does not hold:\n{report}", end="")
        return not report

    def explain(self, model: Any) -> str:
        """What the model does not fulfil: expected and found side by side. Empty when all holds."""
        return _core.unfulfilled(source_of(model), self._expectation)


def expect_graph(
    specs: Sequence[Spec],
    *,
    symbols: Mapping[str, Size] | None = None,
    mode: Literal["all", "any"] = "all",
    must_absent: Iterable[str] | None = None,
    no_unused_inputs: bool = False,
    no_unused_function_inputs: bool = False,
    search_functions: bool = False,
    explain_on_fail: bool = True,
    search_subgraphs: bool = False,
    passthrough: Iterable[str] | None = None,
) -> GraphCheck:
    """A check of the structure of a model: `assert expect_graph(["Gemm -> Relu"])(model)`.

    Args:
        specs: paths, "Gemm:Bx10 -> Relu -> Gemm:Bx2": each op uses a result of the one before,
            and the first result of an op has the shape after its colon (numbers, names, "?"). An
            entry may also be (path, options) or a mapping of "path" and options: "counts" (exact
            number of nodes by op), "must_absent", "attrs" (by op), "inputs" (of the last node: by
            position "const", "const_bool", "initializer_name", "absent"), "symbols", "graph".
        symbols: sizes of names; a name stands for one size in each path, whether or not it is here.
        mode: "all" paths must hold, or "any" of them.
        must_absent: ops that no output may depend on.
        no_unused_inputs: every input of the model is used.
        no_unused_function_inputs: every input of a function is used; needs search_functions.
        search_functions: look into the model's functions too.
        explain_on_fail: print what does not hold.
        search_subgraphs: look into the bodies of If, Loop and Scan too.
        passthrough: ops that a path may leave out; by default those that only carry a value along
            (Reshape, Identity, Cast, …, and Add).

    Raises:
        ConversionError: E090 when the specification cannot be used.
    """
    expectation = {
        "specs": [_entry(spec) for spec in specs],
        "symbols": symbols,
        "mode": mode,
        "must_absent": _texts(must_absent),
        "no_unused_inputs": no_unused_inputs,
        "no_unused_function_inputs": no_unused_function_inputs,
        "search_functions": search_functions,
        "search_subgraphs": search_subgraphs,
        "passthrough": _texts(passthrough),
    }
    return GraphCheck(json.dumps(_plain(expectation)), explain_on_fail)


def specification(model: Any) -> str:
    """The call of expect_graph that a model fulfils, ready to paste; as `jaxport expect` prints."""
    return _core.specification(source_of(model))


def source_of(model: Any) -> bytes | str:
    """A model as the compiler reads it: bytes, or the name of a file."""
    if isinstance(model, Model):
        return model.to_bytes()
    if isinstance(model, bytes):
        return model
    if isinstance(model, str | os.PathLike):
        return str(model)
    if type(model).__module__.split(".")[0] == "onnx_ir":
        import onnx_ir

        model = onnx_ir.to_proto(model)
    serialized: bytes = model.SerializeToString()
    return serialized


def _entry(spec: Spec) -> Any:
    if not isinstance(spec, tuple):
        return spec
    path, options = spec
    return {"path": path, **options}


def _texts(items: Iterable[str] | None) -> list[str] | None:
    return [items] if isinstance(items, str) else items if items is None else list(items)


def _plain(value: Any) -> Any:
    """A value as JSON holds it: arrays as lists, sets as lists, infinities as texts."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, str | bool | int | None):
        return value
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return _plain(np.asarray(value).tolist())

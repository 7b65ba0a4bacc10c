# SPDX-License-Identifier: Apache-2.0
"""One case: convert, check, load, run, compare. The result is an outcome, never an exception."""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import onnx
import onnxruntime

import jaxport
from conformance.harness import Case
from conformance.outcome import Outcome
from conformance.ties import settled
from conformance.tolerances import difference
from jaxport import _jax, runtime


def check(
    case: Case, opset: int, alter: Callable[[onnx.ModelProto], None] = lambda model: None
) -> Outcome:
    """The outcome of a case at an opset; `alter` changes the model before it is checked."""
    start = time.perf_counter()
    kind, detail = _run(case, opset, alter)
    seconds = round(time.perf_counter() - start, 3)
    return Outcome(case.name, case.group, case.dtype, kind, _one_line(detail), seconds)


@dataclasses.dataclass
class _CaseError(Exception):
    kind: str
    detail: str


def _run(case: Case, opset: int, alter: Callable[[onnx.ModelProto], None]) -> tuple[str, str]:
    try:
        arguments = case.make_arguments()
        expected = jax.tree.leaves(jax.jit(case.fn)(*arguments))
    except Exception as error:
        return "not run by jax", f"{type(error).__name__}: {error}"
    try:
        model = _converted(case, arguments, opset)
        alter(model)
        _check_model(model)
        outputs = _outputs(model, [_jax.host_array(value) for value in jax.tree.leaves(arguments)])
        _compare(case, arguments, expected, outputs)
    except _CaseError as failure:
        return failure.kind, failure.detail
    return "pass", ""


def _converted(case: Case, arguments: list[Any], opset: int) -> onnx.ModelProto:
    double = bool(jax.config.jax_enable_x64)
    try:
        return jaxport.to_onnx(case.fn, arguments, opset=opset, enable_double_precision=double)
    except jaxport.ConversionError as error:
        raise _CaseError(f"error {error.code}", error.message) from None
    except Exception as error:
        raise _CaseError("crash", f"{type(error).__name__}: {error}") from None


def _check_model(model: onnx.ModelProto) -> None:
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:
        raise _CaseError("checker", str(error)) from None
    opset = next(entry.version for entry in model.opset_import if entry.domain == "")
    for node in _nodes(model.graph):
        if not onnx.defs.has(node.op_type, max_inclusive_version=opset):
            raise _CaseError("checker", f"{node.op_type} is newer than opset {opset}")


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        if node.domain == "":
            yield node
        for attribute in node.attribute:
            for nested in (attribute.g, *attribute.graphs):
                yield from _nodes(nested)


def _unpacked(want: np.ndarray, have: np.ndarray) -> np.ndarray:
    """Complex numbers cross the border of a model as a last axis of two parts."""
    is_packed = np.iscomplexobj(want) and have.dtype == want.real.dtype and have.shape[-1:] == (2,)
    return np.ascontiguousarray(have).view(want.dtype)[..., 0] if is_packed else have


def _outputs(model: onnx.ModelProto, inputs: list[np.ndarray]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        raise _CaseError("not loadable", str(error)) from None
    try:
        return list(runtime.run(session, inputs).values())
    except Exception as error:
        raise _CaseError("crash", f"ONNX Runtime: {error}") from None


def _compare(
    case: Case, arguments: list[Any], expected: list[Any], outputs: list[np.ndarray]
) -> None:
    if len(expected) != len(outputs):
        raise _CaseError("wrong value", f"{len(outputs)} outputs, JAX has {len(expected)}")
    wanted = [np.asarray(value) for value in expected]
    given = [_unpacked(want, have) for want, have in zip(wanted, outputs, strict=True)]
    pairs = zip(settled(case, arguments, wanted), settled(case, arguments, given), strict=True)
    for i, (want, have) in enumerate(pairs):
        found = difference(want, have, case.group)
        if found:
            raise _CaseError("wrong value", f"output {i} {found}")


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()[:300]

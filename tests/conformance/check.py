# SPDX-License-Identifier: Apache-2.0
"""One case: convert, check, load, run, compare. The result is an outcome, never an exception."""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime

import jaxport
from conformance import source
from conformance.case import Case, Program, nodes
from conformance.controls import CONTROLS
from conformance.outcome import Outcome
from jaxport import runtime
from jaxport.errors import first_line


def start(source_name: str, opset: int) -> Callable[[str], Outcome]:
    """What a worker process does: from the name of a case or a control to its outcome."""
    cases = {case.name: case for case in source.cases(source_name)}
    altered = {control.case.name: control for control in CONTROLS}

    def run(name: str) -> Outcome:
        if name in altered:
            return check(altered[name].case, opset, altered[name].alter)
        return check(cases[name], opset)

    return run


def check(
    case: Case, opset: int, alter: Callable[[onnx.ModelProto], None] = lambda model: None
) -> Outcome:
    """The outcome of a case at an opset; `alter` changes the model before it is checked."""
    begin = time.perf_counter()
    facts: dict[str, Any] = {}
    kind, detail = _run(case, opset, alter, facts)
    seconds = round(time.perf_counter() - begin, 3)
    return Outcome(case.name, case.group, case.dtype, kind, one_line(detail), seconds, facts)


@dataclasses.dataclass
class CaseError(Exception):
    """What is wrong, as the kind of an outcome."""

    kind: str
    detail: str


def _run(
    case: Case, opset: int, alter: Callable[[onnx.ModelProto], None], facts: dict[str, Any]
) -> tuple[str, str]:
    refusal: CaseError | None = None
    try:
        program = case.program()
        begin = time.process_time()  # of a machine that does other things too
        try:
            model = converted(program, opset)
        except CaseError as failure:
            refusal = failure
        facts["conversion"] = round(time.process_time() - begin, 3)
        expected = program.expected()  # after the conversion: it may change the state of a module
    except Exception as error:
        if case.compares_refusals and (found := _unlike(error, refusal)):
            return "another refusal", found
        return case.without_jax, f"{type(error).__name__}: {error}"
    if refusal:
        return refusal.kind, refusal.detail
    try:
        alter(model)
        facts.update(program.facts(model))
        check_model(model)
        _compare(program, expected, session_of(model))
        _object(program.objection(model), "unlike the case")
    except CaseError as failure:
        return failure.kind, failure.detail
    return "pass", ""


def _unlike(error: Exception, refusal: CaseError | None) -> str | None:
    """What is wrong with our answer to a program that JAX refuses with this error."""
    said = f"{type(error).__name__}: {first_line(error)}"
    if refusal is None:
        return f"converted, JAX says {said}"
    if said in refusal.detail:
        return None
    return f"{refusal.kind} {refusal.detail}; JAX says {said}"


def _object(found: str | None, kind: str) -> None:
    if found:
        raise CaseError(kind, found)


def converted(program: Program, opset: int) -> onnx.ModelProto:
    """jaxport's model of a program. Raises CaseError where there is none."""
    try:
        return jaxport.to_onnx(program.fn, program.inputs, **{"opset": opset, **program.options})
    except jaxport.ConversionError as error:
        raise CaseError(f"error {error.code}", error.message) from None
    except Exception as error:
        raise CaseError("crash", f"{type(error).__name__}: {error}") from None


def check_model(model: onnx.ModelProto) -> None:
    """Raises CaseError where a model breaks the ONNX specification."""
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:
        raise CaseError("checker", str(error)) from None
    opset = next(entry.version for entry in model.opset_import if entry.domain == "")
    for node in nodes(model):
        if node.domain == "" and not onnx.defs.has(node.op_type, max_inclusive_version=opset):
            raise CaseError("checker", f"{node.op_type} is newer than opset {opset}")


def session_of(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    """Raises CaseError where ONNX Runtime refuses the model."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        raise CaseError("not loadable", str(error)) from None


def _compare(
    program: Program, expected: list[np.ndarray] | None, session: onnxruntime.InferenceSession
) -> None:
    if expected is None:
        return
    outputs = outputs_of(program, session)
    if len(expected) != len(outputs):
        raise CaseError("wrong value", f"{len(outputs)} outputs, JAX has {len(expected)}")
    _object(program.difference(expected, outputs), "wrong value")


def outputs_of(program: Program, session: onnxruntime.InferenceSession) -> list[np.ndarray]:
    """The results of a model. Raises CaseError where it does not run."""
    try:
        return list(runtime.run(session, inputs_of(program, session)).values())
    except Exception as error:
        raise CaseError("crash", f"ONNX Runtime: {error or type(error).__name__}") from None


def inputs_of(program: Program, session: onnxruntime.InferenceSession) -> list[np.ndarray]:
    """The values of the inputs of a model, in its order."""
    in_order = iter(program.arguments)
    names = [value.name for value in session.get_inputs()]
    return [program.named[n] if n in program.named else next(in_order) for n in names]


def one_line(text: str) -> str:
    """The beginning of a text, fit for a table."""
    return re.sub(r"\s+", " ", text).strip()[:300]

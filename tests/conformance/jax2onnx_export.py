# SPDX-License-Identifier: Apache-2.0
"""jax2onnx's own models of its cases, for the size of ours beside them.

A process that runs this must convert nothing with jaxport: jax2onnx patches JAX while it converts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import onnx

from conformance import jax2onnx_cases
from conformance.case import Case
from conformance.outcome import Outcome


def start(opset: int, path_of: Callable[[str], Path] | None = None) -> Callable[[str], Outcome]:
    """What a worker process does: from the name of a case to the size of jax2onnx's model.

    The model becomes a file where `path_of` names one.
    """
    cases = {case.name: case for case in jax2onnx_cases.described_cases()}
    return lambda name: _export(cases[name], opset, path_of and path_of(name))


def _export(case: Case, opset: int, path: Path | None) -> Outcome:
    import jax2onnx

    begin = time.perf_counter()
    try:
        program = case.program()
        options = {"opset": opset, **program.options}
        model = jax2onnx.to_onnx(program.fn, program.inputs, **options)
        facts = program.facts(model)
        if path:
            onnx.save(model, path)
        kind, detail = "pass", ""
    except Exception as error:
        kind, detail, facts = "crash", f"{type(error).__name__}: {error}"[:300], {}
    seconds = round(time.perf_counter() - begin, 3)
    return Outcome(case.name, case.group, case.dtype, kind, detail, seconds, facts)

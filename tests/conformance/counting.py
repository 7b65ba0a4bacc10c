# SPDX-License-Identifier: Apache-2.0
"""The nodes of our models of jax2onnx's cases, which are converted and not run: in little time."""

from __future__ import annotations

import time
from collections.abc import Callable

from conformance import check, source
from conformance.case import Case
from conformance.outcome import Outcome


def start(opset: int) -> Callable[[str], Outcome]:
    """What a worker process does: from the name of a case to the nodes of our model."""
    cases = {case.name: case for case in source.cases("jax2onnx")}
    return lambda name: _count(cases[name], opset)


def _count(case: Case, opset: int) -> Outcome:
    begin = time.perf_counter()
    try:
        program = case.program()
        facts = program.facts(check.converted(program, opset))
        kind, detail = "pass", ""
    except check.CaseError as error:
        kind, detail, facts = error.kind, check.one_line(error.detail), {}
    except Exception as error:
        kind, detail, facts = "crash", check.one_line(f"{type(error).__name__}: {error}"), {}
    seconds = round(time.perf_counter() - begin, 3)
    return Outcome(case.name, case.group, case.dtype, kind, detail, seconds, facts)

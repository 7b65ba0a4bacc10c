# SPDX-License-Identifier: Apache-2.0
"""What speaks for a model that is larger than jax2onnx's: an input, or its time.

A witness is an input of the case at which our model gives JAX's numbers and jax2onnx's gives others
or does not run; one is enough where jax2onnx's model is invalid or does not load. Inputs are tried
until one shows a difference: that of the case first, then those of hostile.py. Where there is none,
both models are run in turns, and the least times are compared.
"""

from __future__ import annotations

import dataclasses
import hashlib
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime

from conformance import check, hostile, source
from conformance.case import Case, Program, unpacked
from conformance.check import CaseError
from conformance.evidence import FASTER, NONE, SIGN, Evidence
from conformance.outcome import Outcome

TRIES = 30.0  # seconds of trying inputs for one case
OURS, THEIRS = 64, 1024  # units in the last place: at most, at least
MARGIN = 16  # how much larger the error of jax2onnx's model must be than that of ours
# What ONNX Runtime says of an input that a model does not take: that is not the model's fault.
NOT_FED = ("Unexpected input data type", "invalid dimensions for input", "Invalid rank for input")
# Runs a model on arrays.
ALONE = """
import sys, numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.log_severity_level = 4
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
session.run(None, dict(numpy.load(sys.argv[2])))
"""
FASTER_FROM = 0.97  # of the time of jax2onnx's model
ROUNDS, ROUND = 40, 2e-3  # turns of each model, and about how long each takes
LARGE = 1024  # the size of symbols when time is measured, beside that of the case


def model_path(folder: Path, case: str) -> Path:
    """Where jax2onnx's model of a case is kept."""
    return folder / f"{hashlib.sha256(case.encode()).hexdigest()[:16]}.onnx"


def start(
    opset: int, path_of: Callable[[str], Path], before: Mapping[str, str]
) -> Callable[[str], Outcome]:
    """What a worker does: from the name of a case to an outcome whose facts are the evidence.

    `path_of` names the file of jax2onnx's model; `before` are inputs that were found earlier, which
    are tried first.
    """
    cases = {case.name: case for case in source.cases("jax2onnx")}

    def run(name: str) -> Outcome:
        begin = time.perf_counter()
        case = cases[name]
        try:
            found = _evidence(case, opset, path_of(name), before.get(name))
            kind, detail, facts = "pass", "", dataclasses.asdict(found)
        except CaseError as error:
            kind, detail, facts = error.kind, check.one_line(error.detail), {}
        except Exception as error:
            kind, detail, facts = "crash", check.one_line(f"{type(error).__name__}: {error}"), {}
        seconds = round(time.perf_counter() - begin, 3)
        return Outcome(name, case.group, case.dtype, kind, detail, seconds, facts)

    return run


@dataclasses.dataclass(frozen=True)
class _Duel:
    """Both models of one case."""

    program: Program
    nodes: tuple[int, int]
    ours: onnxruntime.InferenceSession
    theirs: onnxruntime.InferenceSession
    their_model: onnx.ModelProto

    def evidence(self, kind: str, change: str, detail: str) -> Evidence:
        return Evidence(kind, change, self.nodes, _short(detail))

    def has_equal_borders(self) -> bool:
        """Whether both take the same inputs: only then a result of jax2onnx's model means much."""
        borders = [
            ([self._border(v) for v in s.get_inputs()], len(s.get_outputs()))
            for s in (self.ours, self.theirs)
        ]
        (ours, results), (theirs, others) = borders
        return results == others and list(filter(None, ours)) == list(filter(None, theirs))

    def _border(self, value: onnxruntime.NodeArg) -> tuple[str, int] | None:
        """The type and the rank of an input; of one that is given by name the place is free."""
        return None if value.name in self.program.named else (value.type, len(value.shape))


def _evidence(case: Case, opset: int, path: Path, before: str | None) -> Evidence:
    program = case.program()
    return judged(program, check.converted(program, opset), onnx.load(path), before)


def judged(
    program: Program, model: onnx.ModelProto, theirs: onnx.ModelProto, before: str | None = None
) -> Evidence:
    """What speaks for our model of a program beside that of jax2onnx."""
    check.check_model(model)
    ours = check.session_of(model)
    nodes = program.facts(model)["nodes"], program.facts(theirs)["nodes"]
    try:
        check.check_model(theirs)
        duel = _Duel(program, nodes, ours, check.session_of(theirs), theirs)
    except CaseError as error:
        return Evidence(error.kind, hostile.AS_GIVEN, nodes, _short(error.detail))
    if not duel.has_equal_borders():
        return duel.evidence(NONE, hostile.AS_GIVEN, "inputs or outputs of another number or type")
    return _witness(duel, before) or _raced(duel)


def _witness(duel: _Duel, before: str | None) -> Evidence | None:
    """The first input at which values differ; if there is none, one at which signs of zero do."""
    program, begin = duel.program, time.perf_counter()
    weak: Evidence | None = None
    candidates = hostile.candidates(program.values, program.sized is not None)
    for change in (*filter(None, [before]), hostile.AS_GIVEN, *candidates):
        if time.perf_counter() - begin > TRIES:
            break
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                found = _shown(duel, change)
        except Exception:  # JAX or our model refuses the input: it shows nothing
            continue
        if found and found.kind != SIGN:
            return found
        weak = weak or found
    return weak


def _shown(duel: _Duel, change: str) -> Evidence | None:
    """What an input shows; nothing where our own model differs from JAX."""
    assert duel.program.at
    program = duel.program.at(hostile.changed(duel.program.values, change, duel.program.sized))
    wanted = program.expected()
    ours = check.outputs_of(program, duel.ours)
    if wanted is None or program.difference(wanted, ours) is not None:
        return None
    if change == hostile.EMPTY and _kills(duel, program):
        return duel.evidence("does not run", change, "ONNX Runtime ends the process by a signal")
    try:
        theirs = check.outputs_of(program, duel.theirs)
    except CaseError as error:
        is_ours = any(text in error.detail for text in NOT_FED)
        return None if is_ours else duel.evidence("does not run", change, error.detail)
    theirs = list(map(_as_jax, wanted, theirs))
    found = program.difference(wanted, theirs)
    if found:
        # Two orders of a sum differ, too: such a difference says nothing.
        is_clear = ": shape " not in found and _error(wanted, theirs) > MARGIN * _error(
            wanted, ours
        )
        return _told(duel, "wrong value", change, wanted, theirs) if is_clear else None
    if all(want.tobytes() == have.tobytes() for want, have in zip(wanted, theirs, strict=True)):
        return None
    if _units(wanted, ours) <= OURS and _units(wanted, theirs) >= THEIRS:
        return _told(duel, "digits", change, wanted, theirs)
    if _has_signs_of_zero(wanted, ours) and not _has_signs_of_zero(wanted, theirs):
        return duel.evidence(SIGN, change, "")
    return None


def _kills(duel: _Duel, program: Program) -> bool:
    """Whether jax2onnx's model ends the process, which is one of its own here."""
    names = (value.name for value in duel.theirs.get_inputs())
    feeds = dict(zip(names, check.inputs_of(program, duel.theirs), strict=True))
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(duel.their_model, f"{folder}/model.onnx")
        np.savez(f"{folder}/feeds.npz", **feeds)
        command = [sys.executable, "-c", ALONE, f"{folder}/model.onnx", f"{folder}/feeds.npz"]
        return subprocess.run(command, capture_output=True, check=False).returncode < 0


def _as_jax(want: np.ndarray, have: np.ndarray) -> np.ndarray:
    """A result in JAX's dtype: another one shows nothing here."""
    is_real = not np.iscomplexobj(want) and not np.iscomplexobj(have)
    return have.astype(want.dtype) if is_real else have


def _told(
    duel: _Duel, kind: str, change: str, wanted: Sequence[np.ndarray], theirs: Sequence[np.ndarray]
) -> Evidence:
    """Names the element that is most wrong."""
    worst: tuple[float, str] = (-1.0, "")
    for k, (want, have) in enumerate(zip(wanted, theirs, strict=True)):
        a, b = _flat(want), _flat(unpacked(want, have))
        if a.size and a.shape == b.shape:
            error = _relative(a, b)
            i = int(np.argmax(error))
            where = f"y{k}[{i}]" if len(wanted) > 1 else f"y[{i}]"
            worst = max(worst, (float(error[i]), f"{where} is {b[i]:.9g}, JAX has {a[i]:.9g}"))
    return duel.evidence(kind, change, worst[1])


def _flat(array: np.ndarray) -> np.ndarray:
    return np.ravel(array).astype(np.complex128 if np.iscomplexobj(array) else np.float64)


def _relative(want: np.ndarray, have: np.ndarray) -> np.ndarray:
    """Relative errors; infinite where only one side is finite or a number."""
    error = np.abs(have - want) / np.maximum(np.abs(want), 1e-300)
    error = np.where((have == want) | (np.isnan(have) & np.isnan(want)), 0.0, error)
    return np.where(np.isnan(error), np.inf, error)


def _error(wanted: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> float:
    """The largest error, for the largest element of each result."""
    largest = 0.0
    for want, have in zip(wanted, results, strict=True):
        a, b = _flat(want), _flat(unpacked(want, have))
        size = float(np.abs(a[np.isfinite(a)]).max(initial=0.0)) or 1.0
        is_same = (a == b) | (np.isnan(a) & np.isnan(b))
        error = np.where(is_same, 0.0, np.abs(a - b) / size)
        largest = max(largest, float(np.where(np.isnan(error), np.inf, error).max(initial=0.0)))
    return largest


def _units(wanted: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> float:
    """The largest error in units in the last place of elements of normal size."""
    largest = 0.0
    for want, have in zip(wanted, results, strict=True):
        if jnp.issubdtype(want.dtype, jnp.floating) and want.shape == have.shape:
            info = jnp.finfo(want.dtype)
            a, b = _flat(want), _flat(have)
            is_normal = np.isfinite(a) & (np.abs(a) > float(info.tiny) / float(info.eps))
            error = _relative(a[is_normal], b[is_normal]) / float(info.eps)
            largest = max(largest, float(error.max(initial=0.0)))
    return largest


def _has_signs_of_zero(wanted: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> bool:
    """Whether zeros have the signs that they have in JAX."""
    for want, have in zip(wanted, results, strict=True):
        if jnp.issubdtype(want.dtype, jnp.floating) and want.shape == have.shape:
            is_zero = (want == 0) & (have == 0)
            if np.any(is_zero & (np.signbit(want) != np.signbit(have))):
                return False
    return True


def _raced(duel: _Duel) -> Evidence:
    """The least times of both models, in turns: at the sizes of the case, then at large ones."""
    found = [_race(duel, hostile.AS_GIVEN)]
    if found[0].kind != FASTER and duel.program.sized:
        found.append(_race(duel, f"B = {LARGE}"))
    return next((e for e in found if e.kind == FASTER), found[0])


def _race(duel: _Duel, change: str) -> Evidence:
    assert duel.program.at
    program = duel.program.at(hostile.changed(duel.program.values, change, duel.program.sized))
    try:
        runs = [_prepared(program, session) for session in (duel.ours, duel.theirs)]
        counts = [max(1, int(ROUND / max(_seconds(run, 2), 1e-9))) for run in runs]
        turns = [
            [_seconds(run, n) for run, n in zip(runs, counts, strict=True)] for _ in range(ROUNDS)
        ]
    except Exception as error:
        return duel.evidence(NONE, change, f"not measured: {error}")
    ratio = min(t[0] for t in turns) / min(t[1] for t in turns)
    kind = FASTER if ratio <= FASTER_FROM else NONE
    return duel.evidence(kind, change, f"{ratio:.2f} of the time")


def _prepared(program: Program, session: onnxruntime.InferenceSession) -> Callable[[], object]:
    """A run of a model whose inputs lie ready."""
    arrays = map(np.ascontiguousarray, check.inputs_of(program, session))
    names = [value.name for value in session.get_inputs()]
    feeds = {
        n: onnxruntime.OrtValue.ortvalue_from_numpy(a) for n, a in zip(names, arrays, strict=True)
    }
    outputs = [value.name for value in session.get_outputs()]
    return lambda: session.run_with_ort_values(outputs, feeds)


def _seconds(run: Callable[[], object], count: int) -> float:
    """The time of one run, from several in a row."""
    begin = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - begin) / count


def _short(text: str) -> str:
    return check.one_line(text)[:160]

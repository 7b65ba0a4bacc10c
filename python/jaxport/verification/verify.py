# SPDX-License-Identifier: Apache-2.0
"""jaxport.verify."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any

from .. import _core, _jax, runtime
from ..comparison import numpy_dtype
from ..errors import ConversionError, first_line
from ..inputs import Inputs
from ..model import Model
from .cases import Array, Case, Question, Sizes, choices, inputs_of, question_of, why_skipped
from .certificate import external_sha256_of, sha256_of, write_certificate
from .diagnosis import Diagnosis, diagnose
from .exact import rounding_explains
from .layers import NodeError, errors_of_nodes
from .results import Check, Output, Verdict, Verification


def verify(
    fn: Callable[..., Any],
    model: Any,
    inputs: Inputs | None = None,
    input_params: Mapping[str, Any] | None = None,
    *,
    sizes: Sizes | None = None,
    enable_double_precision: bool = False,
    inputs_as_nchw: Sequence[int] | None = None,
    outputs_as_nchw: Sequence[int] | None = None,
    certificate: str | os.PathLike[str] | None = None,
    replay: str | os.PathLike[str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Verification:
    """Compares a model in ONNX Runtime with its function in JAX, and finds where they part.

    When all outputs agree, each choice of sizes costs one run of JAX and one of the model.
    docs/verification.md says what happens when they do not.

    Args:
        fn: what was converted, in any form that to_onnx takes.
        model: a path, or the model itself: bytes, a jaxport.Model or an onnx.ModelProto.
        inputs: as to_onnx takes them. Arrays are used as they are; shapes are filled with random
            numbers of a fixed seed. By default the inputs that the model declares.
        input_params: keyword arguments of fn; those that are inputs of the model are fed to it.
        sizes: of symbolic dims, such as {"B": [1, 8]}, or a list of such dicts, one for each run.
            By default two runs: small sizes that differ, and 1 for all.
        enable_double_precision, inputs_as_nchw, outputs_as_nchw: as in to_onnx.
        certificate: a file for what was compared, which `jaxport check --certificate` reads.
            Written when the model is not off.
        replay: a folder for a small program that shows a difference; by default a temporary one.
        options: of to_onnx, with which the replay is converted.

    Returns:
        A Verification: true when the model is not off, a table as text.

    Raises:
        ConversionError: when fn cannot be called so, or the model has other inputs.
    """
    images = (tuple(inputs_as_nchw or ()), tuple(outputs_as_nchw or ()))
    with _jax.double_precision(enable_double_precision), _loadable(model) as model:
        session = runtime.open_session(model)
        given = inputs_of(session, numpy_dtype) if inputs is None else inputs
        question = question_of(fn, given, input_params, images, enable_double_precision)
        runs = [_run(question, choice, session) for choice in choices(question.symbols(), sizes)]
        _refuse_nothing(runs)
        diagnosis = Diagnosis()
        failed = [run for run in runs if run.case and run.check.verdict == "different"]
        worst = max(failed, key=_elements, default=None)
        if worst is not None and worst.case is not None:  # most numbers tell values apart best
            again = {"enable_double_precision": enable_double_precision, **(options or {})}
            diagnosis = diagnose(model, worst.case, worst.wrong, worst.results, replay, again)
        sha256 = sha256_of(model)
        external_sha256 = {} if certificate is None else external_sha256_of(model)
    found = Verification(
        _worst([run.check.verdict for run in runs]),
        tuple(run.check for run in runs),
        at_fault=diagnosis.at_fault,
        place=diagnosis.place,
        replay=diagnosis.replay,
        notes=diagnosis.notes,
        versions=versions(),
        model_sha256=sha256,
        external_sha256=external_sha256,
        model_runs=sum(run.case is not None for run in runs),
        jax_runs=sum(run.case is not None for run in runs),
    )
    if certificate is not None and found.ok:
        write_certificate(found, certificate)
    return found


@contextlib.contextmanager
def _loadable(model: Any) -> Iterator[Any]:
    """A model in memory that no single message can hold, as a file."""
    if not isinstance(model, Model) or model.fits_one_file:
        yield model
        return
    with tempfile.TemporaryDirectory() as folder:
        yield model.save(os.path.join(folder, "model.onnx"))


def layer_errors(
    fn: Callable[..., Any],
    model: Any,
    inputs: Inputs,
    input_params: Mapping[str, Any] | None = None,
    *,
    enable_double_precision: bool = False,
    inputs_as_nchw: Sequence[int] | None = None,
    outputs_as_nchw: Sequence[int] | None = None,
) -> tuple[NodeError, ...]:
    """How far each node is from JAX, at the smallest sizes that verify() runs."""
    images = (tuple(inputs_as_nchw or ()), tuple(outputs_as_nchw or ()))
    with _jax.double_precision(enable_double_precision), _loadable(model) as model:
        session = runtime.open_session(model)
        question = question_of(fn, inputs, input_params, images, enable_double_precision)
        for sizes in reversed(choices(question.symbols(), None)):
            try:
                return errors_of_nodes(model, question.case(sizes, session))
            except ConversionError:  # the program has no meaning at these sizes
                continue
    return ()


def verified(fn: Callable[..., Any], model: Any, *arguments: Any, **options: Any) -> Verification:
    """verify() for to_onnx: raises ConversionError E100 when the model is off."""
    found = verify(fn, model, *arguments, **options)
    if found.ok:
        return found
    place = found.place
    error = ConversionError(
        "E100",
        "the model gives other numbers than JAX",
        source=place.source if place else "",
        source_line=place.source_line if place else "",
        equation=place.equation if place else "",
        notes=str(found).splitlines()[1:],
        help="the replay is a program to report; docs/verification.md says how to read the table",
    )
    error.verification = found
    raise error


@dataclasses.dataclass(frozen=True)
class _Compared:
    check: Check
    case: Case | None = None
    wrong: tuple[int, ...] = ()
    results: tuple[Array, ...] = ()  # of JAX


def _elements(run: _Compared) -> int:
    return sum(array.size for array in run.case.feeds.values()) if run.case else 0


def _run(question: Question, sizes: dict[str, int], session: Any) -> _Compared:
    """One run of JAX and one of the model."""
    try:
        case = question.case(sizes, session)
        want = case.jax_results()
    except ConversionError as error:
        if error.code == "E074" and sizes:  # the program has no meaning at these sizes
            return _Compared(Check(sizes, "generated", skipped=why_skipped(error)))
        raise
    names = [value.name for value in session.get_outputs()]
    try:
        have = runtime.run(session, list(case.feeds.values()))
    except Exception as error:  # ONNX Runtime has a class for each of its codes
        outputs = [_failed(name, array, error) for name, array in zip(names, want, strict=False)]
    else:
        outputs = _compared(names, want, list(have.values()), case)
    wrong = tuple(i for i, output in enumerate(outputs) if output.verdict == "different")
    check = Check(sizes, case.kind, case.sha256, tuple(outputs))
    return _Compared(check, case, wrong, tuple(want))


def _compared(names: list[str], want: list[Array], have: list[Array], case: Case) -> list[Output]:
    if len(want) != len(have):
        raise ConversionError(
            "E093",
            f"the model has {len(have)} outputs, the function {len(want)}",
            help="give the function that the model was made from",
        )
    outputs = list(map(Output.of, names, want, have))
    apart = {
        i: (want[i], have[i])
        for i, output in enumerate(outputs)
        if output.verdict == "different" and not output.problem
    }
    if apart:
        for i, is_explained in rounding_explains(case.jaxpr, case.arrays, apart).items():
            if is_explained:
                outputs[i] = dataclasses.replace(outputs[i], verdict="unstable")
    return outputs


def _failed(name: str, want: Array, error: Exception) -> Output:
    problem = f"the model does not run: {first_line(error)}"
    return Output(name, want.dtype.name, want.shape, "different", problem)


def _refuse_nothing(runs: Sequence[_Compared]) -> None:
    if all(run.case is None for run in runs):
        raise ConversionError(
            "E101",
            f"nothing can be compared: {runs[0].check.skipped}",
            help="give sizes at which the function can be called",
        )


def _worst(verdicts: Sequence[Verdict]) -> Verdict:
    for verdict in ("different", "unstable"):
        if verdict in verdicts:
            return verdict
    return "same"


def versions() -> dict[str, str]:
    """Of what decides about the numbers."""
    packages = {name: metadata.version(name) for name in ("jax", "jaxport", "onnxruntime")}
    return {**packages, "kernel table": _core.kernel_table()}

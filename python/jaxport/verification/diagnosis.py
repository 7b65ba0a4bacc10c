# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a model that differs: runs both sides with all values on the way."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .. import _jax
from ..errors import ConversionError, first_line
from . import equations, nodes
from .cases import Case
from .graph import Array, Run, Step
from .locate import Parting, locate
from .matching import Fingerprint, nearest
from .replay import write_replay
from .results import Place, Replay
from .tolerances import histogram, near, ulps

_SOURCE = "jaxport.source"  # the metadata of a node
_WIDEST = 200  # characters of an equation
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # JAX prints equations in colours on a terminal


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """See Verification, whose fields these are."""

    at_fault: str = ""
    place: Place | None = None
    replay: Replay | None = None
    notes: tuple[str, ...] = ()


def diagnose(
    model: Any,
    case: Case,
    wrong: Sequence[int],
    results: Sequence[Array],
    folder: str | os.PathLike[str] | None,
    options: Mapping[str, Any],
) -> Diagnosis:
    """Where the outputs of a model that are wrong begin to be so."""
    try:
        proto = nodes.load(model)
        model_run = nodes.traced(proto, case.feeds)
        values = [model_run.values[i] for i in model_run.outputs]
        if all(_is_right(results[i], values[i]) for i in wrong):
            return Diagnosis("runtime")
        jax_run = equations.traced(case.jaxpr, case.arrays)
    except ConversionError as error:  # without the package onnx
        return Diagnosis("model", notes=(f"the place was not looked for: {error.message}",))
    except Exception as error:  # a node that ONNX Runtime does not run, for one
        return Diagnosis("model", notes=(f"the place was not found: {first_line(error)}",))
    reader = _jax.Reader()
    parting = locate(
        jax_run, model_run, wrong, lambda step: source_of_equation(reader, step), source_of_node
    )
    place = _place(reader, parting, jax_run, model_run)
    opset = next((o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), 23)
    again = {"opset": opset, **options}
    replay = write_replay(case, (jax_run, model_run), parting, proto, folder, again)
    return Diagnosis("model", place, replay)


def _is_right(want: Array, have: Array) -> bool:
    return want.shape == have.shape and bool(near(want, have).all())


def source_of_equation(reader: _jax.Reader, step: Step) -> str:
    """ "model.py:42 in f": its own line or, as in the compiler, that of what is around it."""
    for eqn in (step.what, *reversed(step.scope.around)):
        file, line, function, _ = reader.source_frame(eqn.source_info.traceback)
        if file:
            return f"{file}:{line} in {function}"
    return ""


def source_of_node(step: Step) -> str:
    """The same of a node, by what the compiler noted."""
    for node in (step.what, *reversed(step.scope.around)):
        for entry in node.metadata_props:
            if entry.key == _SOURCE:
                return str(entry.value)
    return ""


def _place(reader: _jax.Reader, parting: Parting, jax_run: Run, model_run: Run) -> Place | None:
    equation, node = parting.equation, parting.node
    if equation is None and node is None:
        return None
    node_source = source_of_node(node) if node else ""
    source = source_of_equation(reader, equation) if equation else node_source
    errors = _errors(parting, jax_run, model_run)
    return Place(
        source=source,
        source_line=reader.source_line(source),
        equation=_text(equation) if equation else "",
        loop=equation.scope.path if equation else (),
        swallowed=tuple(map(_text, parting.swallowed)),
        node=node.what.name if node else "",
        op=node.what.op_type if node else "",
        node_source=node_source,
        ulps=None if errors is None else float(errors.max()),
        histogram={} if errors is None else histogram(errors),
    )


def _errors(parting: Parting, jax_run: Run, model_run: Run) -> Array | None:
    """The errors of the node's first result in ulps, beside the equation's in the same layout."""
    if parting.equation is None or parting.node is None:
        return None
    want = jax_run.values[parting.equation.results[0]]
    have = model_run.values[parting.node.results[0]]
    if not want.size or want.dtype != have.dtype:
        return None
    pair = nearest(Fingerprint(want), Fingerprint(have))
    return None if pair is None else ulps(pair[0].astype(want.dtype), pair[1].astype(want.dtype))


def _text(step: Step) -> str:
    text = " ".join(_COLOURS.sub("", str(step.what)).split())
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"

# SPDX-License-Identifier: Apache-2.0
"""Runs one program in JAX and as a model, and decides who is off where they differ."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import onnx
import onnxruntime

import jaxport
from fuzz.programs import known
from fuzz.programs.closeness import (
    is_finite,
    jax_results,
    near,
    nudged_results,
    parts,
    spread_of,
    wide_results,
    within,
)
from fuzz.programs.generate import input_structs
from fuzz.programs.interpret import equations, shapes
from fuzz.programs.program import Program, function_of, function_source
from fuzz.programs.values import arrays
from jaxport import _jax, runtime

Results = list[np.ndarray]


FAULTS = ("BUG", "E040")  # what the compiler evaluates it has chosen itself


@dataclasses.dataclass(frozen=True)
class Outcome:
    """`kind` is one of

    right        the model gives what JAX gives
    known        it differs in a way that the documentation describes; `detail` names it
    unstable     the digits that differ are lost to rounding in JAX, too
    refused      jaxport refuses the program; `detail` starts with the code
    not run      JAX itself refuses the program
    no empty     ONNX Runtime refuses a size of 0 that is documented; `detail` names it
    wrong        the model gives other numbers
    bug          jaxport fails on a fault of its own
    invalid      the model breaks the ONNX specification
    unloadable   ONNX Runtime refuses the model
    failed       ONNX Runtime stops while it runs the model
    crash        the process died
    timeout      it took longer than the limit
    unjudged     the judge itself failed
    """

    kind: str
    detail: str = ""
    turn: int = 0
    want: tuple[Any, ...] = ()
    have: tuple[Any, ...] = ()
    seconds: tuple[tuple[str, float], ...] = ()

    @property
    def is_find(self) -> bool:
        return self.kind not in ("right", "known", "unstable", "refused", "not run", "no empty")


@dataclasses.dataclass
class _StopError(Exception):
    kind: str
    detail: str = ""
    turn: int = 0
    want: Sequence[Any] = ()
    have: Sequence[Any] = ()


class Clock:
    """Seconds of processor time by what they were spent for."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    def __call__(self, name: str, call: Callable[[], Any]) -> Any:
        start = time.process_time()
        try:
            return call()
        finally:
            self.spent[name] = self.spent.get(name, 0.0) + time.process_time() - start


def judge(
    program: Program,
    given: Sequence[Results] = (),
    alter: Callable[[Any], Any] = lambda f: f,
    jax_ran: Callable[[], None] = lambda: None,
) -> Outcome:
    """What becomes of a program; `given` takes the place of its random inputs.

    `alter` changes the function before it is converted: tests plant faults with it. `jax_ran` is
    called when JAX has run the program, which ends the process when XLA fails on it.
    """
    clock = Clock()
    with np.errstate(all="ignore"):
        try:
            inputs = list(given) or [arrays(program, i) for i in range(len(program.values))]
            with _jax.double_precision(program.options.double):
                stop = _run(program, inputs, alter, jax_ran, clock)
        except _StopError as error:
            stop = error
        except Exception as error:
            stop = _StopError("unjudged", f"{type(error).__name__}: {_line(error)}")
    return Outcome(
        stop.kind,
        stop.detail,
        stop.turn,
        tuple(stop.want),
        tuple(stop.have),
        tuple(clock.spent.items()),
    )


def _run(
    program: Program,
    inputs: list[Results],
    alter: Callable[[Any], Any],
    jax_ran: Callable[[], None],
    clock: Clock,
) -> _StopError:
    f = function_of(program)
    compiled = jax.jit(f)
    wanted: list[Results | None] = []
    for turn, values in enumerate(inputs):
        sizes = program.sizes[turn % len(program.sizes)]
        try:
            want = clock("jax", lambda v=values: jax_results(compiled, v))
        except Exception as error:
            if 0 not in sizes.values():
                raise _StopError("not run", _line(error)) from None
            wanted.append(None)
        else:
            wanted.append(
                want if 0 not in sizes.values() or _is_defined(program, sizes, values) else None
            )
    jax_ran()
    model = _converted(alter(f), program, clock)
    session = _loaded(model, program, clock)
    if session is None:
        return _StopError("right")
    worst = _StopError("right")
    for turn, (values, want) in enumerate(zip(inputs, wanted, strict=True)):
        if want is None or (program.options.target == "onnx" and _is_empty(program, values)):
            continue  # what ONNX Runtime does with nothing is considered in models for it
        try:
            have = clock("run", lambda v=values: _model_results(session, v))
        except Exception as error:
            refusal = known.refusal_of_nothing(str(error)) if _is_empty(program, values) else None
            if not refusal:
                raise _StopError("failed", _line(error), turn, want) from None
            worst = _StopError("no empty", refusal)
            continue
        verdict = clock("judge", lambda v=values, w=want, h=have: _compare(program, v, w, h))
        if verdict.kind == "wrong":
            verdict.turn = turn
            raise verdict
        if verdict.kind != "right" and worst.kind != "known":
            worst = verdict
    return worst


def _is_empty(program: Program, values: Results) -> bool:
    """Whether something on the way has a symbolic size that is 0, such as x[1:-1] of two rows."""
    if not any(program.sizes):
        return False
    closed = jax.make_jaxpr(function_of(program))(*values)
    return any(0 in shape for shape in shapes(closed.jaxpr))


def _runs_as_written(program: Program) -> bool:
    """Of a model for ONNX itself, ONNX Runtime computes 16-bit floats in f32 and does not round.

    Nor do its sums and products of integers wrap, and sums of i64 have the digits of f64.
    """
    text = f"{[given.dtype for given in program.inputs]} {function_source(program)}"
    if program.options.target != "onnx":
        return True
    return not any(word in text for word in ("f16", "prod(", "i64")) and not (
        "sum(" in text and "i32" in text
    )


def _is_defined(program: Program, sizes: Mapping[str, int], values: Results) -> bool:
    """Whether the symbolic program means the same at this size.

    JAX takes symbols to be at least 1: x[-1:] has one element, whatever the symbol is.
    """

    def at_this_size(shape: Sequence[Any]) -> tuple[int, ...]:
        return tuple(_jax.dim_value(n, sizes.__getitem__) for n in shape)

    names = tuple(name for step in program.steps for name in step.names)
    f = function_of(dataclasses.replace(program, outputs=(*names, *program.outputs)))
    symbolic = jax.make_jaxpr(f)(*input_structs(program)).jaxpr
    if any(n < 0 for shape in shapes(symbolic) for n in at_this_size(shape)):
        return False
    for eqn in equations(symbolic):  # in the functions of other steps, too
        part = at_this_size(_promised_part(eqn))
        if part and any(np.greater(part, at_this_size(eqn.invars[0].aval.shape))):
            return False
    stated = [at_this_size(v.aval.shape) for v in symbolic.outvars]
    return stated == [a.shape for a in jax.tree.leaves(jax.eval_shape(f, *values))]


def _promised_part(eqn: Any) -> Sequence[Any]:
    """Sizes that an operand has if the equation means something: JAX gives x[:1] one element."""
    if eqn.primitive.name == "slice":
        return eqn.params["limit_indices"]
    mode = eqn.params.get("mode")
    is_promised = mode == jax.lax.GatherScatterMode.PROMISE_IN_BOUNDS
    return eqn.params["slice_sizes"] if eqn.primitive.name == "gather" and is_promised else ()


def _converted(f: Any, program: Program, clock: Clock) -> onnx.ModelProto:
    options = program.options
    try:
        return clock(
            "convert",
            lambda: jaxport.to_onnx(
                f,
                input_structs(program),
                opset=options.opset,
                raise_=options.raising,
                target=options.target,
                functions=options.functions,
                enable_double_precision=options.double,
            ),
        )
    except jaxport.ConversionError as error:
        kind = "bug" if error.code in FAULTS else "refused"
        raise _StopError(kind, f"{error.code} {error.message}") from None
    except Exception as error:
        raise _StopError("bug", f"{type(error).__name__}: {_line(error)}") from None


def _loaded(model: onnx.ModelProto, program: Program, clock: Clock) -> Any:
    """A session; None when the target is ONNX itself and ONNX Runtime lacks a kernel.

    Nor is a model loaded that it does not run as written: it puts a Cast of its own between a
    Transpose and a MatMul of 16 bits, and ends when it merges the three.
    """
    try:
        clock("check", lambda: onnx.checker.check_model(model, full_check=True))
    except Exception as error:
        raise _StopError("invalid", _line(error)) from None
    if not _runs_as_written(program):
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    data = model.SerializeToString()
    try:
        return clock(
            "load",
            lambda: onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"]),
        )
    except Exception as error:
        if program.options.target == "onnx" and "NOT_IMPLEMENTED" in str(error):
            return None
        raise _StopError("unloadable", _line(error)) from None


def _model_results(session: Any, values: Results) -> Results:
    return list(runtime.run(session, [_jax.host_array(a) for a in values]).values())


def _compare(program: Program, values: Results, want: Results, have: Results) -> _StopError:
    if len(have) != len(want):
        return _StopError("wrong", f"{len(have)} outputs, JAX has {len(want)}")
    have = [_unpacked(w, h) for w, h in zip(want, have, strict=True)]
    for i, (w, h) in enumerate(zip(want, have, strict=True)):
        if h.dtype != w.dtype or h.shape != w.shape:
            detail = f"output {i} is {h.dtype}{list(h.shape)}, JAX has {w.dtype}{list(w.shape)}"
            return _StopError("wrong", detail, want=want, have=have)
    close = [near(w, h) for w, h in zip(want, have, strict=True)]
    if all(c.all() for c in close):
        return _StopError("right")
    others = [wide_results(program, values, want)]
    off = _farther(close, want, have, others)
    more = nudged_results(program, values)  # most are settled without these
    while any(o.any() for o in off) and (runs := next(more, None)):
        others += runs
        off = _farther(close, want, have, others)
    if not any(o.any() for o in off):
        return _StopError("unstable")
    names = []
    if program.options.double and all(is_finite(a) for a in values):
        # No wider type says whether a result is infinite or only its way there was.
        off = [o & np.isfinite(parts(w)) for o, w in zip(off, want, strict=True)]
    floors = [spread_of(w, [r[i] for r in others[1:]]) for i, w in enumerate(want)]
    for name, masks in known.excused(program, values, want, have, floors):
        if any((o & m).any() for o, m in zip(off, masks, strict=True)):
            names.append(name)
            off = [o & ~m for o, m in zip(off, masks, strict=True)]
        if not any(o.any() for o in off):
            break
    for i, (o, w, h) in enumerate(zip(off, want, have, strict=True)):
        if o.any():
            place = tuple(int(k) for k in np.argwhere(o)[0])
            detail = f"output {i}{list(place)} is {h[place]}, JAX has {w[place]}"
            return _StopError("wrong", detail, want=want, have=have)
    return _StopError("known" if names else "unstable", "; ".join(names))


def _farther(close: Results, want: Results, have: Results, others: list[Results]) -> Results:
    """Elements that are farther from JAX's than results that are as good as they."""
    return [
        ~c & ~within(w, h, [r[i] for r in others])
        for i, (c, w, h) in enumerate(zip(close, want, have, strict=True))
    ]


def _unpacked(want: np.ndarray, have: np.ndarray) -> np.ndarray:
    """Complex numbers cross the border of a model as a last axis of two parts."""
    if np.iscomplexobj(want) and have.shape[-1:] == (2,) and have.dtype == want.real.dtype:
        return np.ascontiguousarray(have).view(want.dtype)[..., 0]
    return have


def _line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0][:400]

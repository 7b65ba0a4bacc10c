# SPDX-License-Identifier: Apache-2.0
"""Makes a program smaller as long as the same goes wrong."""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fuzz.programs.generate import input_structs
from fuzz.programs.program import (
    SHORT,
    Body,
    Input,
    Options,
    Program,
    Step,
    cleaned,
    function_of,
    uses,
)
from fuzz.programs.values import arrays
from jaxport import _jax

Arrays = tuple[np.ndarray, ...]


@dataclasses.dataclass(frozen=True)
class Case:
    """A program with the arrays of one run."""

    program: Program
    values: Arrays


def at_turn(program: Program, turn: int) -> Case:
    """The run of a program in which something went wrong."""
    sizes = program.sizes[turn % len(program.sizes)]
    values = tuple(arrays(program, turn))
    return Case(dataclasses.replace(program, sizes=(sizes,), values=("normal",)), values)


def skeleton(message: str) -> str:
    """A message without names, numbers and places."""
    return re.sub(r"[^A-Za-z ]+|\b\w{1,2}\b", " ", message)[:120].split("  ")[0].strip()


def shrunk(
    case: Case, outcome: Any, ask: Callable[[Case], Any], seconds: float, most: int
) -> tuple[Case, Any]:
    """The smallest case that was found with an outcome of the same kind, and that outcome."""
    end = time.monotonic() + seconds
    asked = 0
    progress = True
    while progress:
        progress = False
        for candidate in _candidates(case, outcome.kind != "crash"):
            if asked >= most or time.monotonic() > end:
                return case, outcome
            asked += 1
            answer = ask(candidate)
            if _alike(answer, outcome):
                case, outcome, progress = candidate, answer, True
                break
    return case, outcome


def _alike(a: Any, b: Any) -> bool:
    return a.kind == b.kind and (a.kind == "wrong" or skeleton(a.detail) == skeleton(b.detail))


def _candidates(case: Case, runs: bool) -> Iterator[Case]:
    """Smaller cases, the boldest first; some of them are not valid programs.

    Where JAX `runs` the program, results of steps are computed, in this process.
    """
    tails = (_tails,) if runs else ()
    rest = (_heads, _fewer_steps, _static, _smaller, _simpler)
    for ways in (_plain, _fewer_outputs, *tails, *rest):
        for program, values in ways(case):
            tidy = cleaned(program)
            names = {given.name for given in tidy.inputs}
            kept = [
                value
                for given, value in zip(program.inputs, values, strict=True)
                if given.name in names
            ]
            yield Case(tidy, tuple(kept))


def _plain(case: Case) -> Iterator[tuple[Program, Arrays]]:
    plain = Options(double=case.program.options.double)
    if case.program.options != plain:
        yield dataclasses.replace(case.program, options=plain), case.values


def _fewer_outputs(case: Case) -> Iterator[tuple[Program, Arrays]]:
    if len(case.program.outputs) > 1:
        for name in case.program.outputs:
            yield dataclasses.replace(case.program, outputs=(name,)), case.values


def _heads(case: Case) -> Iterator[tuple[Program, Arrays]]:
    """The program up to a step."""
    for step in case.program.steps[:-1]:
        for name in step.names:
            yield dataclasses.replace(case.program, outputs=(name,)), case.values


def _tails(case: Case) -> Iterator[tuple[Program, Arrays]]:
    """What earlier steps computed becomes an input: of most steps, of half, … of one."""
    steps = case.program.steps
    count = len(steps)
    cuts = sorted({count - 1, count - 2, count * 3 // 4, count // 2, count // 4, 1})
    ways = [(steps[:cut], steps[cut:]) for cut in reversed(cuts) if 0 < cut < count]
    ways += [(steps[i : i + 1], steps[:i] + steps[i + 1 :]) for i in range(count) if count > 1]
    known = _results(case) if ways else {}
    for removed, kept in ways:
        needed = {*case.program.outputs, *(name for step in kept for name in uses(step))}
        names = [n for step in removed for n in step.names if n in needed]
        if all(n in known for n in names):
            inputs = (*case.program.inputs, *(known[n][0] for n in names))
            values = (*case.values, *(known[n][1] for n in names))
            yield dataclasses.replace(case.program, inputs=inputs, steps=kept), values


def _results(case: Case) -> dict[str, tuple[Input, np.ndarray]]:
    """The result of every step as an input with its value; without those of other sizes."""
    program = case.program
    names = tuple(n for step in program.steps for n in step.names)
    f = function_of(dataclasses.replace(program, outputs=names))
    try:
        with _jax.double_precision(program.options.double):
            types = jax.tree.leaves(jax.eval_shape(f, *input_structs(program)))
            values = jax.tree.leaves(jax.jit(f)(*map(jnp.asarray, case.values)))
    except Exception:  # what JAX does not run has no values
        return {}
    known = {}
    for name, aval, value in zip(names, types, values, strict=True):
        shape = tuple(n if isinstance(n, int) else str(n) for n in aval.shape)
        if all(isinstance(n, int) or n in program.symbols for n in shape):
            given = Input(name, SHORT[np.dtype(aval.dtype).name], shape)
            known[name] = (given, np.asarray(value))
    return known


def _fewer_steps(case: Case) -> Iterator[tuple[Program, Arrays]]:
    """One step, here or in a body, gives way to one of its arguments or to its body."""
    for steps, rename in _without_one(case.program.steps):
        outputs = tuple(rename.get(name, name) for name in case.program.outputs)
        yield dataclasses.replace(case.program, steps=steps, outputs=outputs), case.values


def _without_one(steps: tuple[Step, ...]) -> Iterator[tuple[tuple[Step, ...], dict[str, str]]]:
    for i in reversed(range(len(steps))):
        step = steps[i]
        before, after = steps[:i], steps[i + 1 :]
        if len(step.names) == 1:
            for arg in dict.fromkeys(step.args):
                rename = {step.names[0]: arg}
                yield before + tuple(_renamed(s, rename) for s in after), rename
        for which, body in enumerate(step.bodies):
            if len(body.params) == len(step.args) and len(body.results) == len(step.names):
                inner = dict(zip(body.params, step.args, strict=True))
                inlined = tuple(_renamed(s, inner) for s in body.steps)
                rename = dict(zip(step.names, (inner.get(n, n) for n in body.results), strict=True))
                yield before + inlined + tuple(_renamed(s, rename) for s in after), rename
            for fewer, rename in _without_one(body.steps):
                results = tuple(rename.get(n, n) for n in body.results)
                changed = Body(body.params, fewer, results)
                bodies = (*step.bodies[:which], changed, *step.bodies[which + 1 :])
                yield (*before, dataclasses.replace(step, bodies=bodies), *after), {}


def _renamed(step: Step, rename: dict[str, str]) -> Step:
    bodies = tuple(
        Body(
            b.params,
            tuple(_renamed(s, rename) for s in b.steps),
            tuple(rename.get(n, n) for n in b.results),
        )
        for b in step.bodies
    )
    return Step(step.names, step.text, tuple(rename.get(n, n) for n in step.args), bodies)


def _static(case: Case) -> Iterator[tuple[Program, Arrays]]:
    """Numbers in place of symbols."""
    sizes = case.program.sizes[0]
    for symbol in case.program.symbols:
        inputs = tuple(
            dataclasses.replace(
                g, shape=tuple(sizes[symbol] if size == symbol else size for size in g.shape)
            )
            for g in case.program.inputs
        )
        steps = tuple(_with_size(s, symbol, sizes[symbol]) for s in case.program.steps)
        yield dataclasses.replace(case.program, inputs=inputs, steps=steps), case.values


def _with_size(step: Step, symbol: str, size: int) -> Step:
    bodies = tuple(
        dataclasses.replace(b, steps=tuple(_with_size(s, symbol, size) for s in b.steps))
        for b in step.bodies
    )
    text = re.sub(rf"\b{symbol}\b", str(size), step.text)
    return dataclasses.replace(step, text=text, bodies=bodies)


def _smaller(case: Case) -> Iterator[tuple[Program, Arrays]]:
    """All axes of one size, or one axis, cut to one or two."""
    inputs = case.program.inputs
    for size in sorted({n for g in inputs for n in g.shape if isinstance(n, int)}, reverse=True):
        for new in (1, 2):
            if new < size:
                yield _cut(case, lambda i, axis, n, size=size: n == size, new)
    for which, given in enumerate(inputs):
        for at, size in enumerate(given.shape):
            if isinstance(size, int) and size > 1:
                yield _cut(case, lambda i, axis, n, w=which, a=at: (i, axis) == (w, a), 1)


def _cut(case: Case, where: Callable[[int, int, Any], bool], new: int) -> tuple[Program, Arrays]:
    inputs, values = [], []
    for i, (given, value) in enumerate(zip(case.program.inputs, case.values, strict=True)):
        shape = list(given.shape)
        for axis, size in enumerate(given.shape):
            if where(i, axis, size):
                shape[axis] = new
                value = np.take(value, range(new), axis=axis)
        inputs.append(dataclasses.replace(given, shape=tuple(shape)))
        values.append(value)
    return dataclasses.replace(case.program, inputs=tuple(inputs)), tuple(values)


def _simpler(case: Case) -> Iterator[tuple[Program, Arrays]]:
    """Simpler numbers in one input."""
    for i, value in enumerate(case.values):
        for new in _simpler_arrays(value):
            if new.tobytes() != value.tobytes():
                yield case.program, (*case.values[:i], new, *case.values[i + 1 :])


def _simpler_arrays(value: np.ndarray) -> Iterator[np.ndarray]:
    yield np.ones_like(value)
    yield np.zeros_like(value)
    if jnp.issubdtype(value.dtype, jnp.floating):
        wide = value.astype(np.float64)
        yield np.where(np.isfinite(wide), wide, 1.0).astype(value.dtype)
        with np.errstate(all="ignore"):
            yield np.round(wide).astype(value.dtype)
            yield np.round(wide, 1).astype(value.dtype)

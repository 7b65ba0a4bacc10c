# SPDX-License-Identifier: Apache-2.0
"""The smallest program that shows a difference, with its inputs, as files."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np

from .. import _jax, runtime
from ..model import Model, package
from .cases import Case
from .equations import flat
from .exact import rounding_explains
from .graph import Array, Run, Step
from .locate import Parting
from .nodes import names_read_by, single_node
from .results import Replay
from .tolerances import near


@dataclasses.dataclass(frozen=True)
class Program:
    """A part of what was verified.

    Attributes:
        arguments: what the function is called with, as JAX has it.
        equations: how many it has.
    """

    function: Callable[..., Any]
    arguments: list[Any]
    equations: int


@dataclasses.dataclass(frozen=True)
class _Attempt:
    """A program with the model that it becomes, and JAX's results."""

    program: Program
    model: Model
    want: list[Array]

    def differs(self) -> bool:
        feeds = [_jax.host_array(value) for value in self.program.arguments]
        have = list(runtime.run(runtime.open_session(self.model), feeds).values())
        pairs = dict(enumerate(zip(self.want, have, strict=True)))
        apart = {i: (w, h) for i, (w, h) in pairs.items() if not _is_near(w, h)}
        if not apart:
            return False
        jaxpr = jax.make_jaxpr(self.program.function)(*self.program.arguments)
        return not all(rounding_explains(jaxpr, self.program.arguments, apart).values())


def write_replay(
    case: Case,
    runs: tuple[Run, Run],
    parting: Parting,
    proto: Any,
    folder: str | os.PathLike[str] | None,
    options: Mapping[str, Any],
) -> Replay | None:
    """Writes the smallest of some programs that, converted anew, differs; else the smallest.

    `runs` are those of JAX and of the model.
    """
    attempt, reproduces = _smallest(_programs(case, runs[0], parting), options)
    if attempt is None:
        return None
    path = tempfile.mkdtemp(prefix="jaxport-replay-") if folder is None else os.fspath(folder)
    os.makedirs(path, exist_ok=True)
    _write(path, attempt)
    if parting.node is not None:
        _write_node(path, parting.node, runs[1], proto)
    return Replay(path, attempt.program.equations, reproduces)


def _smallest(
    programs: Iterator[Program], options: Mapping[str, Any]
) -> tuple[_Attempt | None, bool]:
    first: _Attempt | None = None
    for program in programs:
        try:
            results = jax.jit(program.function)(*program.arguments)
            want = [_jax.host_array(value) for value in results]
            attempt = _Attempt(program, _converted(program, options), want)
            differs = attempt.differs()
        except Exception:  # a part of a program may be refused on its own
            continue
        if differs:
            return attempt, True
        first = first or attempt
    return first, False


def _programs(case: Case, run: Run, parting: Parting) -> Iterator[Program]:
    """The equation that differs; with those that the node may stand for; with all behind it; all.

    Constants stay constants: what a compiler does with them may be what is wrong.
    """
    constants = frozenset(run.given[len(case.arrays) :])
    equation = parting.equation
    if equation is not None and not equation.is_part:
        yield _of_steps([equation], run, constants)
        near_it = {id(step) for step in (equation, *parting.swallowed)}
        behind = run.behind(equation.results)
        groups = [
            [step for step in run.steps if id(step) in near_it],
            [run.steps[k] for k in sorted(behind)],
        ]
        for steps in groups:
            if len(steps) > 1 and not any(step.is_part for step in steps):
                yield _of_steps(steps, run, constants)
    count = len(flat(case.jaxpr).lines)
    yield Program(jax.extend.core.jaxpr_as_fun(case.jaxpr), case.arrays, count)


def _of_steps(steps: Sequence[Step], run: Run, constants: frozenset[int]) -> Program:
    """Some steps of a run as a program of what they read and do not make."""
    dtypes = {
        value: atom.aval.dtype
        for step in steps
        for value, atom in zip(step.operands, step.what.invars, strict=True)
    }
    made = {value for step in steps for value in step.results}
    read = [value for value in dtypes if value not in made and value not in constants]
    known = {value: _typed(run.values[value], dtypes[value]) for value in constants & dtypes.keys()}
    results = [value for step in steps for value in step.results if value not in dtypes]

    def program(*arguments: Any) -> list[Any]:
        env = {**known, **dict(zip(read, arguments, strict=True))}
        for step in steps:
            operands = [env[value] for value in step.operands]
            found = _jax.bind(step.what, operands, step.what.params)
            env.update(zip(step.results, found, strict=True))
        return [env[value] for value in results]

    arguments = [_typed(run.values[value], dtypes[value]) for value in read]
    return Program(program, arguments, len(steps))


def _typed(value: Array, dtype: Any) -> Any:
    """A value of a run as JAX has it."""
    if _jax.is_key(dtype):
        return jax.random.wrap_key_data(jnp.asarray(value), impl=_jax.key_impl(dtype))
    if jnp.issubdtype(dtype, jnp.complexfloating):
        return jnp.asarray(np.ascontiguousarray(value).view(dtype).reshape(value.shape[:-1]))
    return jnp.asarray(value, dtype)


def _converted(program: Program, options: Mapping[str, Any]) -> Model:
    from ..api import to_onnx

    specs = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in program.arguments]  # type: ignore[no-untyped-call]
    names = [f"x{i}" for i in range(len(specs))]
    chosen = {**options, "input_names": names, "return_mode": "model"}
    model: Model = to_onnx(program.function, specs, **chosen)
    return model


def _is_near(want: Array, have: Array) -> bool:
    return want.shape == have.shape and bool(near(want, have).all())


def _write(folder: str, attempt: _Attempt) -> None:
    with open(os.path.join(folder, "program.jir"), "w", encoding="utf-8") as file:
        file.write(attempt.model.jir())
    arguments = map(_jax.host_array, attempt.program.arguments)
    arrays = {f"x{i}": value for i, value in enumerate(arguments)}
    arrays |= {f"result_{i}": value for i, value in enumerate(attempt.want)}
    _save(os.path.join(folder, "inputs.npz"), arrays)


def _write_node(folder: str, node: Step, run: Run, proto: Any) -> None:
    """The node alone, with its operands under their names."""
    names = names_read_by(node.what)
    if node.is_part or len(names) != len(node.operands):
        return
    arrays = {n: run.values[v] for n, v in zip(names, node.operands, strict=True)}
    package("onnx").save(single_node(proto, node.what, arrays), os.path.join(folder, "node.onnx"))
    _save(os.path.join(folder, "node.npz"), arrays)


def _save(path: str, arrays: Mapping[str, Array]) -> None:
    """numpy has no names for the dtypes of ml_dtypes: "x:bfloat16" holds their bits."""
    plain: dict[str, Any] = {}
    for name, array in arrays.items():
        if runtime.is_extended(array.dtype):
            plain[f"{name}:{array.dtype.name}"] = array.view(np.dtype(f"u{array.itemsize}"))
        else:
            plain[name] = array
    with open(path, "wb") as file:
        np.savez(file, **plain)

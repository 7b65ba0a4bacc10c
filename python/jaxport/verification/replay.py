# SPDX-License-Identifier: Apache-2.0
"""The smallest program that shows a difference, with its inputs, as files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.extend.core
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from .. import _jax, runtime
from ..model import Model, package
from .cases import Case
from .equations import bind, flat
from .graph import Array, Run, Step
from .locate import Parting
from .nodes import names_read_by, single_node
from .results import Replay
from .tolerances import near

Program = tuple[Callable[..., Any], list[Any], int]  # a function, its arguments, its equations


def write_replay(
    case: Case,
    jax_run: Run,
    model_run: Run,
    parting: Parting,
    proto: Any,
    folder: str | os.PathLike[str] | None,
    options: Mapping[str, Any],
) -> Replay | None:
    """Writes the smallest of some programs that, converted anew, differs; else the smallest."""
    smallest: tuple[Program, Model] | None = None
    reproduces = False
    for program in _programs(case, jax_run, parting):
        try:
            model = _converted(program, options)
            differs = not _agrees(program, model)
        except Exception:  # a part of a program may be refused on its own
            continue
        smallest = smallest or (program, model)
        if differs:
            smallest, reproduces = (program, model), True
            break
    if smallest is None:
        return None
    path = tempfile.mkdtemp(prefix="jaxport-replay-") if folder is None else os.fspath(folder)
    os.makedirs(path, exist_ok=True)
    _write(path, *smallest)
    if parting.node is not None:
        _write_node(path, parting.node, model_run, proto)
    return Replay(path, smallest[0][2], reproduces)


def _programs(case: Case, run: Run, parting: Parting) -> Iterator[Program]:
    """The equation that differs, with those that the node may stand for, and everything."""
    if parting.equation is not None and not parting.equation.is_part:
        yield _of_steps([parting.equation], run)
        if parting.swallowed and not any(step.is_part for step in parting.swallowed):
            yield _of_steps([parting.equation, *parting.swallowed], run)
    count = len(flat(case.jaxpr).lines)
    yield jax.extend.core.jaxpr_as_fun(case.jaxpr), case.arrays, count


def _of_steps(steps: Sequence[Step], run: Run) -> Program:
    """Some steps of a run as a program of what they read and do not make."""
    made = {value for step in steps for value in step.results}
    avals = {
        value: atom.aval
        for step in steps
        for value, atom in zip(step.operands, step.what.invars, strict=True)
    }
    read = [value for value in avals if value not in made]
    used = {value for step in steps for value in step.operands}
    results = [v for step in steps for v in step.results if v not in used] or [*steps[-1].results]

    def program(*arguments: Any) -> list[Any]:
        env = dict(zip(read, arguments, strict=True))
        for step in steps:
            env |= zip(step.results, bind(step.what, [env[v] for v in step.operands]), strict=True)
        return [env[value] for value in results]

    return program, [_typed(run.values[v], avals[v].dtype) for v in read], len(steps)


def _typed(value: Array, dtype: Any) -> Any:
    """A value of a run as JAX has it."""
    if _jax.is_key(dtype):
        return jax.random.wrap_key_data(jnp.asarray(value), impl=_jax.key_impl(dtype))
    if jnp.issubdtype(dtype, jnp.complexfloating):
        return jnp.asarray(np.ascontiguousarray(value).view(dtype).reshape(value.shape[:-1]))
    return jnp.asarray(value, dtype)


def _converted(program: Program, options: Mapping[str, Any]) -> Model:
    from ..api import to_onnx

    function, arguments, _ = program
    specs = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arguments]  # type: ignore[no-untyped-call]
    names = [f"x{i}" for i in range(len(specs))]
    model: Model = to_onnx(
        function, specs, **{**options, "input_names": names, "return_mode": "model"}
    )
    return model


def _agrees(program: Program, model: Model) -> bool:
    function, arguments, _ = program
    want = [_jax.host_array(value) for value in jax.jit(function)(*arguments)]
    have = runtime.run(runtime.open_session(model), list(map(_jax.host_array, arguments)))
    pairs = list(zip(want, have.values(), strict=True))
    return all(w.shape == h.shape and bool(near(w, h).all()) for w, h in pairs)


def _write(folder: str, program: Program, model: Model) -> None:
    function, arguments, _ = program
    with open(os.path.join(folder, "program.jir"), "w", encoding="utf-8") as file:
        file.write(model.jir())
    arrays = {f"x{i}": _jax.host_array(value) for i, value in enumerate(arguments)}
    results = jax.jit(function)(*arguments)
    arrays |= {f"result_{i}": _jax.host_array(value) for i, value in enumerate(results)}
    _save(os.path.join(folder, "inputs.npz"), arrays)


def _write_node(folder: str, node: Step, run: Run, proto: Any) -> None:
    names = list(dict.fromkeys(names_read_by(node.what)))
    if node.is_part or len(names) != len(set(node.operands)):
        return
    arrays = dict(zip(names, (run.values[v] for v in dict.fromkeys(node.operands)), strict=True))
    package("onnx").save(single_node(proto, node.what, arrays), os.path.join(folder, "node.onnx"))
    _save(os.path.join(folder, "node.npz"), arrays)


def _save(path: str, arrays: Mapping[str, Array]) -> None:
    """numpy has no names for the dtypes of ml_dtypes: "x:bfloat16" holds their bits."""
    plain = {}
    for name, array in arrays.items():
        is_extended = hasattr(ml_dtypes, array.dtype.name) and array.dtype.kind in "Vf"
        if is_extended and array.dtype not in (np.float16, np.float32, np.float64):
            plain[f"{name}:{array.dtype.name}"] = array.view(np.dtype(f"u{array.itemsize}"))
        else:
            plain[name] = array
    np.savez(path, **plain)  # type: ignore[arg-type]

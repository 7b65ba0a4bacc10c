# SPDX-License-Identifier: Apache-2.0
"""Tracing: a function and its inputs as front IR."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from . import _core, _jax
from .collector import paused_collector
from .errors import ConversionError
from .frameworks import Program, program_of
from .inputs import Arguments, Inputs, is_input, param_spec, read_inputs
from .names import distinct, input_names, output_names
from .parameters import Wanted, lift
from .record import Record, bound, record
from .session import watched
from .weights import WeightPaths


@dataclasses.dataclass(frozen=True)
class Traced:
    """A program as front IR, with the seconds JAX and the importer took.

    `state` and `parameters` are the values of the inputs beside the user's own, by name.
    """

    module: _core.Module
    reader: _jax.Reader
    trace_seconds: float
    import_seconds: float
    state: dict[str, np.ndarray[Any, Any]]
    parameters: dict[str, np.ndarray[Any, Any]]


def trace(
    fn: Callable[..., Any],
    inputs: Inputs,
    *,
    input_params: Mapping[str, Any] | None = None,
    double_precision: bool = False,
    given_input_names: Sequence[str] | None = None,
    given_output_names: Sequence[str] | None = None,
    inputs_as_nchw: Sequence[int] = (),
    outputs_as_nchw: Sequence[int] = (),
    state: Literal["frozen", "io"] = "frozen",
    params_as_inputs: Wanted = None,
    session: _core.Session | None = None,
) -> Traced:
    """Traces fn with JAX and imports the jaxpr. Raises ConversionError E070 to E086, E110."""
    with _jax.double_precision(double_precision):
        default_dtype = jnp.float64 if double_precision else jnp.float32
        program = program_of(fn)
        arguments = dataclasses.replace(
            read_inputs(inputs, default_dtype), params=dict(input_params or {})
        )
        arguments = bound(program.function, arguments)
        images = (inputs_as_nchw, outputs_as_nchw)
        start = time.perf_counter()
        arguments, recorded = _with_params(
            arguments,
            lambda these: record(program, these, images=images, exports_state=state == "io"),
        )
        traced = time.perf_counter()
        path_of = WeightPaths(*program.holders, named=program.state)
        jaxpr, parameters = lift(recorded.jaxpr, path_of, params_as_inputs)
        names_in = _input_names(program, arguments, given_input_names)
        extra = distinct([*recorded.read, *parameters], names_in)
        names_out = _output_names(program, recorded, given_output_names, [*names_in, *extra])
        reader = _jax.Reader()
        reader.left_out += [_frozen(name) for name in recorded.frozen]
        reader.left_out += _fixed_params(arguments)
        try:
            with (
                paused_collector(),
                contextlib.nullcontext(session) if session else watched() as watching,
            ):
                module = _core.import_jaxpr(
                    session=watching,
                    jaxpr=jaxpr,
                    reader=reader,
                    name=program.name,
                    input_names=[*names_in, *extra],
                    output_names=names_out,
                    path_of=path_of,
                    constraints=_jax.constraints_of(arguments.scope),
                )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _jax.unreadable(error, jaxpr) from error
        except ConversionError as error:
            raise _jax.explained(error).with_source_line(reader.source_line(error.source)) from None
        arrays = [*(program.state[name] for name in recorded.read), *parameters.values()]
        variables = jaxpr.jaxpr.invars[len(names_in) :]
        values = {
            name: reader.array(array, variable.aval.dtype)
            for name, array, variable in zip(extra, arrays, variables, strict=True)
        }
        first_values = {name: values.pop(name) for name in extra[: len(recorded.read)]}
        seconds = (traced - start, time.perf_counter() - traced)
        return Traced(module, reader, *seconds, state=first_values, parameters=values)


def _input_names(program: Program, arguments: Arguments, given: Sequence[str] | None) -> list[str]:
    values = (arguments.positional, tuple(arguments.named.values()))
    own = _fitting(program.input_names, values) if given is None else given
    return input_names(program.function, arguments, own)


def _output_names(
    program: Program, recorded: Record, given: Sequence[str] | None, taken: list[str]
) -> list[str]:
    """The names of the results, then those of the state that the call wrote."""
    own = _fitting(program.output_names, recorded.result, taken) if given is None else given
    names = output_names(recorded.result, own, taken)
    written = [f"{name}_out" for name in recorded.written]
    return [*names, *distinct(written, [*taken, *names])]


def _fitting(names: Sequence[str] | None, tree: Any, taken: Sequence[str] = ()) -> list[str] | None:
    """The names that a framework has for the leaves of a tree, None unless for each one."""
    if names is None or len(names) != len(jax.tree.leaves(tree)):
        return None
    return distinct(names, taken)


def _frozen(name: str) -> tuple[str, str, str]:
    """What the report says about state that the model keeps."""
    why = f"'{name}' changes from call to call; the model keeps its value, state=\"io\" exports it"
    return "state", why, ""


def _with_params(
    arguments: Arguments, attempt: Callable[[Arguments], Record]
) -> tuple[Arguments, Record]:
    """Traces with as many params as inputs of the model as the function need not know.

    The others, such as a flag that a Python `if` asks for, are constants.
    """
    params = arguments.params
    specs = {name: param_spec(value) for name, value in params.items()}

    def traced(names: Sequence[str]) -> tuple[Arguments, Record]:
        chosen = {name: specs[name] if name in names else params[name] for name in params}
        these = dataclasses.replace(arguments, params=chosen)
        return these, attempt(these)

    free = [name for name, spec in specs.items() if any(map(is_input, jax.tree.leaves(spec)))]
    kept: list[str] = []
    for names in [free, *([name] for name in free if len(free) > 1)]:
        if not names:
            break
        try:
            found = traced([*kept, *names])
        except ConversionError:
            continue
        kept += names
        if kept == free:
            return found
    return traced(kept)


def _fixed_params(arguments: Arguments) -> list[tuple[str, str, str]]:
    """What the report says of params that are constants."""
    why = "is a constant of the model: the function needs its value while it is traced"
    return [
        ("input_params", f"{name}={value!r} {why}", "")
        for name, value in arguments.params.items()
        if not any(map(is_input, jax.tree.leaves(value)))
    ]

# SPDX-License-Identifier: Apache-2.0
"""Tracing: a function and its inputs as front IR."""

from __future__ import annotations

import dataclasses
import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from . import _core, _jax
from .advice import advice_for
from .call import Call
from .errors import ConversionError, first_line
from .inputs import Arguments, Inputs, describe, is_input, param_spec, read_inputs
from .modules import copied_inside, is_change_of_state
from .names import function_name, input_names, output_names, parameter_names
from .weights import WeightPaths


@dataclasses.dataclass(frozen=True)
class Traced:
    """A program as front IR, with the seconds JAX and the importer took."""

    module: _core.Module
    reader: _jax.Reader
    trace_seconds: float
    import_seconds: float


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
) -> Traced:
    """Traces fn with JAX and imports the jaxpr. Raises ConversionError E070 to E076."""
    with _jax.double_precision(double_precision):
        default_dtype = jnp.float64 if double_precision else jnp.float32
        arguments = dataclasses.replace(
            read_inputs(inputs, default_dtype), params=dict(input_params or {})
        )
        arguments = bound(fn, arguments)
        images = (inputs_as_nchw, outputs_as_nchw)
        start = time.perf_counter()
        arguments, (jaxpr, result) = _with_params(fn, arguments, images)
        if not jax.tree.leaves(result):
            raise ConversionError(
                "E081",
                "the function returns no array",
                help="return what the model is to compute; prints and other effects are left out",
            )
        traced = time.perf_counter()
        names_in = input_names(fn, arguments, given_input_names)
        names_out = output_names(result, given_output_names, names_in)
        reader = _jax.Reader()
        reader.left_out += _fixed_params(arguments)
        try:
            module = _core.import_jaxpr(
                jaxpr=jaxpr,
                reader=reader,
                name=function_name(fn),
                input_names=names_in,
                output_names=names_out,
                path_of=WeightPaths(fn),
                constraints=_jax.constraints_of(arguments.scope),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _jax.unreadable(error) from error
        except ConversionError as error:
            raise error.with_source_line(reader.source_line(error.source)) from None
        return Traced(module, reader, traced - start, time.perf_counter() - traced)


def bound(fn: Callable[..., Any], arguments: Arguments) -> Arguments:
    """The arguments with those by position that fn takes by position only.

    Raises ConversionError E070 when fn cannot be called with them.
    """
    if not callable(fn):
        raise ConversionError(
            "E070",
            f"fn is of type {type(fn).__name__}, which cannot be called",
            help="give a function, a module or a method as fn",
        )
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):  # builtins without a signature: JAX finds out
        return arguments
    named = dict(arguments.named)
    positional = [
        named.pop(parameter.name)
        for parameter in signature.parameters.values()
        if parameter.kind is parameter.POSITIONAL_ONLY and parameter.name in named
    ]
    arguments = dataclasses.replace(
        arguments, positional=(*arguments.positional, *positional), named=named
    )
    try:
        signature.bind(*arguments.positional, **arguments.keywords)
    except TypeError as error:
        name = function_name(fn)
        count = len(arguments.positional) + len(arguments.named)
        params = ", ".join(arguments.params)
        also = f" and input_params {params}" if params else ""
        raise ConversionError(
            "E070",
            f"inputs has {count} entries{also}, which do not fit {name}{signature}: {error}",
            help="give one entry for each argument that has no default value",
        ) from None
    return arguments


Images = tuple[Sequence[int], Sequence[int]]  # of inputs and of outputs that are NCHW


def _with_params(
    fn: Callable[..., Any], arguments: Arguments, images: Images
) -> tuple[Arguments, tuple[Any, Any]]:
    """Traces with as many of the params as inputs of the model as fn can do without the value of.

    The others, such as a flag that a Python `if` asks for, are constants.
    """
    params = arguments.params
    specs = {name: param_spec(value) for name, value in params.items()}

    def attempt(names: Sequence[str]) -> tuple[Arguments, tuple[Any, Any]]:
        chosen = {name: specs[name] if name in names else params[name] for name in params}
        these = dataclasses.replace(arguments, params=chosen)
        return these, _make_jaxpr(fn, these, images)

    free = [name for name, spec in specs.items() if any(map(is_input, jax.tree.leaves(spec)))]
    kept: list[str] = []
    for names in [free, *([name] for name in free if len(free) > 1)]:
        if not names or names[0] in kept:
            continue
        try:
            traced = attempt([*kept, *names])
        except ConversionError:
            continue
        kept += names
        if kept == free:
            return traced
    return attempt(kept)


def _fixed_params(arguments: Arguments) -> list[tuple[str, str, str]]:
    """What the report says of params that are constants."""
    why = "is a constant of the model: the function needs its value while it is traced"
    return [
        ("input_params", f"{name}={value!r} {why}", "")
        for name, value in arguments.params.items()
        if not any(map(is_input, jax.tree.leaves(value)))
    ]


def _make_jaxpr(fn: Callable[..., Any], arguments: Arguments, images: Images) -> tuple[Any, Any]:
    try:
        return _traced(fn, arguments, images)
    except ConversionError:
        raise
    except Exception as error:
        raise _trace_error(fn, arguments, error) from error


def _traced(fn: Callable[..., Any], arguments: Arguments, images: Images) -> tuple[Any, Any]:
    call = Call(fn, arguments, *images)
    try:
        return call.trace()
    except Exception as error:
        copy = copied_inside(fn) if is_change_of_state(error) else None
        if copy is None:
            raise
        return Call(copy, arguments, *images).trace()


def _trace_error(fn: Callable[..., Any], arguments: Arguments, error: Exception) -> ConversionError:
    """JAX's own error is the cause; this one says with which arguments fn was called."""
    names = parameter_names(fn, len(arguments.positional))
    entries = {**dict(zip(names, arguments.positional, strict=True)), **arguments.keywords}
    called = ", ".join(f"{name}: {describe(value)}" for name, value in entries.items())
    source, line = _jax.innermost_user_line(error.__traceback__)
    message = first_line(error)
    return ConversionError(
        "E074",
        f"JAX cannot trace the function: {type(error).__name__}: {message}",
        source=source,
        notes=[f"called with: {called}"],
        help=advice_for(message),
    ).with_source_line(line)

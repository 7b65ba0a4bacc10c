# SPDX-License-Identifier: Apache-2.0
"""Tracing: a function and its inputs as front IR."""

from __future__ import annotations

import dataclasses
import inspect
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from . import _core, _jax, functions
from .advice import advice_for
from .errors import ConversionError, first_line
from .inputs import Arguments, describe, read_inputs
from .modules import copied_inside, is_change_of_state
from .names import input_names, output_names, parameter_names
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
    inputs: Sequence[Any],
    *,
    double_precision: bool = False,
    given_input_names: Sequence[str] | None = None,
    given_output_names: Sequence[str] | None = None,
) -> Traced:
    """Traces fn with JAX and imports the jaxpr. Raises ConversionError E070 to E076."""
    with _jax.double_precision(double_precision):
        default_dtype = jnp.float64 if double_precision else jnp.float32
        arguments = read_inputs(inputs, default_dtype)
        check_argument_count(fn, len(arguments.values))
        start = time.perf_counter()
        jaxpr, result = _make_jaxpr(fn, arguments)
        if not jax.tree.leaves(result):
            raise ConversionError(
                "E081",
                "the function returns no array",
                help="return what the model is to compute; prints and other effects are left out",
            )
        traced = time.perf_counter()
        names_in = input_names(fn, arguments.values, given_input_names)
        names_out = output_names(result, given_output_names, names_in)
        reader = _jax.Reader()
        try:
            module = _core.import_jaxpr(
                jaxpr=jaxpr,
                reader=reader,
                name=getattr(fn, "__name__", type(fn).__name__),
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


def check_argument_count(fn: Callable[..., Any], count: int) -> None:
    """Raises ConversionError E070 when fn cannot be called with `count` positional arguments."""
    if not callable(fn):
        raise ConversionError(
            "E070",
            f"fn is of type {type(fn).__name__}, which cannot be called",
            help="give a function, a module or a method as fn",
        )
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):  # builtins without a signature: JAX finds out
        return
    try:
        signature.bind(*range(count))
    except TypeError as error:
        name = getattr(fn, "__name__", type(fn).__name__)
        raise ConversionError(
            "E070",
            f"inputs has {count} entries, which do not fit {name}{signature}: {error}",
            help="give one entry for each positional argument",
        ) from None


def _make_jaxpr(fn: Callable[..., Any], arguments: Arguments) -> tuple[Any, Any]:
    try:
        return _traced(fn, arguments)
    except Exception as error:
        raise _trace_error(fn, arguments, error) from error


def _traced(fn: Callable[..., Any], arguments: Arguments) -> tuple[Any, Any]:
    with functions.tracing():
        try:
            return jax.make_jaxpr(fn, return_shape=True)(*arguments.values)
        except Exception as error:
            copy = copied_inside(fn) if is_change_of_state(error) else None
            if copy is None:
                raise
            return jax.make_jaxpr(copy, return_shape=True)(*arguments.values)


def _trace_error(fn: Callable[..., Any], arguments: Arguments, error: Exception) -> ConversionError:
    """JAX's own error is the cause; this one says with which arguments fn was called."""
    values = arguments.values
    names = parameter_names(fn, len(values))
    called = ", ".join(
        f"{name}: {describe(value)}" for name, value in zip(names, values, strict=True)
    )
    source, line = _jax.innermost_user_line(error.__traceback__)
    message = first_line(error)
    return ConversionError(
        "E074",
        f"JAX cannot trace the function: {type(error).__name__}: {message}",
        source=source,
        notes=[f"called with: {called}"],
        help=advice_for(message),
    ).with_source_line(line)

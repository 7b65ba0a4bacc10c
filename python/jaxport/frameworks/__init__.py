# SPDX-License-Identifier: Apache-2.0
"""Modules of Flax NNX, Flax Linen, Equinox, Haiku and Keras as functions of arrays and of state.

No framework is imported here: nobody has a module of one that is not loaded.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from ..names import function_name
from . import equinox, haiku, keras, linen, nnx
from .program import Program

__all__ = ["Program", "program_of"]

# What makes programs of the modules of one framework, None of anything else.
_FRAMEWORKS = (nnx.program, linen.program, equinox.program, haiku.program, keras.program)


def program_of(fn: Any) -> Program:
    """What to_onnx traces for `fn`. Raises ConversionError E085 for modules without variables."""
    module = _module(fn)
    if module is not None:
        return module
    return Program(
        fn, lambda _, *args, **kwargs: (fn(*args, **kwargs), {}), (fn,), function_name(fn)
    )


def _module(fn: Any) -> Program | None:
    if isinstance(fn, functools.partial):
        program = _module(fn.func)
        return None if program is None else _bound(program, fn)
    found = (framework(fn) for framework in _FRAMEWORKS)
    return next((program for program in found if program is not None), None)


def _bound(program: Program, given: functools.partial[Any]) -> Program:
    """A program with arguments that functools.partial has given it."""

    def call(state: Any, *arguments: Any, **keywords: Any) -> tuple[Any, dict[str, Any]]:
        return program.call(state, *given.args, *arguments, **{**given.keywords, **keywords})

    bound = functools.partial(program.function, *given.args, **given.keywords)
    holders = (*program.holders, bound)
    return dataclasses.replace(program, function=bound, call=call, holders=holders)

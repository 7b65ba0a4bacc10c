# SPDX-License-Identifier: Apache-2.0
"""Finds the paths of weights: which attribute, key or variable an array of a jaxpr is.

A constant of a jaxpr is the very array that the function reached through its closure, its bound
module or its partial arguments. All of these are walked once; identity gives the path.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

from . import _jax
from .names import join, parameter_names, path_text

_NOT_WALKED = (types.ModuleType, type, str, bytes, int, float, complex, np.dtype)
_MAX_DEPTH = 32


class WeightPaths:
    """Paths of the arrays that some objects hold; the walk starts at the first question.

    `named` are arrays whose paths are known.
    """

    def __init__(self, *holders: Any, named: Mapping[str, Any] | None = None) -> None:
        self._holders = holders
        self._found = list((named or {}).items())
        self._seen: set[int] = set()

    def __call__(self, array: Any) -> str:
        """The path of an array, "" when nothing holds it under a name."""
        path = self._by_identity.get(id(array))
        return path if path is not None else self._by_buffer.get(_buffer_key(array), "")

    def array(self, path: str) -> Any:
        """The array with a path, None when there is none."""
        return next((array for name, array in self._arrays if name == path), None)

    @functools.cached_property
    def _arrays(self) -> list[tuple[str, Any]]:
        for holder in self._holders:
            # eqx.filter_jit and the like hold the arrays of a module without their names.
            self._walk(getattr(holder, "__wrapped__", ()), "", 0)
            self._walk(holder, "", 0)
            if callable(holder):
                self._walk(type(holder).__call__, "", 0)
        return self._found

    @functools.cached_property
    def _by_identity(self) -> dict[int, str]:
        return {id(array): path for path, array in reversed(self._arrays)}

    @functools.cached_property
    def _by_buffer(self) -> dict[Any, str]:
        return {_buffer_key(array): path for path, array in reversed(self._arrays)}

    def _walk(self, value: Any, prefix: str, depth: int) -> None:
        """Walks a pytree, then whatever its leaves hold when they are no arrays."""
        try:
            leaves = jax.tree_util.tree_flatten_with_path(value)[0]
        except Exception:  # a name is never worth a failure: keys that do not sort, broken classes
            return
        for path, leaf in leaves:
            name = join(prefix, path_name(path))
            if isinstance(leaf, jax.Array | np.ndarray):
                self._found.append((name, leaf))
            elif not isinstance(leaf, _NOT_WALKED) and depth < _MAX_DEPTH and self._is_new(leaf):
                for step, item in _contents(leaf):
                    self._walk(item, step if _is_code(leaf) else join(name, step), depth + 1)

    def _is_new(self, value: Any) -> bool:
        if id(value) in self._seen:
            return False
        self._seen.add(id(value))
        return True


def _is_code(value: Any) -> bool:
    """Whether what an object holds are variables with names of their own."""
    return isinstance(value, functools.partial | types.FunctionType)


def _contents(value: Any) -> Iterator[tuple[str, Any]]:
    """(name, object) of what an object of no pytree class holds; "" where a step has no name."""
    if isinstance(value, functools.partial):
        yield from zip(parameter_names(value.func, len(value.args)), value.args, strict=True)
        yield from value.keywords.items()
        yield "", value.func
    elif isinstance(value, types.MethodType):
        yield "", value.__self__
        yield "", value.__func__
    elif isinstance(value, types.FunctionType):
        yield from _captured(value)
    elif _is_instance(value, "flax.nnx", "Variable"):
        yield "", _variable_value(value)
    elif _is_instance(value, "keras", "Layer"):
        # A layer holds its variables many times over; their own paths are the names to read.
        for variable in value.variables:
            yield variable.path.replace("/", "."), variable.value
    else:
        yield from getattr(value, "__dict__", {}).items()
    if isinstance(getattr(value, "__wrapped__", None), types.FunctionType):
        yield "", value.__wrapped__  # jax.jit, functools.wraps


def _captured(fn: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """The variables outside a function that its code names, and its default values.

    A variable of a library (`fun` of jax.vmap) says nothing to a reader, and its globals are no
    weights of the user.
    """
    is_users = _jax.is_user_file(fn.__code__.co_filename)
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        try:
            yield name if is_users else "", cell.cell_contents
        except ValueError:  # a variable that is assigned later
            continue
    if not is_users:
        return
    for code in _codes(fn.__code__):
        for name in code.co_names:
            if name in fn.__globals__:
                yield name, fn.__globals__[name]
    yield from _defaults(fn)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function and of the functions written inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _defaults(fn: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for parameter in inspect.signature(fn).parameters.values():
        if parameter.default is not parameter.empty:
            yield parameter.name, parameter.default


def _is_instance(value: Any, module: str, name: str) -> bool:
    """isinstance() without an import: nothing is of a class that nobody has loaded."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(value, kind)


def _variable_value(variable: Any) -> Any:
    # flax 0.12 deprecates .value for get_value().
    read = getattr(variable, "get_value", None)
    return read() if read is not None else variable.value


def path_name(path: tuple[Any, ...]) -> str:
    """A path as text, without the steps that mean nothing to a reader.

    These are the steps from an nnx.Variable to its array and from a bound method to its object.
    """
    steps = [key for key in path if getattr(key, "name", "") != "__self__"]
    if "flax.nnx" in sys.modules and steps and getattr(steps[-1], "name", "") == "value":
        steps.pop()
    return path_text(steps)


def _buffer_key(array: Any) -> Any:
    """What two views of the same bytes have in common; the array itself when that is unknown."""
    try:
        address = (
            array.__array_interface__["data"][0]
            if isinstance(array, np.ndarray)
            else array.unsafe_buffer_pointer()
        )
    except Exception:  # arrays on several devices, deleted arrays, random keys
        return id(array)
    return address, array.shape, array.dtype

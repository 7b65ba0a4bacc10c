# SPDX-License-Identifier: Apache-2.0
"""Modules of Flax NNX, and methods of them.

A module changes its own variables while it is called: counters of random keys, running statistics,
caches. A call works on a copy that is made inside of the trace, so that the user's module stays as
it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax

from .. import _jax
from ..names import function_name
from ..weights import path_name
from .program import Program, changed, loaded


def program(fn: Any) -> Program | None:
    nnx = loaded("flax.nnx")
    owner = getattr(fn, "__self__", fn)
    if nnx is None or not isinstance(owner, nnx.Module):
        return None
    method = type(owner).__call__ if owner is fn else fn.__func__

    def call(
        state: Mapping[str, Any] | None, *arguments: Any, **keywords: Any
    ) -> tuple[Any, dict[str, Any]]:
        copy = nnx.clone(owner)
        if state:
            nnx.update(copy, _replaced(nnx.state(copy), state))
        before = _leaves(nnx.state(copy))
        result = method(copy, *arguments, **keywords)
        return result, changed(before, _leaves(nnx.state(copy)))

    state = _leaves(nnx.state(owner))
    random = {name for name, leaf in state.items() if _jax.is_key(getattr(leaf, "dtype", float))}
    return Program(fn, call, (fn,), function_name(fn), state, frozenset(random))


def _name(path: tuple[Any, ...]) -> str:
    """A path without the step from a variable to its value; attributes of modules are keys."""
    to_value = jax.tree_util.GetAttrKey("value")
    return path_name(tuple(key for key in path if key != to_value))


def _leaves(state: Any) -> dict[str, Any]:
    leaves = jax.tree_util.tree_flatten_with_path(state)[0]
    return {_name(path): leaf for path, leaf in leaves}


def _replaced(state: Any, values: Mapping[str, Any]) -> Any:
    return jax.tree_util.tree_map_with_path(lambda path, leaf: values.get(_name(path), leaf), state)

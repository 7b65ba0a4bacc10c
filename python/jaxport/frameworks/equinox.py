# SPDX-License-Identifier: Apache-2.0
"""Modules of Equinox with their state: (module, state), where `module` may be under vmap or jit.

A module without state is a function like any other.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

import jax

from ..names import function_name, join, path_text
from .program import Program, changed, loaded


def program(fn: Any) -> Program | None:
    nn = loaded("equinox.nn")
    if nn is None or type(fn) is not tuple or len(fn) != 2 or not isinstance(fn[1], nn.State):
        return None
    function, initial = fn
    names = _names(initial)
    leaves, tree = jax.tree.flatten(initial)
    state = dict(zip(names, leaves, strict=True))
    signature, place = _without_state(function)

    def call(
        given: Mapping[str, Any] | None, *arguments: Any, **keywords: Any
    ) -> tuple[Any, dict[str, Any]]:
        values = {**state, **(given or {})}
        current = jax.tree.unflatten(tree, [values[name] for name in names])
        result = function(*arguments[:place], current, *arguments[place:], **keywords)
        result, after = _split(result, nn.State)
        new = {} if after is None else dict(zip(names, jax.tree.leaves(after), strict=True))
        return result, changed(values, new)

    return Program(_signed(function, signature), call, (function,), function_name(function), state)


def _names(state: Any) -> list[str]:
    """Where the module keeps the index of each array: "norm.state_index.0".

    make_with_state marks an index with its path, as JAX writes it, after the name of the class.
    """
    values, markers = state.tree_flatten()
    names = []
    for number, (value, marker) in enumerate(zip(values, markers, strict=True)):
        is_path = isinstance(marker, str)
        steps = re.findall(r"\.(\w+)|\[['\"]?(.*?)['\"]?\]", marker) if is_path else []
        place = join(*map("".join, steps)) or f"state.{number}"
        for path, _ in jax.tree_util.tree_flatten_with_path(value)[0]:
            names.append(join(place, path_text(path)))
    return names


def _without_state(function: Callable[..., Any]) -> tuple[inspect.Signature | None, int]:
    """The signature without the parameter `state`, and its place: the last if none has the name."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a callable without a signature
        return None, _LAST
    parameters = list(signature.parameters.values())
    names = [p.name for p in parameters]
    place = names.index("state") if "state" in names else _LAST
    kept = [p for p in parameters if p.name != "state"]
    return signature.replace(parameters=kept), place


_LAST = 1000  # arguments[:_LAST] are all


def _signed(
    function: Callable[..., Any], signature: inspect.Signature | None
) -> Callable[..., Any]:
    named = functools.partial(function)
    if signature is not None:
        vars(named)["__signature__"] = signature
    return named


def _split(result: Any, kind: type) -> tuple[Any, Any]:
    """What is no state, and the state that the call gave back."""
    if isinstance(result, kind):
        return (), result
    if not isinstance(result, tuple) or not any(isinstance(part, kind) for part in result):
        return result, None
    (state,) = (part for part in result if isinstance(part, kind))
    rest = tuple(part for part in result if not isinstance(part, kind))
    return rest[0] if len(rest) == 1 else rest, state

# SPDX-License-Identifier: Apache-2.0
"""Modules of Flax Linen: bound ones, and (module, variables[, rngs]).

Everything but the collection "params" is state.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from .program import Program, changed, has_no_variables, loaded, named_leaves, with_leaves

_HELP = (
    "give (module, variables), where variables = module.init(key, *arguments), or the bound "
    "module, module.bind(variables)"
)


def program(fn: Any) -> Program | None:
    linen = loaded("flax.linen")
    function, *given = fn if type(fn) is tuple and fn else (fn,)
    module = getattr(function, "__self__", function)
    if linen is None or not isinstance(module, linen.Module):
        return None
    method = "__call__" if module is function else function.__name__
    if hasattr(linen.Module, method) and method != "__call__":
        return None  # module.apply takes variables itself
    if given and isinstance(given[0], Mapping):
        variables, *rngs = given
        return _program(module, function, variables, dict(*rngs))
    if given or module.scope is None:
        raise has_no_variables(f"the Linen module {type(module).__name__}", _HELP)
    keys = {name: rng.as_jax_rng() for name, rng in module.scope.rngs.items()}
    unbound, variables = module.unbind()
    return _program(unbound, function, variables, keys)


def _program(module: Any, member: Any, variables: Any, rngs: dict[str, Any]) -> Program:
    method = getattr(member, "__func__", type(module).__call__)
    collections = [name for name in variables if name != "params"]
    keys = named_leaves(rngs, "rngs")
    state = named_leaves({name: variables[name] for name in collections})
    errors = loaded("flax.errors")

    def call(
        given: Mapping[str, Any] | None, *arguments: Any, **keywords: Any
    ) -> tuple[Any, dict[str, Any]]:
        values = {**state, **keys, **(given or {})}
        apply = functools.partial(
            module.apply,
            with_leaves(variables, values),
            *arguments,
            rngs=with_leaves(rngs, values, "rngs") or None,
            method=method,
            **keywords,
        )
        if given is None or not collections:
            try:
                return apply(), {}
            except errors.ModifyScopeVariableError:
                if not collections:
                    raise
        result, after = apply(mutable=collections)
        return result, changed(values, named_leaves(after))

    function, name = method.__get__(module), type(module).__name__
    return Program(function, call, (variables,), name, {**state, **keys}, frozenset(keys))

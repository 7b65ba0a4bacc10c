# SPDX-License-Identifier: Apache-2.0
"""What hk.transform and hk.transform_with_state give, with its variables.

(transformed, params[, rng]), or (transformed, params, state[, rng]) for one with state.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import Any

import jax

from ..names import function_name
from .program import Program, changed, has_no_variables, loaded, named_leaves, with_leaves


def program(fn: Any) -> Program | None:
    haiku = loaded("haiku")
    if haiku is None or not isinstance(fn, tuple) or not fn:
        return None
    kinds = (haiku.Transformed, haiku.TransformedWithState)
    transformed, *given = (fn,) if isinstance(fn, kinds) else fn
    if not isinstance(transformed, kinds):
        return None
    stateful = isinstance(transformed, haiku.TransformedWithState)
    names = ("params", "state") if stateful else ("params",)
    if not len(names) <= len(given) <= len(names) + 1:
        form = ", ".join(names)
        raise has_no_variables(
            "the transformed function of Haiku",
            f"give (transformed, {form}), where {form} = transformed.init(key, *arguments); a "
            "random key may follow",
        )
    return _program(transformed.apply, dict(zip(names, given, strict=False)), given[len(names) :])


def _program(apply: Any, variables: dict[str, Any], given_rng: list[Any]) -> Program:
    rng = given_rng[0] if given_rng else None
    keys = {} if rng is None else {"rng": jax.random.PRNGKey(rng) if isinstance(rng, int) else rng}
    state = named_leaves(variables.get("state") or {})
    parameters = list(inspect.signature(apply).parameters)
    takes_rng = parameters[len(variables) : len(variables) + 1] == ["rng"]

    def call(
        given: Mapping[str, Any] | None, *arguments: Any, **keywords: Any
    ) -> tuple[Any, dict[str, Any]]:
        values = {**state, **keys, **(given or {})}
        leading = [variables["params"]]
        if "state" in variables:
            leading.append(with_leaves(variables["state"], values))
        if takes_rng:
            leading.append(values.get("rng"))
        result = apply(*leading, *arguments, **keywords)
        if "state" not in variables:
            return result, {}
        return result[0], changed(values, named_leaves(result[1]))

    function = functools.partial(apply, *[None] * (len(variables) + takes_rng))
    holders = tuple(variables.values())
    return Program(
        function, call, holders, function_name(apply), {**state, **keys}, frozenset(keys)
    )

# SPDX-License-Identifier: Apache-2.0
"""Questions about jaxprs: which equations count, and what a result really is."""

from __future__ import annotations

from typing import Any

import jax.extend.core

from . import _core
from ._jax import RENAMED


def is_call(eqn: Any) -> bool:
    """Whether an equation only calls a nested jaxpr, whose parameters are its operands."""
    return RENAMED.get(eqn.primitive.name, eqn.primitive.name) in _core.calls()


def is_variable(atom: Any) -> bool:
    return isinstance(atom, jax.extend.core.Var)


def with_results(jaxpr: Any, results: list[Any]) -> Any:
    """A closed jaxpr with some of its results, without equations and constants nobody needs."""
    inner = jaxpr.jaxpr
    used = {atom for atom in results if is_variable(atom)}
    eqns = []
    for eqn in reversed(inner.eqns):
        if eqn.effects or not used.isdisjoint(eqn.outvars):
            eqns.append(eqn)
            used.update(filter(is_variable, eqn.invars))
    kept = [(v, c) for v, c in zip(inner.constvars, jaxpr.consts, strict=True) if v in used]
    live = inner.replace(constvars=[v for v, _ in kept], outvars=results, eqns=eqns[::-1])
    return jaxpr.replace(jaxpr=live, consts=[const for _, const in kept])


def source_of(jaxpr: Any, atom: Any) -> Any:
    """The parameter or constant that a result is, None when it is computed.

    Functions under jit and the like may hand on what they are given.
    """
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    if not is_variable(atom) or atom in inner.invars or atom in inner.constvars:
        return atom
    eqn = next(eqn for eqn in inner.eqns if atom in eqn.outvars)
    nested = [value for value in eqn.params.values() if hasattr(value, "eqns")]
    if not is_call(eqn) or len(nested) != 1:
        return None
    body = getattr(nested[0], "jaxpr", nested[0])
    origin = source_of(body, body.outvars[eqn.outvars.index(atom)])
    if not is_variable(origin) or origin not in body.invars:
        return None
    return source_of(jaxpr, eqn.invars[body.invars.index(origin)])

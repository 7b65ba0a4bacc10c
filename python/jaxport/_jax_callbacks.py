# SPDX-License-Identifier: Apache-2.0
"""Effects and callbacks to the host: which parts of a jaxpr a model can do without.

A check such as Equinox's error_if is a cond: one branch hands its operand on, the other one calls a
Python function that raises. Whoever gets a result got it from the first branch.
"""

from __future__ import annotations

import dis
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

# Calls of one nested jaxpr, which runs whenever the call does.
_CALLS = frozenset(
    {
        *("jit", "pjit", "closed_call", "core_call", "checkpoint", "remat", "remat2"),
        *("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"),
    }
)
_CALLBACKS = frozenset({"debug_callback", "io_callback", "pure_callback"})


def only_raises(jaxpr: Any, needed: Sequence[bool] | None = None) -> bool:
    """Whether a jaxpr cannot give its results, because it calls a function that always raises.

    `needed` says which results somebody reads; JAX does not run a pure callback for the others.
    """
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    wanted = needed if needed is not None else [True] * len(inner.outvars)
    live = {id(v) for v, is_needed in zip(inner.outvars, wanted, strict=True) if is_needed}
    for eqn in reversed(inner.eqns):
        results = [id(v) in live for v in eqn.outvars]
        if not any(results) and not eqn.effects:
            continue
        if _raises(eqn, results):
            return True
        live |= {id(v) for v in eqn.invars}
    return False


def _raises(eqn: Any, needed: Sequence[bool]) -> bool:
    if eqn.primitive.name in _CALLBACKS:
        # _FlatCallback has the user's function; a debug callback is never one of these.
        return never_returns(getattr(eqn.params.get("callback"), "callback_func", None))
    if eqn.primitive.name not in _CALLS:
        return False
    return any(only_raises(jaxpr, needed) for jaxpr in _jaxprs(eqn.params))


def never_returns(function: Callable[..., Any] | None) -> bool:
    """Whether calling a function can only raise: its code has no instruction that returns."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(function, "__code__", None)
    if code is None or inspect.isgeneratorfunction(function):
        return False
    return not any(step.opname.startswith("RETURN_") for step in dis.get_instructions(code))


def effects_of(eqn: Any) -> Iterator[str]:
    """The names of the primitives behind the effects of an equation, those inside it first."""
    if not eqn.effects:
        return
    inside = [
        name
        for jaxpr in _jaxprs(eqn.params)
        for inner in getattr(jaxpr, "jaxpr", jaxpr).eqns
        for name in effects_of(inner)
    ]
    yield from inside or [eqn.primitive.name]


def _jaxprs(params: dict[str, Any]) -> Iterator[Any]:
    for value in params.values():
        for item in value if isinstance(value, tuple | list) else (value,):
            if hasattr(item, "eqns"):
                yield item


def branches_that_return(branches: Sequence[Any]) -> tuple[Any, ...]:
    """The branches of a cond without those that only raise: these may give anything.

    One branch alone is left where all others are gone; otherwise a neighbour stands in for each.
    """
    kept = [branch for branch in branches if not only_raises(branch)]
    if len(kept) == len(branches) or not kept:
        return tuple(branches)
    if len(kept) == 1:
        return (kept[0],)
    return tuple(kept[0] if only_raises(branch) else branch for branch in branches)

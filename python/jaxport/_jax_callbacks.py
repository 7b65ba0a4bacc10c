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

from . import _core

_CALLS = frozenset(_core.calls())  # the nested jaxpr runs whenever the call does
_CALLBACKS = frozenset({"io_callback", "pure_callback"})
_MOVEMENTS = frozenset(
    {"broadcast_in_dim", "convert_element_type", "copy", "reshape", "squeeze", "transpose"}
)


def only_raises(jaxpr: Any) -> bool:
    """Whether a jaxpr cannot give its results, because it calls a function that always raises.

    JAX does not run a pure callback whose result nobody needs, and arithmetic may need less than it
    takes (select, products with zero). So the result must reach the results of the jaxpr through
    movements and other callbacks alone.
    """
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    return _walk(inner, [True] * len(inner.outvars))[0]


def _walk(jaxpr: Any, needed: Sequence[bool]) -> tuple[bool, list[bool]]:
    """Whether the jaxpr raises when some results are needed, and else which inputs it reads."""
    live = {id(v) for v, is_needed in zip(jaxpr.outvars, needed, strict=True) if is_needed}
    for eqn in reversed(jaxpr.eqns):
        results = [id(v) in live for v in eqn.outvars]
        if not any(results) and not eqn.effects:
            continue
        reads = [eqn.primitive.name in _CALLBACKS | _MOVEMENTS] * len(eqn.invars)
        if eqn.primitive.name in _CALLBACKS and never_returns(_function_of(eqn)):
            return True, []
        if eqn.primitive.name in _CALLS:
            body = next(_jaxprs(eqn.params))
            raises, reads = _walk(getattr(body, "jaxpr", body), results)
            if raises:
                return True, []
        live |= {id(v) for v, is_read in zip(eqn.invars, reads, strict=True) if is_read}
    return False, [id(v) in live for v in jaxpr.invars]


def _function_of(callback: Any) -> Callable[..., Any] | None:
    """What the user gave to pure_callback or io_callback; None for other kinds of callbacks."""
    return getattr(callback.params.get("callback"), "callback_func", None)


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

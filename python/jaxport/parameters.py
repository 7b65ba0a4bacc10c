# SPDX-License-Identifier: Apache-2.0
"""Weights as inputs: constants of a jaxpr that become parameters of it.

A constant is the very array that the function holds, so its path says whether it is wanted. This
holds for modules of every framework and for plain functions alike.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Sequence
from typing import Any

from ._jax import REWRITES
from ._jaxpr import is_call, is_variable, with_results
from .errors import ConversionError

# What to_onnx(params_as_inputs=) takes: everything or nothing, a pattern such as "decoder.*", a
# function of the path, or a list of these.
Wanted = bool | str | Callable[[str], bool] | Sequence[Any] | None


def wanted_by(given: Wanted) -> Callable[[str], bool]:
    """Whether the parameter with a path is to be an input."""
    if callable(given):
        return given
    if isinstance(given, str):
        return lambda path: fnmatch.fnmatchcase(path, given)
    if isinstance(given, Sequence):
        parts = [wanted_by(part) for part in given]
        return lambda path: any(part(path) for part in parts)
    return lambda _: bool(given)


def lift(jaxpr: Any, path_of: Callable[[Any], str], given: Wanted) -> tuple[Any, dict[str, Any]]:
    """The jaxpr with wanted constants as last parameters, and their arrays by path.

    Raises ConversionError E086 when there is none, or one that cannot be reached.
    """
    if not given:
        return jaxpr, {}
    lifting = _Lifting(path_of, wanted_by(given))
    body = lifting.body(with_results(jaxpr, jaxpr.jaxpr.outvars))
    for part in given if isinstance(given, Sequence) and not isinstance(given, str) else [given]:
        if not any(map(wanted_by(part), body.scope)):
            raise _nothing_wanted(part, sorted(lifting.others))
    return body.taking(body.scope), {path: lifting.arrays[path] for path in body.scope}


class _Body:
    """A jaxpr without its wanted constants, and the variables that stand for them, by path."""

    def __init__(self, jaxpr: Any, scope: dict[str, Any]) -> None:
        self._jaxpr = jaxpr
        self.scope = scope

    def taking(self, added: dict[str, Any], *, first: bool = False) -> Any:
        """The jaxpr with parameters for paths, before or after its own.

        `added` has variables for paths that it does not need.
        """
        more = [self.scope.get(path, variable) for path, variable in added.items()]
        inner = getattr(self._jaxpr, "jaxpr", self._jaxpr)
        result = inner.replace(invars=[*more, *inner.invars] if first else [*inner.invars, *more])
        return result if inner is self._jaxpr else self._jaxpr.replace(jaxpr=result)


class _Lifting:
    def __init__(self, path_of: Callable[[Any], str], is_wanted: Callable[[str], bool]) -> None:
        self._path_of = path_of
        self._is_wanted = is_wanted
        self._bodies: dict[int, tuple[Any, _Body]] = {}  # by id, with what has it
        self.arrays: dict[str, Any] = {}
        self.others: set[str] = set()

    def body(self, jaxpr: Any) -> _Body:
        if id(jaxpr) not in self._bodies:
            self._bodies[id(jaxpr)] = (jaxpr, self._body(jaxpr))
        return self._bodies[id(jaxpr)][1]

    def _body(self, jaxpr: Any) -> _Body:
        inner, consts = getattr(jaxpr, "jaxpr", jaxpr), getattr(jaxpr, "consts", [])
        is_closed = inner is not jaxpr or bool(consts)  # JAX 0.11 has one class for both
        if len(consts) != len(inner.constvars):  # the constants of an open one are operands
            consts = [None] * len(inner.constvars)
        scope: dict[str, Any] = {}
        equal: dict[Any, Any] = {}  # a second variable of the same array -> the first
        kept = []
        for variable, const in zip(inner.constvars, consts, strict=True):
            path = "" if const is None else self._wanted_path(const)
            if path:
                equal[variable] = scope.setdefault(path, variable)
            else:
                kept.append((variable, const))
        eqns = [self._equation(eqn, scope, equal) for eqn in inner.eqns]
        if not scope:
            return _Body(jaxpr, scope)
        constvars = [variable for variable, _ in kept]
        outvars = _renamed(inner.outvars, equal)
        result = inner.replace(constvars=constvars, outvars=outvars, eqns=eqns)
        if is_closed:
            result = jaxpr.replace(jaxpr=result, consts=[const for _, const in kept])
        return _Body(result, scope)

    def _wanted_path(self, const: Any) -> str:
        path = self._path_of(const)
        if not path:
            return ""
        if not self._is_wanted(path):
            self.others.add(path)
            return ""
        self.arrays.setdefault(path, const)
        return path

    def _equation(self, eqn: Any, scope: dict[str, Any], equal: dict[Any, Any]) -> Any:
        """The equation, with what the functions inside of it need as further operands."""
        operands = _renamed(eqn.invars, equal)
        nested = [part for value in eqn.params.values() for part in _bodies_in(value)]
        added = {k: v for part in nested for k, v in self.body(part).scope.items()}
        if not added:
            return eqn.replace(invars=operands)
        name = eqn.primitive.name
        if not is_call(eqn) and name not in ("cond", "scan", "while"):
            raise _out_of_reach(next(iter(added)), name)
        values = [scope.setdefault(path, variable) for path, variable in added.items()]
        params = {
            key: self._taking(value, added, first=name in ("scan", "while"))
            for key, value in REWRITES.get(name, _params)(eqn).items()
        }
        if name == "scan":
            params["num_consts"] += len(values)
            operands = [*values, *operands]
        elif name == "while":
            consts = params["cond_nconsts"]
            params["cond_nconsts"] += len(values)
            params["body_nconsts"] += len(values)
            operands = [*values, *operands[:consts], *values, *operands[consts:]]
        else:
            operands = [*operands, *values]
        return eqn.replace(invars=operands, params=params)

    def _taking(self, value: Any, added: dict[str, Any], *, first: bool) -> Any:
        """A parameter of an equation whose jaxprs take further parameters."""
        if isinstance(value, tuple | list) and _bodies_in(value):
            return tuple(self.body(part).taking(added, first=first) for part in value)
        return self.body(value).taking(added, first=first) if _bodies_in(value) else value


def _bodies_in(value: Any) -> list[Any]:
    """The jaxprs that a parameter of an equation is or holds."""
    parts = value if isinstance(value, tuple | list) else (value,)
    return [part for part in parts if hasattr(part, "eqns")]


def _params(eqn: Any) -> dict[str, Any]:
    return dict(eqn.params)


def _renamed(atoms: Sequence[Any], equal: dict[Any, Any]) -> list[Any]:
    return [equal.get(atom, atom) if is_variable(atom) else atom for atom in atoms]


def _nothing_wanted(given: Wanted, others: list[str]) -> ConversionError:
    shown = ", ".join(others[:8]) + (", …" if len(others) > 8 else "")
    return ConversionError(
        "E086",
        f"params_as_inputs={given!r} fits no array that the function uses",
        notes=[f"their paths are: {shown}"] if others else [],
        help="patterns stand for whole paths: 'decoder.*' has all that starts with 'decoder.'",
    )


def _out_of_reach(path: str, primitive: str) -> ConversionError:
    return ConversionError(
        "E086",
        f"the parameter '{path}' cannot be an input: a function under jit holds it inside of "
        f"'{primitive}'",
        help="give the array to that function as an argument, or leave its jit out",
    )

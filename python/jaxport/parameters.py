# SPDX-License-Identifier: Apache-2.0
"""Weights as inputs: constants of a jaxpr that become parameters of it.

A constant is the very array that the function holds, so its path says whether it is wanted. This
holds for modules of every framework and for plain functions alike.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Sequence
from typing import Any

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
    lifted, paths = lifting.jaxpr(with_results(jaxpr, jaxpr.jaxpr.outvars))
    for part in given if isinstance(given, Sequence) and not isinstance(given, str) else [given]:
        if not any(map(wanted_by(part), paths)):
            raise _nothing_wanted(part, sorted(lifting.others))
    return lifted, {path: lifting.arrays[path] for path in paths}


class _Lifting:
    def __init__(self, path_of: Callable[[Any], str], is_wanted: Callable[[str], bool]) -> None:
        self._path_of = path_of
        self._is_wanted = is_wanted
        self._done: dict[int, tuple[Any, tuple[Any, tuple[str, ...]]]] = {}  # by id, kept alive
        self.arrays: dict[str, Any] = {}
        self.others: set[str] = set()

    def jaxpr(self, jaxpr: Any) -> tuple[Any, tuple[str, ...]]:
        """The same jaxpr with what is wanted as last parameters, and their paths."""
        if id(jaxpr) not in self._done:
            self._done[id(jaxpr)] = (jaxpr, self._lifted(jaxpr))
        return self._done[id(jaxpr)][1]

    def _lifted(self, jaxpr: Any) -> tuple[Any, tuple[str, ...]]:
        inner = getattr(jaxpr, "jaxpr", jaxpr)
        consts = getattr(jaxpr, "consts", [])
        if len(consts) != len(inner.constvars):  # an open jaxpr: its constants are operands
            consts = [None] * len(inner.constvars)
        scope: dict[str, Any] = {}  # path -> the variable that has it here
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
            return jaxpr, ()
        result = inner.replace(
            constvars=[variable for variable, _ in kept],
            invars=[*inner.invars, *scope.values()],
            outvars=_renamed(inner.outvars, equal),
            eqns=eqns,
        )
        if inner is not jaxpr:
            result = jaxpr.replace(jaxpr=result, consts=[const for _, const in kept])
        return result, tuple(scope)

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
        """The equation with what the functions it calls need as last operands."""
        params, operands = dict(eqn.params), _renamed(eqn.invars, equal)
        for key, value in eqn.params.items():
            for nested in value if isinstance(value, tuple | list) else (value,):
                if not hasattr(nested, "eqns"):
                    continue
                lifted, paths = self.jaxpr(nested)
                if not paths:
                    continue
                if not is_call(eqn) or nested is not value:
                    raise _out_of_reach(paths[0], eqn.primitive.name)
                params[key] = lifted
                added = lifted.invars[len(lifted.invars) - len(paths) :]
                operands += [
                    scope.setdefault(path, variable)
                    for path, variable in zip(paths, added, strict=True)
                ]
        return eqn.replace(invars=operands, params=params)


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

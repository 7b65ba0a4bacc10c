# SPDX-License-Identifier: Apache-2.0
"""A run of a jaxpr with the results of all equations.

What stands between loops is compiled as one function that returns every intermediate value, so that
the numbers are those of jit. Loops and branches are then run step by step in the same way.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from .. import _jax
from .._jaxpr import is_call, is_variable
from .graph import Run, Scope


@dataclasses.dataclass(frozen=True)
class Line:
    """An equation whose operands and results are numbered in its `Flat`; `calls` are around it."""

    eqn: Any
    calls: tuple[Any, ...]
    operands: tuple[int, ...]
    results: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Flat:
    """A jaxpr without calls. Values are numbered: parameters first, then constants."""

    parameters: int
    constants: tuple[Any, ...]
    lines: tuple[Line, ...]
    outputs: tuple[int, ...]


def parts(jaxpr: Any) -> tuple[Any, Sequence[Any]]:
    """(jaxpr, constants) of a closed or an open jaxpr."""
    return getattr(jaxpr, "jaxpr", jaxpr), getattr(jaxpr, "consts", ())


def body_of(eqn: Any) -> Any:
    """The jaxpr that an equation calls, None when it only computes."""
    if not is_call(eqn):
        return None
    nested = [value for value in eqn.params.values() if hasattr(value, "eqns")]
    return nested[0] if len(nested) == 1 else None


def flat(jaxpr: Any) -> Flat:
    """A jaxpr with everything that it calls in place; equations without results are left out."""
    inner, _ = parts(jaxpr)
    lines: list[Line] = []
    count = itertools.count(len(inner.invars))
    pending: list[tuple[int, Any]] = []  # constants are numbered where they are met

    def constant(value: Any) -> int:
        number = next(count)
        pending.append((number, value))
        return number

    def walk(jaxpr: Any, arguments: Sequence[int], calls: tuple[Any, ...]) -> list[int]:
        inner, consts = parts(jaxpr)
        env = dict(zip(inner.invars, arguments, strict=True))
        env |= {v: constant(c) for v, c in zip(inner.constvars, consts, strict=True)}

        def read(atom: Any) -> int:
            if is_variable(atom):
                return int(env[atom])
            return constant(jnp.asarray(atom.val, atom.aval.dtype))

        for eqn in inner.eqns:
            operands = tuple(map(read, eqn.invars))
            body = body_of(eqn)
            if body is not None:
                results = tuple(walk(body, operands, (*calls, eqn)))
            else:
                results = tuple(next(count) for _ in eqn.outvars)
                if results:
                    lines.append(Line(eqn, calls, operands, results))
            env.update(zip(eqn.outvars, results, strict=True))
        return [read(atom) for atom in inner.outvars]

    outputs = walk(jaxpr, range(len(inner.invars)), ())
    constants = tuple(value for _, value in pending)
    # Parameters, constants, results: one order for all.
    order = [*range(len(inner.invars)), *(number for number, _ in pending)]
    order += [value for line in lines for value in line.results]
    new = {old: i for i, old in enumerate(order)}

    def renumbered(values: Sequence[int]) -> tuple[int, ...]:
        return tuple(new[value] for value in values)

    numbered = [
        Line(line.eqn, line.calls, renumbered(line.operands), renumbered(line.results))
        for line in lines
    ]
    return Flat(len(inner.invars), constants, tuple(numbered), renumbered(outputs))


class Tracer:
    """Runs jaxprs and keeps what they compute in `run`."""

    def __init__(self) -> None:
        self.run = Run()
        self._compiled: dict[int, tuple[Any, Flat, Any]] = {}  # by id of the jaxpr, which is kept

    def trace(self, jaxpr: Any, arguments: Sequence[Any]) -> Run:
        """Runs a closed jaxpr on arrays."""
        ids = [self.run.add_given(_jax.host_array(value)) for value in arguments]
        self.run.outputs = self._jaxpr(jaxpr, arguments, ids, Scope())[0]
        return self.run

    def _jaxpr(
        self, jaxpr: Any, arguments: Sequence[Any], ids: Sequence[int], scope: Scope
    ) -> tuple[list[int], list[Any]]:
        """Ids and arrays of the results."""
        program, function = self._function(jaxpr)
        values = [*arguments, *program.constants, *function(*arguments)]
        numbers = dict(enumerate(ids))
        for i in range(len(ids), len(ids) + len(program.constants)):
            numbers[i] = self.run.add_given(_jax.host_array(values[i]))
        for line in program.lines:
            operands = [numbers[i] for i in line.operands]
            arrays = [values[i] for i in line.operands]
            results = [values[i] for i in line.results]
            here = dataclasses.replace(scope, around=(*scope.around, *line.calls))
            found = self._inside(line.eqn, arrays, operands, results, here)
            if found is None:
                found = [self.run.add(_jax.host_array(value)) for value in results]
                self.run.add_step(line.eqn, operands, found, here)
            numbers.update(zip(line.results, found, strict=True))
        return [numbers[i] for i in program.outputs], [values[i] for i in program.outputs]

    def _function(self, jaxpr: Any) -> tuple[Flat, Any]:
        if id(jaxpr) not in self._compiled:
            program = flat(jaxpr)

            def every_result(*arguments: Any) -> list[Any]:
                values = [*arguments, *program.constants]
                for line in program.lines:
                    operands = [values[i] for i in line.operands]
                    values += _jax.bind(line.eqn, operands, line.eqn.params)
                return values[program.parameters + len(program.constants) :]

            self._compiled[id(jaxpr)] = (jaxpr, program, jax.jit(every_result))
        return self._compiled[id(jaxpr)][1:]

    def _inside(
        self,
        eqn: Any,
        arrays: list[Any],
        ids: list[int],
        results: list[Any],
        scope: Scope,
    ) -> list[int] | None:
        """Ids of the results of a loop or a branch that was looked into; None of all others."""
        if eqn.primitive.name == "cond":
            branches = eqn.params["branches"]
            index = min(max(int(arrays[0]), 0), len(branches) - 1)
            here = scope.inside(eqn, f"cond, branch {index}")
            return self._jaxpr(branches[index], arrays[1:], ids[1:], here)[0]
        if eqn.primitive.name == "scan":
            return self._scan(eqn, arrays, ids, results, scope)
        if eqn.primitive.name == "while":
            return self._while(eqn, arrays, ids, results, scope)
        return None

    def _scan(
        self,
        eqn: Any,
        arrays: list[Any],
        ids: list[int],
        results: list[Any],
        scope: Scope,
    ) -> list[int]:
        params = _jax.scan_params(eqn)
        fixed, carried, length = params["num_consts"], params["num_carry"], params["length"]
        first_x = fixed + carried
        state, state_ids = arrays[fixed:first_x], ids[fixed:first_x]
        ys: list[list[int]] = []
        most = self.run.most_steps()
        turns = range(length)[::-1] if params["reverse"] else range(length)
        for turn in turns[:most]:
            here = scope.inside(eqn, f"scan, step {turn}")
            x = [array[turn] for array in arrays[first_x:]]
            x_ids = [self.run.add(_jax.host_array(value)) for value in x]
            for whole, part in zip(ids[first_x:], x_ids, strict=True):
                self.run.add_step(eqn, [whole], [part], here, is_part=True)
            out_ids, out = self._jaxpr(
                params["jaxpr"],
                [*arrays[:fixed], *state, *x],
                [*ids[:fixed], *state_ids, *x_ids],
                here,
            )
            state, state_ids = out[:carried], out_ids[:carried]
            ys.append(out_ids[carried:])
        columns = [list(column) for column in zip(*ys, strict=True)] if ys else []
        columns = columns or [[] for _ in results[carried:]]
        if length > most:
            return self._rest(eqn, [*ids[:fixed], *state_ids, *ids[first_x:]], results, scope)
        gathered = [
            self._rest(eqn, column, [y], scope)[0]
            for column, y in zip(columns, results[carried:], strict=True)
        ]
        return [*state_ids, *gathered]

    def _while(
        self,
        eqn: Any,
        arrays: list[Any],
        ids: list[int],
        results: list[Any],
        scope: Scope,
    ) -> list[int] | None:
        m, n = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
        if eqn.params["cond_jaxpr"].out_avals[0].shape:
            return None  # vmap made a batch of the condition
        state, state_ids = arrays[m + n :], ids[m + n :]
        for turn in range(self.run.most_steps()):
            here = scope.inside(eqn, f"while, step {turn}")
            _, goes_on = self._jaxpr(
                eqn.params["cond_jaxpr"], [*arrays[:m], *state], [*ids[:m], *state_ids], here
            )
            if not bool(goes_on[0]):
                return state_ids
            state_ids, state = self._jaxpr(
                eqn.params["body_jaxpr"],
                [*arrays[m : m + n], *state],
                [*ids[m : m + n], *state_ids],
                here,
            )
        return self._rest(eqn, [*ids[: m + n], *state_ids], results, scope)

    def _rest(
        self, eqn: Any, ids: Sequence[int], results: Sequence[Any], scope: Scope
    ) -> list[int]:
        """The results of a loop as one step behind those that were looked into."""
        found = [self.run.add(_jax.host_array(value)) for value in results]
        self.run.add_step(eqn, ids, found, scope, is_part=True)
        return found


def traced(jaxpr: Any, arguments: Sequence[Any]) -> Run:
    """A run of a closed jaxpr with all values on the way."""
    return Tracer().trace(jaxpr, arguments)

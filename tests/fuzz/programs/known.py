# SPDX-License-Identifier: Apache-2.0
"""Differences that docs/architecture.md describes under "Where numbers differ".

Each is a primitive, and where its result is ONNX Runtime's and not JAX's. The program runs again
with other numbers at these places: elements of its results that change are excused, no others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fuzz.programs.interpret import interpreted, primitives
from fuzz.programs.program import Program, function_of, function_source

Results = list[np.ndarray]


@dataclasses.dataclass(frozen=True)
class Quirk:
    """Primitives whose results differ where `where(operands, result)` is true.

    With `instead`, they are those of other operands.
    """

    name: str
    primitives: tuple[str, ...]
    where: Callable[[Sequence[Any], Any], Any] = lambda operands, result: False
    instead: Callable[[Any], Any] | None = None
    until_opset: int = 26
    spelled: str = ""  # only in programs with this text


def _nan_before(args: Sequence[Any], result: Any) -> Any:
    return jnp.isnan(result) if _is_float(result) else jnp.zeros(result.shape, bool)


def _infinite(args: Sequence[Any], result: Any) -> Any:
    return jnp.isinf(result)


def _negative_zero(args: Sequence[Any], result: Any) -> Any:
    return (result == 0) & jnp.signbit(result)


def _far_left(args: Sequence[Any], result: Any) -> Any:
    return args[0] < -15


def _one_zero_and_nan(x: Any) -> Any:
    return jnp.where(jnp.isnan(x), jnp.nan, jnp.where(x == 0, 0, x)).astype(x.dtype)


def _is_float(x: Any) -> bool:
    return bool(jnp.issubdtype(x.dtype, jnp.floating))


# A window with another start than its own neutral element is a plain reduce_window.
_WINDOWS = ("reduce_window", "reduce_window_max", "reduce_window_min")
_EXTREMES = ("reduce_max", "reduce_min", "cummax", "cummin", "scatter-max", "scatter-min")

QUIRKS = [
    Quirk(
        "a maximum or minimum of numbers with NaN among them ignores NaN",
        (*_EXTREMES, *_WINDOWS),
        _nan_before,
    ),
    Quirk("MaxPool gives the largest number for infinity", _WINDOWS, _infinite),
    Quirk("Where gives 0 for -0", ("select_n",), _negative_zero),
    Quirk(
        "top_k takes 0 and -0 for equal and NaN for positive",
        ("top_k",),
        instead=_one_zero_and_nan,
        until_opset=25,
    ),
    Quirk(
        "Resize does not spread NaN and infinity along a whole axis",
        ("dot_general",),
        _nan_before,
        spelled="image.resize",
    ),
    Quirk("Sigmoid is 0 far to the left", ("logistic",), _far_left),
]

# What stands at the excused places, in one run each: results that do not depend on it stay.
STAND_INS = (0.0, 1.0, -7.25)


def excused(program: Program, values: Results) -> list[tuple[str, Results]]:
    """For each quirk the elements of all outputs that may be the runtime's."""
    f = function_of(program)
    closed = jax.make_jaxpr(f)(*values)
    names = primitives(closed.jaxpr)
    found = []
    for quirk in QUIRKS:
        if names.isdisjoint(quirk.primitives) or program.options.opset > quirk.until_opset:
            continue
        if quirk.spelled not in function_source(program):
            continue
        runs = [_run(closed, values, quirk, stand_in) for stand_in in (None, *STAND_INS)]
        first, others = runs[0], runs[1:]
        masks = [
            np.logical_or.reduce([_differs(a, other[i]) for other in others])
            for i, a in enumerate(first)
        ]
        if any(mask.any() for mask in masks):
            found.append((quirk.name, masks))
    return found


def _differs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray((a != b) & ~((a != a) & (b != b)))


def _run(closed: Any, values: Results, quirk: Quirk, stand_in: float | None) -> Results:
    def replaced(eqn: Any, operands: Sequence[Any], results: list[Any]) -> list[Any]:
        if eqn.primitive.name not in quirk.primitives or stand_in is None:
            return results
        if quirk.instead:
            changed = [quirk.instead(x) if _is_float(x) else x for x in operands]
            return list(eqn.primitive.bind(*changed, **eqn.params))
        return [
            jnp.where(quirk.where(operands, r), jnp.asarray(stand_in, r.dtype), r)
            if _is_float(r)
            else r
            for r in results
        ]

    run = jax.jit(lambda *args: interpreted(closed, args, replaced))
    return [np.asarray(r) for r in run(*map(jnp.asarray, values))]

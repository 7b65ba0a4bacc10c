# SPDX-License-Identifier: Apache-2.0
"""Excuses differences that docs/architecture.md describes, where the result depends on them.

The program runs again with other numbers at the places of a quirk: elements of its results that
change are excused, no others, and of a result that is only less exact no larger changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fuzz.programs.interpret import Change, interpreted, primitives
from fuzz.programs.program import Program, function_of, function_source
from fuzz.programs.quirks import QUIRKS, Quirk, is_float

Results = list[np.ndarray]

# What ONNX Runtime says where the list in "Sizes of 0" has it refuse a run.
_REFUSALS = {
    "a window of no pixels": r"running (Conv|MaxPool|AveragePool) node",
    "attention of nothing": r"running Attention node",
    "a norm along nothing": r"running (Layer|RMS|SimplifiedLayer)Normalization node",
    "a product with no matrices": r"running (Fused)?MatMul node.*cannot broadcast",
    "a product of unsigned integers along nothing": r"running MatMul node.*Tensor type mismatch",
    "a reshape of nothing": r"running Reshape node.*ReshapeHelper",
    "a roll of nothing": r"running Mod node.*modulo by zero",
    "an element of nothing": (
        r"running (Gather|Scatter)\w* node.*(?i:out of (data )?(bound|range)|must be empty)"
    ),
}


def refusal_of_nothing(message: str) -> str | None:
    """The name of a refusal that is documented for sizes of 0."""
    return next((name for name, text in _REFUSALS.items() if re.search(text, message)), None)


# What stands at the excused places, in one run each: results that do not depend on it stay.
STAND_INS = (0.0, np.inf, 1.0, -7.25, 1.5, 0.7, 2.3, -0.4, 5.1, -1.9, 0.3, 3.3, -2.7)
NOISE_FACTOR = 2.0  # errors of several places may add up


def excused(
    program: Program, values: Results, want: Results, have: Results
) -> list[tuple[str, Results]]:
    """For each quirk the elements of all outputs that may be the runtime's."""
    closed = jax.make_jaxpr(function_of(program))(*values)
    names = primitives(closed.jaxpr)
    quirks = [
        quirk
        for quirk in QUIRKS
        if not names.isdisjoint(quirk.primitives) and _applies(quirk, program, names)
    ]
    found = []
    for some in [*([quirk] for quirk in quirks), quirks]:  # one may hide the other
        masks = _excused_by(some, closed, values, want, have)
        if any(mask.any() for mask in masks):
            found.append(("; ".join(sorted({quirk.name for quirk in some})), masks))
    return found


def _excused_by(
    quirks: Sequence[Quirk], closed: Any, values: Results, want: Results, have: Results
) -> Results:
    changes = (1.0, -1.0) if all(quirk.noise for quirk in quirks) else STAND_INS
    first, *others = _runs(closed, values, quirks, changes)
    return [
        np.logical_or.reduce(
            [
                _changed(quirk, a, [other[i] for other in others], have[i])
                & quirk.permits(want[i], have[i])
                for quirk in quirks
            ]
        )
        for i, a in enumerate(first)
    ]


def _applies(quirk: Quirk, program: Program, primitives_of_it: set[str]) -> bool:
    options = program.options
    return (
        options.opset in quirk.opsets
        and options.target in quirk.targets
        and (options.raising or not quirk.raised_only)
        and quirk.spelled in function_source(program)
        and (not quirk.beside or quirk.beside in primitives_of_it)
    )


def _changed(
    quirk: Quirk, first: np.ndarray, others: list[np.ndarray], have: np.ndarray
) -> np.ndarray:
    mask = np.logical_or.reduce([_differs(first, other) for other in others])
    if quirk.noise and jnp.issubdtype(first.dtype, jnp.floating):
        first, have, *others = [np.asarray(a, np.float64) for a in (first, have, *others)]
        most = np.maximum.reduce([np.abs(other - first) for other in others])
        mask &= ~(np.abs(have - first) > NOISE_FACTOR * most)
    if quirk.among and jnp.issubdtype(first.dtype, jnp.floating):
        low, high = np.fmin.reduce(others), np.fmax.reduce(others)
        margin = np.abs(high - low) * NOISE_FACTOR
        mask &= (low - margin <= have) & (have <= high + margin)
    return np.asarray(mask)


def _differs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray((a != b) & ~((a != a) & (b != b)))


def _runs(
    closed: Any, values: Results, quirks: Sequence[Quirk], changes: Sequence[float]
) -> Iterator[Results]:
    """The results of JAX, and those with each of the stand-ins at the excused places."""
    arrays = [jnp.asarray(a) for a in values]
    as_it_is = jax.jit(lambda *args: interpreted(closed, args, lambda eqn, _, results: results))
    changed = jax.jit(
        lambda stand_in, *args: interpreted(closed, args, _all_replaced(quirks, stand_in))
    )
    yield [np.asarray(r) for r in as_it_is(*arrays)]
    for change in changes:
        yield [np.asarray(r) for r in changed(jnp.float32(change), *arrays)]


def _all_replaced(quirks: Sequence[Quirk], stand_in: Any) -> Change:
    def replaced(eqn: Any, operands: Sequence[Any], results: list[Any]) -> list[Any]:
        for quirk in quirks:
            results = _replaced(quirk, stand_in)(eqn, operands, results)
        return results

    return replaced


def _replaced(quirk: Quirk, stand_in: Any) -> Change:
    def replaced(eqn: Any, operands: Sequence[Any], results: list[Any]) -> list[Any]:
        if eqn.primitive.name not in quirk.primitives or not quirk.only(eqn.params):
            return results
        if quirk.instead:
            return _of_others(eqn, operands, quirk.instead)
        if not any(map(is_float, results)):
            return results
        if quirk.noise:
            sign = jnp.sign(stand_in)
            return [quirk.noise(operands, r, sign).astype(r.dtype) for r in results]
        if quirk.beyond:
            places = [jnp.isinf(r) for r in _of_others(eqn, operands, quirk.beyond)]
        elif quirk.vanishes:
            signs = _of_others(eqn, operands, lambda x: (x != 0).astype(x.dtype))
            places = [(r == 0) & (s > 0) for r, s in zip(results, signs, strict=True)]
        else:
            places = [is_float(r) and quirk.where(operands, r) for r in results]
        return [
            jnp.where(place, _varied(stand_in, r), r) if is_float(r) else r
            for place, r in zip(places, results, strict=True)
        ]

    return replaced


def _varied(stand_in: Any, like: Any) -> Any:
    """Numbers that differ, so that what orders or compares them sees that they were replaced."""
    places = jnp.arange(like.size).reshape(like.shape)
    turn = jnp.nan_to_num(stand_in, posinf=0.0) * 0.37
    return (stand_in * (1 + (places * 0.618 + turn) % 1)).astype(like.dtype)


def _of_others(eqn: Any, operands: Sequence[Any], change: Callable[[Any], Any]) -> list[Any]:
    """The results of an equation when its floating-point operands are others."""
    changed = [change(x) if is_float(x) else x for x in operands]
    results = eqn.primitive.bind(*changed, **eqn.params)
    return list(results) if eqn.primitive.multiple_results else [results]

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

from fuzz.programs import places
from fuzz.programs.closeness import near
from fuzz.programs.interpret import Change, interpreted, primitives
from fuzz.programs.places import is_float
from fuzz.programs.program import Program, function_of, function_source
from fuzz.programs.quirks import HIDING, QUIRKS, Quirk

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
        r"running (Gather|Scatter)\w* node"
        r".*(?i:out of (data )?(bound|range)|must be empty|invalid index)"
    ),
}


def refusal_of_nothing(message: str) -> str | None:
    """The name of a refusal that is documented for sizes of 0."""
    return next((name for name, text in _REFUSALS.items() if re.search(text, message)), None)


# What stands at the excused places, in one run each: results that do not depend on it stay.
STAND_INS = (0.0, np.inf, np.nan, 1.0, -7.25, 1.5, 0.7, 2.3, -0.4, 5.1, -1.9, 0.3, 3.3, -2.7)
NOT_FINITE = (np.inf, -np.inf, np.nan)
NOISE_FACTOR = 2.0  # errors of several places may add up


def excused(
    program: Program, values: Results, want: Results, have: Results, floors: Results
) -> Iterator[tuple[str, Results]]:
    """For each quirk the elements of all outputs that may be the runtime's.

    Changes up to `floors` are rounding: XLA computes the same in several ways. A quirk that hides
    others explains what they explain together with it, so it comes first.
    """
    closed = jax.make_jaxpr(function_of(program))(*values)
    names = primitives(closed.jaxpr)
    quirks = [
        quirk
        for quirk in QUIRKS
        if not names.isdisjoint(quirk.primitives) and _applies(quirk, program, names)
    ]
    for quirk in sorted(quirks, key=lambda quirk: quirk.name not in HIDING):
        masks = _excused_by(quirk, [quirk], closed, values, want, have, floors)
        for name in HIDING:
            first = [other for other in quirks if other.name == name]
            if not first or quirk.noise or quirk.name in HIDING:
                continue
            also = _excused_by(quirk, [*first, quirk], closed, values, want, have, floors)
            masks = [a | b for a, b in zip(masks, also, strict=True)]
        if any(mask.any() for mask in masks):
            yield quirk.name, masks


def _excused_by(
    quirk: Quirk,
    replaced: Sequence[Quirk],
    closed: Any,
    values: Results,
    want: Results,
    have: Results,
    floors: Results,
) -> Results:
    changes = (1.0, -1.0) if quirk.noise else NOT_FINITE if quirk.decides else STAND_INS
    first, *others = _runs(closed, values, replaced, changes)
    return [
        _changed(quirk, a, [other[i] for other in others], have[i], floors[i])
        & quirk.permits(want[i], have[i])
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
    quirk: Quirk,
    first: np.ndarray,
    others: list[np.ndarray],
    have: np.ndarray,
    floor: np.ndarray,
) -> np.ndarray:
    mask = np.logical_or.reduce([_differs(first, other, floor) for other in others])
    if quirk.noise and jnp.issubdtype(first.dtype, jnp.floating):
        first, have, *others = [np.asarray(a, np.float64) for a in (first, have, *others)]
        most = np.maximum.reduce([np.abs(other - first) for other in others])
        mask &= ~(np.abs(have - first) > NOISE_FACTOR * most)
    if quirk.decides:
        mask &= np.logical_or.reduce([near(other, have) for other in others])
    if quirk.spreads:
        return np.full(mask.shape, mask.any())
    if quirk.among and jnp.issubdtype(first.dtype, jnp.floating):
        low, high = np.fmin.reduce(others), np.fmax.reduce(others)
        margin = np.abs(high - low) * NOISE_FACTOR
        mask &= (low - margin <= have) & (have <= high + margin)
    return np.asarray(mask)


def _differs(a: np.ndarray, b: np.ndarray, floor: np.ndarray) -> np.ndarray:
    differs = (a != b) & ~((a != a) & (b != b))
    if jnp.issubdtype(a.dtype, jnp.floating):
        differs &= ~(np.abs(a.astype(np.float64) - b.astype(np.float64)) <= floor)
    return np.asarray(differs)


def _runs(
    closed: Any, values: Results, quirks: Sequence[Quirk], changes: Sequence[float]
) -> Iterator[Results]:
    """The results of JAX, and those with each of the stand-ins at the excused places.

    One compiled function gives all of them, so that they differ in nothing else.
    """

    def run(is_replaced: Any, stand_in: Any, *args: Any) -> list[Any]:
        def replaced(eqn: Any, operands: Sequence[Any], results: list[Any]) -> list[Any]:
            for quirk in quirks:
                results = _replaced(quirk, is_replaced, stand_in)(eqn, operands, results)
            return results

        return interpreted(closed, args, replaced)

    compiled = jax.jit(run)
    arrays = [jnp.asarray(a) for a in values]
    for is_replaced, change in [(False, 0.0), *((True, change) for change in changes)]:
        results = compiled(is_replaced, jnp.float32(change), *arrays)
        yield [np.asarray(r) for r in results]


def _replaced(quirk: Quirk, is_replaced: Any, stand_in: Any) -> Change:
    def replaced(eqn: Any, operands: Sequence[Any], results: list[Any]) -> list[Any]:
        if eqn.primitive.name not in quirk.primitives or not quirk.only(eqn.params):
            return results
        if quirk.instead:
            others = _of_others(eqn, operands, quirk.instead)
            return [jnp.where(is_replaced, o, r) for o, r in zip(others, results, strict=True)]
        if not any(map(is_float, results)):
            return results
        if quirk.of_f32:
            wide = eqn.params | {"preferred_element_type": jnp.float32}
            product = eqn.primitive.bind(*(x.astype(jnp.float32) for x in operands), **wide)
            other = quirk.of_f32(results[0], product).astype(results[0].dtype)
            return [jnp.where(is_replaced, other, results[0])]
        if quirk.noise:
            noisy = [quirk.noise(operands, r, stand_in).astype(r.dtype) for r in results]
            return [jnp.where(is_replaced, n, r) for n, r in zip(noisy, results, strict=True)]
        return [
            jnp.where(place & is_replaced, _varied(stand_in, r), r) if is_float(r) else r
            for place, r in zip(_places(quirk, eqn, operands, results), results, strict=True)
        ]

    return replaced


def _places(quirk: Quirk, eqn: Any, operands: Sequence[Any], results: list[Any]) -> list[Any]:
    if quirk.beyond:
        return [jnp.isinf(r) for r in _of_others(eqn, operands, quirk.beyond)]
    if quirk.vanishes:
        sizes = [places.magnified(x) if is_float(x) else x for x in operands]
        if eqn.primitive.name == "div":
            sizes = [places.magnified(sizes[0]), jnp.abs(operands[1])]
        large = eqn.primitive.bind(*sizes, **eqn.params)
        return [(r == 0) & (large >= jnp.finfo(r.dtype).eps / 4) for r in results]
    return [is_float(r) and quirk.where(operands, r) for r in results]


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

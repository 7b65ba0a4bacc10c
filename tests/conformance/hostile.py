# SPDX-License-Identifier: Apache-2.0
"""Inputs at which converters go wrong, by dtype, as changes to the inputs of a case.

A change is text that is read as easily as it is applied again: `x0[0] = nan` puts NaN in front of
the first input, `x1[:] = 3, 1, 2` repeats three numbers over the second one, `x[:] *= 1e20` makes
all floats larger, `B = 5` gives symbols another size.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence

import jax.numpy as jnp
import numpy as np

Values = Sequence[np.ndarray]

AS_GIVEN = "as given"
SIZES = (1, 5, 0)
EMPTY = "B = 0"
FLOATS = (
    *("nan", "inf", "-inf", "-0.0", "0.0", "1.0", "-1.0", "0.5", "2.5", "-2.5", "1e-08", "-1e-08"),
    *("0.0001", "1e-30", "-1e-30", "20.0", "-20.0", "-40.0", "100.0", "-100.0", "1e+06", "-1e+06"),
    *("1e+10", "-1e+10", "1e+30", "-1e+30", "3e+38", "-3e+38"),
)
DOUBLES = ("1e-200", "-1e-200", "710.0", "-740.0", "1e+200", "-1e+200", "1e+308")
FLOAT_ROWS = (
    *("nan, 1.0", "1.0, nan, 2.0, nan", "inf, 1.0", "1.0, -inf", "inf, -inf", "-inf, nan, inf"),
    *("0.0, -0.0", "-0.0, 0.0", "1.0, 1.0, 2.0", "3.0, 1.0, 2.0"),
    *("1000.0, 1001.0, 1003.0", "100000.0, 100001.0", "1e-20, 2e-20", "1e+20, 2e+20"),
    *("1e+30, 1e-30", "0.0, 1.0", "1.0, 0.0", "0.5, 1.5, 2.5, -0.5", "1.0, 2.0, 2.0, 4.0"),
)
INTEGERS = (
    *("-1", "MAX", "MIN", "0", "1", "32", "64", "31", "33", "63", "100", "-100", "2", "5", "-5"),
    *("7", "8", "16", "127", "-128", "255", "1000", "65536"),
)
INTEGER_ROWS = ("3, 1, 2", "1, 1, 2", "0, 5", "-1, 0, 1", "MIN, MAX", "7, -7", "0, 0, 1")
SCALES = ("1e-20", "1e+20", "1e-06", "1000.0", "-1.0")
# Both inputs at once, where only the pair is hostile.
INTEGER_PAIRS = (("MIN", "-1"), ("7", "0"), ("-7", "2"), ("7", "-2"), ("1", "32"), ("-1", "31"))
FLOAT_PAIRS = (
    *(("0.0", "0.0"), ("-0.0", "0.0"), ("0.0", "-0.0"), ("1.0", "0.0"), ("-1.0", "0.0")),
    *(("inf", "inf"), ("-inf", "-inf"), ("inf", "2.0"), ("-5.0", "inf"), ("5.0", "-inf")),
    *(("nan", "1.0"), ("1.0", "nan"), ("-0.0", "-1.0"), ("1e+30", "1e+30"), ("-7.5", "2.0")),
)
# A float and an integer: powers of two that overflow where the product does not.
MIXED_PAIRS = (("1e-30", "140"), ("1e+30", "-140"), ("1e-200", "1100"), ("1e+200", "-1100"))
_CHANGE = re.compile(r"x(\d*)\[(0|-1|:)\] (\*?=) (.+)")


def candidates(values: Values, has_symbols: bool) -> Iterator[str]:
    """Changes to try, in a fixed order: small ones first."""
    floats = [i for i, a in enumerate(values) if a.size and jnp.issubdtype(a.dtype, jnp.inexact)]
    others = [i for i, a in enumerate(values) if a.size and i not in floats]
    for place in ("0", ":", "-1"):
        for i in (*floats, *others):
            is_one = values[i].size == 1
            if not is_one or place == "0":
                yield from (f"x{i}[{place}] = {v}" for v in _numbers(values[i].dtype))
    for i in (*floats, *others):
        if values[i].size > 1:
            yield from (f"x{i}[:] = {row}" for row in _rows(values[i].dtype))
    yield from _together(values, floats)
    if has_symbols:
        yield from (f"B = {size}" for size in SIZES)


def _numbers(dtype: np.dtype) -> Sequence[str]:
    if dtype == np.bool_:
        return ("True", "False")
    if jnp.issubdtype(dtype, jnp.inexact):
        return FLOATS + (DOUBLES if dtype.name in ("float64", "complex128") else ())
    return [text for text in INTEGERS if _fits(text, dtype)]


def _rows(dtype: np.dtype) -> Sequence[str]:
    if dtype == np.bool_:
        return ("True, False", "False, True, True")
    if jnp.issubdtype(dtype, jnp.inexact):
        return FLOAT_ROWS
    return [row for row in INTEGER_ROWS if all(_fits(n, dtype) for n in row.split(", "))]


def _together(values: Values, floats: Sequence[int]) -> Iterator[str]:
    """Changes of more than one input, and of all floats by a factor."""
    for scale in SCALES if floats else ():
        yield f"x[:] *= {scale}"
    integers = [i for i, a in enumerate(values) if a.size and np.issubdtype(a.dtype, np.integer)]
    for i, j in itertools.product(floats[:2], integers[:2]):
        for lhs, rhs in MIXED_PAIRS:
            if _fits(rhs, values[j].dtype):
                yield f"x{i}[:] = {lhs}; x{j}[:] = {rhs}"
    for i, j in itertools.permutations(range(min(len(values), 3)), 2):
        if values[i].size and values[j].size and values[i].dtype == values[j].dtype:
            pairs = FLOAT_PAIRS if i in floats else INTEGER_PAIRS
            for lhs, rhs in pairs if values[i].dtype != np.bool_ else ():
                if all(i in floats or _fits(n, values[i].dtype) for n in (lhs, rhs)):
                    yield f"x{i}[:] = {lhs}; x{j}[:] = {rhs}"


def _fits(text: str, dtype: np.dtype) -> bool:
    info = np.iinfo(dtype)
    return text in ("MIN", "MAX") or info.min <= int(text) <= info.max


def changed(values: Values, change: str, sized: Callable[[int], Values] | None) -> Values:
    """The inputs of a case after a change."""
    if change.startswith("B = "):
        assert sized is not None, "the sizes are known"
        return sized(int(change.removeprefix("B = ")))
    new = [np.array(value) for value in values]
    for part in change.split("; ") if change != AS_GIVEN else ():
        found = _CHANGE.fullmatch(part)
        assert found, f"no change: {part}"
        which, place, how, numbers = found.groups()
        for i in [int(which)] if which else range(len(new)):
            if which or jnp.issubdtype(new[i].dtype, jnp.inexact):
                new[i] = _changed(new[i], place, how, numbers.split(", "))
    return new


def _changed(array: np.ndarray, place: str, how: str, numbers: Sequence[str]) -> np.ndarray:
    flat = array.reshape(-1)  # a copy of the caller's: written in place
    with np.errstate(over="ignore"):
        new = np.array([_number(n, array.dtype) for n in numbers]).astype(array.dtype)
        if how == "*=":
            flat *= new[0]
        elif place == ":":
            flat[:] = np.resize(new, flat.shape)
        else:
            flat[int(place)] = new[0]
    return flat.reshape(array.shape)


def _number(text: str, dtype: np.dtype) -> complex | float | int | bool:
    if dtype == np.bool_:
        return text == "True"
    if jnp.issubdtype(dtype, jnp.inexact):
        return float(text)
    return int(getattr(np.iinfo(dtype), text.lower()) if text in ("MIN", "MAX") else text)

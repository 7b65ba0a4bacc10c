# SPDX-License-Identifier: Apache-2.0
"""Reductions with a function of the user's: one element after the other, as XLA does on a CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

Arrays = Sequence[jax.Array]

# A function that combines by one of these has an ONNX op, unless the numbers are complex.
_COMBINERS = frozenset({"add", "and", "max", "min", "mul", "or", "xor"})


def reduce(*operands: jax.Array, jaxpr: ClosedJaxpr, dimensions: Any, **_: Any) -> Any:
    arrays, initial = _halves(operands)
    if _is_lowered(jaxpr, arrays):
        return NotImplemented
    rows = [_rows(x, dimensions) for x in arrays]
    function = elementwise(jaxpr)
    start = [jnp.broadcast_to(x, row.shape[1:]) for x, row in zip(initial, rows, strict=True)]
    return lax.scan(lambda total, row: (function(*total, *row), None), start, rows)[0]


def reduce_window(*operands: jax.Array, jaxpr: Any, consts: Any, **window: Any) -> Any:
    arrays, initial = _halves(operands)
    body = ClosedJaxpr(jaxpr, consts)
    if len(arrays) == 1 and _is_lowered(body, arrays):
        return NotImplemented
    return over_windows(elementwise(body), arrays, initial, **window)


def over_windows(
    function: Callable[..., list[jax.Array]], arrays: Arrays, initial: Arrays, **window: Any
) -> list[jax.Array]:
    """Combines the elements of each window, from its first to its last, with a start."""
    inside = jnp.ones(arrays[0].shape, bool)
    total: Any = None
    for *elements, is_inside in zip(
        *(window_elements(x, **window) for x in (*arrays, inside)), strict=True
    ):
        if total is None:
            total = [jnp.broadcast_to(x, is_inside.shape) for x in initial]
        combined = function(*total, *elements)
        total = [jnp.where(is_inside, new, old) for new, old in zip(combined, total, strict=True)]
    return total


def _halves(operands: Arrays) -> tuple[Arrays, Arrays]:
    count = len(operands) // 2
    return operands[:count], operands[count:]


def _is_lowered(body: ClosedJaxpr, arrays: Arrays) -> bool:
    """Whether the function combines the two elements of each array by one primitive."""
    count, inner = len(arrays), body.jaxpr
    if len(inner.eqns) != count or any(map(jnp.iscomplexobj, arrays)):
        return False
    return all(
        eqn.primitive.name in _COMBINERS
        and {*map(id, eqn.invars)} == {id(inner.invars[i]), id(inner.invars[count + i])}
        and eqn.outvars[0] is inner.outvars[i]
        for i, eqn in enumerate(inner.eqns)
    )


def elementwise(body: ClosedJaxpr) -> Callable[..., list[jax.Array]]:
    """A function of scalars over arrays of one shape."""

    def mapped(*arrays: jax.Array) -> list[jax.Array]:
        function = jaxpr_as_fun(body)
        for _ in range(arrays[0].ndim):
            function = jax.vmap(function)
        return list(function(*arrays))

    return mapped


def _rows(x: jax.Array, dimensions: Sequence[int]) -> jax.Array:
    """The reduced axes as one, which comes first."""
    kept = [size for axis, size in enumerate(x.shape) if axis not in dimensions]
    return jnp.moveaxis(x, dimensions, range(len(dimensions))).reshape(-1, *kept)


def window_elements(
    x: jax.Array,
    *,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int],
    window_dilation: Sequence[int],
) -> Iterator[jax.Array]:
    """For each element of a window, what all windows have there; zero in the padding."""
    config = [
        (low, high, base - 1) for (low, high), base in zip(padding, base_dilation, strict=True)
    ]
    padded = lax.pad(x, jnp.zeros((), x.dtype), config)
    reach = [(n - 1) * d for n, d in zip(window_dimensions, window_dilation, strict=True)]
    counts = [
        (size - r - 1) // s + 1
        for size, r, s in zip(padded.shape, reach, window_strides, strict=True)
    ]
    for place in np.ndindex(*window_dimensions):
        start = [at * d for at, d in zip(place, window_dilation, strict=True)]
        limit = [
            at + (n - 1) * s + 1 for at, n, s in zip(start, counts, window_strides, strict=True)
        ]
        yield lax.slice(padded, start, limit, window_strides)

# SPDX-License-Identifier: Apache-2.0
"""Scatters by a function of the old and the new element, and windows that select an element."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import ClosedJaxpr

from .reduction import elementwise, window_elements

Combine = Callable[[jax.Array, jax.Array], jax.Array]


def scatter(
    operand: jax.Array,
    indices: jax.Array,
    updates: jax.Array,
    *,
    update_jaxpr: Any,
    update_consts: Any,
    **how: Any,
) -> Any:
    """x.at[i].apply(f); a scatter that replaces elements stays as it is."""
    if update_jaxpr is None:
        return NotImplemented
    function = elementwise(ClosedJaxpr(update_jaxpr, update_consts))
    return combined(lambda old, new: function(old, new)[0], operand, indices, updates, **how)


def combined(
    combine: Combine,
    operand: jax.Array,
    indices: jax.Array,
    updates: jax.Array,
    *,
    dimension_numbers: lax.ScatterDimensionNumbers,
    mode: Any,
    unique_indices: bool,
    **_: Any,
) -> jax.Array:
    """Elements become combine(old, new), one window after the other where they may overlap."""
    if unique_indices or math.prod(indices.shape[:-1]) == 1:
        return _at_once(combine, operand, indices, updates, dimension_numbers, mode)
    indices, updates, numbers = _in_a_row(indices, updates, dimension_numbers)

    def step(x: jax.Array, window: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        return _at_once(combine, x, *window, numbers, mode), None

    return lax.scan(step, operand, (indices, updates))[0]


def _at_once(
    combine: Combine,
    operand: jax.Array,
    indices: jax.Array,
    updates: jax.Array,
    numbers: lax.ScatterDimensionNumbers,
    mode: Any,
) -> jax.Array:
    sizes = iter([updates.shape[dim] for dim in numbers.update_window_dims])
    units = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    old = lax.gather(
        operand,
        indices,
        lax.GatherDimensionNumbers(
            offset_dims=tuple(numbers.update_window_dims),
            collapsed_slice_dims=tuple(numbers.inserted_window_dims),
            start_index_map=tuple(numbers.scatter_dims_to_operand_dims),
            operand_batching_dims=tuple(numbers.operand_batching_dims),
            start_indices_batching_dims=tuple(numbers.scatter_indices_batching_dims),
        ),
        [1 if dim in units else next(sizes) for dim in range(operand.ndim)],
        mode="clip",  # what would be outside is not written back
    )
    return lax.scatter(operand, indices, combine(old, updates), numbers, mode=mode)


def _in_a_row(
    indices: jax.Array, updates: jax.Array, numbers: lax.ScatterDimensionNumbers
) -> tuple[jax.Array, jax.Array, lax.ScatterDimensionNumbers]:
    """One axis of index vectors and one of windows; batch dims become entries of the vectors."""
    batch = indices.shape[:-1]
    places = [
        lax.broadcasted_iota(indices.dtype, (*batch, 1), axis)
        for axis in numbers.scatter_indices_batching_dims
    ]
    vectors = lax.concatenate([indices, *places], len(batch))
    window_dims = numbers.update_window_dims
    outer = [dim for dim in range(updates.ndim) if dim not in window_dims]
    windows = jnp.transpose(updates, (*outer, *window_dims))
    single = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(range(len(window_dims))),
        inserted_window_dims=tuple(
            sorted((*numbers.inserted_window_dims, *numbers.operand_batching_dims))
        ),
        scatter_dims_to_operand_dims=(
            *numbers.scatter_dims_to_operand_dims,
            *numbers.operand_batching_dims,
        ),
    )
    vectors = vectors.reshape(math.prod(batch), vectors.shape[-1])
    return vectors, windows.reshape(math.prod(batch), *windows.shape[len(outer) :]), single


def select_and_scatter(
    operand: jax.Array,
    source: jax.Array,
    initial: jax.Array,
    *,
    select_jaxpr: Any,
    select_consts: Any,
    scatter_jaxpr: Any,
    scatter_consts: Any,
    padding: Sequence[tuple[int, int]],
    **window: Any,
) -> jax.Array:
    """Each element of the source goes to the element of its window that is selected."""
    select = elementwise(ClosedJaxpr(select_jaxpr, select_consts))
    combine = elementwise(ClosedJaxpr(scatter_jaxpr, scatter_consts))
    count = math.prod(operand.shape)
    positions = lax.iota(jnp.int32, count).reshape(operand.shape) + 1  # 0 is padding
    none = (1,) * operand.ndim
    shape = {"padding": padding, "base_dilation": none, "window_dilation": none, **window}
    elements = zip(
        window_elements(operand, **shape), window_elements(positions, **shape), strict=True
    )
    best, chosen = next(elements)
    for element, position in elements:
        is_kept = (position == 0) | ((chosen != 0) & select(best, element)[0])
        best, chosen = jnp.where(is_kept, best, element), jnp.where(is_kept, chosen, position)
    result = combined(
        lambda old, new: combine(old, new)[0],
        jnp.full(count, initial),
        chosen.reshape(-1, 1) - 1,
        source.reshape(-1),
        dimension_numbers=lax.ScatterDimensionNumbers((), (0,), (0,)),
        mode=lax.GatherScatterMode.FILL_OR_DROP,
        unique_indices=False,
    )
    return result.reshape(operand.shape)

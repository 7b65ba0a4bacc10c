# SPDX-License-Identifier: Apache-2.0
"""How a function is called with the inputs of its model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from .errors import ConversionError
from .inputs import Arguments, is_input

TO_NCHW, TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)

Images = tuple[Sequence[int], Sequence[int]]  # positions of inputs and of outputs that are NCHW


class Call:
    """What crosses the border between a model and its function, in both directions.

    Everything that is no input of the model is bound. Images that the model takes or gives as NCHW
    are moved to and from the NHWC of the function.
    """

    def __init__(self, arguments: Arguments, images: Images = ((), ())) -> None:
        inputs_as_nchw, self._nchw_out = images
        self._keywords = tuple(arguments.keywords)
        values = (arguments.positional, tuple(arguments.keywords.values()))
        self._leaves, self._tree = jax.tree.flatten(values)
        inputs = [leaf for leaf in self._leaves if is_input(leaf)]
        self._nchw_in = _checked_indices("inputs_as_nchw", inputs_as_nchw, inputs)
        self.inputs = [
            _as_nchw(leaf) if i in self._nchw_in else leaf for i, leaf in enumerate(inputs)
        ]

    def arguments(self, arrays: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of the function, by position and by name, for the inputs of the model."""
        given = iter(
            jnp.transpose(array, TO_NHWC) if i in self._nchw_in else array
            for i, array in enumerate(arrays)
        )
        leaves = [next(given) if is_input(leaf) else leaf for leaf in self._leaves]
        positional, values = jax.tree.unflatten(self._tree, leaves)
        return positional, dict(zip(self._keywords, values, strict=True))

    def outputs(self, result: Any) -> Any:
        """The result of the function as the model gives it."""
        if not self._nchw_out:
            return result
        results, tree = jax.tree.flatten(result)
        for i in _checked_indices("outputs_as_nchw", self._nchw_out, results):
            results[i] = jnp.transpose(results[i], TO_NCHW)
        return jax.tree.unflatten(tree, results)


def _as_nchw(leaf: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
    shape = tuple(leaf.shape[i] for i in TO_NCHW)
    return jax.ShapeDtypeStruct(shape, leaf.dtype)  # type: ignore[no-untyped-call]


def _checked_indices(argument: str, indices: Sequence[int], arrays: Sequence[Any]) -> set[int]:
    """The indices, which count from the end when negative. Raises ConversionError E073."""
    found = set()
    for index in indices:
        if not -len(arrays) <= index < len(arrays):
            raise _bad_index(f"{argument} holds {index}, but there are {len(arrays)} arrays")
        if len(arrays[index].shape) != 4:
            rank = len(arrays[index].shape)
            raise _bad_index(f"{argument} holds {index}, an array of rank {rank} instead of 4")
        found.add(index % len(arrays))
    return found


def _bad_index(message: str) -> ConversionError:
    return ConversionError(
        "E073", message, help="give the positions of the images of shape (N, H, W, C), from 0 on"
    )

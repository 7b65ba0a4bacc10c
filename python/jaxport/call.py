# SPDX-License-Identifier: Apache-2.0
"""A call of a function as a function of arrays alone, which is what JAX traces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from .errors import ConversionError
from .inputs import Arguments, is_input

TO_NCHW, TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)


class Call:
    """fn with everything bound that is no input of the model.

    Images that a model takes or gives as NCHW are moved to and from the NHWC of the function.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        arguments: Arguments,
        inputs_as_nchw: Sequence[int] = (),
        outputs_as_nchw: Sequence[int] = (),
    ) -> None:
        self._fn = fn
        self._keywords = tuple(arguments.keywords)
        values = (arguments.positional, tuple(arguments.keywords.values()))
        self._leaves, self._tree = jax.tree.flatten(values)
        inputs = [leaf for leaf in self._leaves if is_input(leaf)]
        self._nchw_in = _checked_indices("inputs_as_nchw", inputs_as_nchw, inputs)
        self._nchw_out = outputs_as_nchw
        self.inputs = [
            _as_nchw(leaf) if i in self._nchw_in else leaf for i, leaf in enumerate(inputs)
        ]

    def trace(self) -> tuple[Any, Any]:
        """The jaxpr, and the result with the shapes that the model gives."""
        return jax.make_jaxpr(self._call, return_shape=True)(*self.inputs)

    def _call(self, *arrays: Any) -> Any:
        given = iter(
            jnp.transpose(array, TO_NHWC) if i in self._nchw_in else array
            for i, array in enumerate(arrays)
        )
        leaves = [next(given) if is_input(leaf) else leaf for leaf in self._leaves]
        positional, values = jax.tree.unflatten(self._tree, leaves)
        result = self._fn(*positional, **dict(zip(self._keywords, values, strict=True)))
        if not self._nchw_out:
            return result
        results, tree = jax.tree.flatten(result)
        for i in _checked_indices("outputs_as_nchw", self._nchw_out, results):
            results[i] = jnp.transpose(results[i], TO_NCHW)
        return jax.tree.unflatten(tree, results)


def _as_nchw(leaf: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
    return leaf.update(shape=tuple(leaf.shape[i] for i in TO_NCHW))


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

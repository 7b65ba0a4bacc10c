# SPDX-License-Identifier: Apache-2.0
"""A network of the benchmarks: what is called, and with which inputs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from flax import nnx

Input = tuple[tuple[int, ...], str]  # shape and dtype


@dataclass(frozen=True)
class Network:
    name: str
    build: Callable[[], Callable[..., Any]]
    inputs: tuple[Input, ...]
    largest_index: int = 1  # integers of the inputs are smaller than this

    def structs(self) -> list[jax.ShapeDtypeStruct]:
        return [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in self.inputs]

    def arrays(self) -> list[np.ndarray]:
        rng = np.random.default_rng(1)

        def array(shape: tuple[int, ...], dtype: str) -> np.ndarray:
            if np.issubdtype(dtype, np.integer):
                return rng.integers(0, self.largest_index, shape).astype(dtype)
            return rng.standard_normal(shape).astype(dtype)

        return [array(shape, dtype) for shape, dtype in self.inputs]


def of_module(make: Callable[[nnx.Rngs], nnx.Module]) -> Callable[[], Callable[..., Any]]:
    """Builds a module with noise on every weight, so that no scale is 1 and no bias is 0."""

    def build() -> Callable[..., Any]:
        graph, state = nnx.split(make(nnx.Rngs(0)))
        rng = np.random.default_rng(0)

        def add_noise(leaf: jax.Array) -> jax.Array:
            if not jax.numpy.issubdtype(leaf.dtype, jax.numpy.floating):
                return leaf
            return leaf + 0.02 * rng.standard_normal(leaf.shape, dtype=np.float32)

        return nnx.merge(graph, jax.tree.map(add_noise, state))

    return build


def image(batch: int, size: int, channels: int = 3) -> Input:
    return ((batch, size, size, channels), "float32")


def as_function(build: Callable[[], Callable[..., Any]]) -> Callable[[], Callable[..., Any]]:
    """Of a module whose call changes or scans a part of it, which Flax refuses in a function."""

    def build_function() -> Callable[..., Any]:
        graph, state = nnx.split(build())
        # A copy of the state belongs to the trace, so that the call may change it.
        return lambda *args: nnx.merge(graph, jax.tree.map(lambda leaf: leaf, state))(*args)

    return build_function

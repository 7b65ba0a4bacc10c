# SPDX-License-Identifier: Apache-2.0
"""Functions under JAX's transformations, as cases: the columns of docs/transforms.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.functions import Function, functions
from conformance.harness import Case

_LARGEST_HESSIAN = 16  # elements of the first argument

Make = Callable[[Callable[..., Any]], Callable[..., Any]]


def _scalar(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A number of all results. The weights differ, so that no two elements can be exchanged."""

    def scalar(*arguments: Any) -> Any:
        leaves = jax.tree.leaves(fn(*arguments))
        floats = [leaf for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating)]
        parts = [jnp.vdot(leaf.ravel(), jnp.linspace(0.5, 1.5, leaf.size)) for leaf in floats]
        return sum(parts) if parts else jnp.sum(leaves[0])

    return scalar


def _jvp(fn: Callable[..., Any]) -> Callable[..., Any]:
    def tangents(*arguments: Any) -> Any:
        return jax.jvp(fn, arguments, tuple(jnp.cos(value) for value in arguments))

    return tangents


# Each with the number of axes that its arguments have in front of those of the function.
TRANSFORMS: dict[str, tuple[Make, int]] = {
    "plain": (lambda fn: fn, 0),
    "vmap": (jax.vmap, 1),
    "vmap twice": (lambda fn: jax.vmap(jax.vmap(fn)), 2),
    "grad": (lambda fn: jax.grad(_scalar(fn)), 0),
    "value_and_grad": (lambda fn: jax.value_and_grad(_scalar(fn)), 0),
    "jvp": (_jvp, 0),
    "vmap of grad": (lambda fn: jax.vmap(jax.grad(_scalar(fn))), 1),
    "hessian": (lambda fn: jax.hessian(_scalar(fn)), 0),
}


def _arguments(function: Function, axes: int) -> list[Any]:
    """The arguments, each axis in front with two of them that differ a little."""
    values = list(function.arguments)
    for _ in range(axes):
        values = [np.stack([value, value * np.float32(0.98)]) for value in values]
    return values


def cases() -> list[Case]:
    found = []
    for function in functions():
        for name, (make, axes) in TRANSFORMS.items():
            if name == "hessian" and function.arguments[0].size > _LARGEST_HESSIAN:
                continue
            found.append(
                Case(
                    f"{function.group}.{function.name}, {name}",
                    function.group,
                    "float32",
                    make(function.fn),
                    lambda function=function, axes=axes: _arguments(function, axes),
                )
            )
    return found

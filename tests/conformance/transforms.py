# SPDX-License-Identifier: Apache-2.0
"""Functions under JAX's transformations, as cases: the columns of docs/transforms.md."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx

import quick_xla
from conformance.case import Case, Program, nodes, unpacked
from conformance.functions import Function, functions
from conformance.tolerances import derivative_is_near

_LARGEST_HESSIAN = 16  # elements of the first argument

Make = Callable[[Callable[..., Any]], Callable[..., Any]]


def _scalar(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A number of all results. The weights differ, so that no two elements can be exchanged."""

    def scalar(*arguments: Any) -> Any:
        leaves = jax.tree.leaves(fn(*arguments))
        pairs = [(leaf.real, leaf.imag) if jnp.iscomplexobj(leaf) else (leaf,) for leaf in leaves]
        floats = [part for pair in pairs for part in pair if jnp.issubdtype(part, jnp.floating)]
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


def _leaf(leaf: Any) -> np.ndarray:
    """The tangent of an integer, which has no value, crosses the border of a program as False."""
    array = np.asarray(leaf)
    return np.zeros(array.shape, bool) if array.dtype == jax.dtypes.float0 else array


def _difference(wanted: list[np.ndarray], given: list[np.ndarray]) -> str | None:
    for i, (want, packed) in enumerate(zip(wanted, given, strict=True)):
        have = unpacked(want, packed)
        if want.shape != have.shape or want.dtype != have.dtype:
            return f"output {i} is {have.dtype}{have.shape}, JAX has {want.dtype}{want.shape}"
        wrong = ~derivative_is_near(want, have)
        if wrong.any():
            place = tuple(int(k) for k in np.argwhere(wrong)[0])
            return f"output {i}{list(place)} is {have[place]}, JAX has {want[place]}"
    return None


def _program(function: Function, name: str) -> Program:
    make, axes = TRANSFORMS[name]
    fn, arguments = make(function.make()), _arguments(function, axes)

    def results(options: dict[str, Any]) -> list[np.ndarray]:
        # A function of its own: a module may have no hash.
        compiled = jax.jit(lambda *values: fn(*values), compiler_options=options)
        return list(map(_leaf, jax.tree.leaves(compiled(*arguments))))

    def difference(wanted: list[np.ndarray], given: list[np.ndarray]) -> str | None:
        # Where a clip compares a value with itself, XLA may compute it twice, rounded differently.
        return _difference(wanted, given) and _difference(results(quick_xla.CAREFUL), given)

    expected = functools.partial(results, quick_xla.QUICK)
    return Program(fn, arguments, arguments, expected, difference, facts=_size)


def _size(model: onnx.ModelProto) -> dict[str, Any]:
    return {"nodes": sum(1 for _ in nodes(model)), "bytes": model.ByteSize()}


def cases() -> list[Case]:
    """Every function under every transformation; a Hessian only where it is small."""
    return [
        Case(
            f"{function.group}.{function.name}, {name}",
            function.group,
            "float32",
            lambda function=function, name=name: _program(function, name),
            compares_refusals=True,
        )
        for function in functions()
        for name in TRANSFORMS
        if name != "hessian" or function.arguments[0].size <= _LARGEST_HESSIAN
    ]

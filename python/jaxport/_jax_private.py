# SPDX-License-Identifier: Apache-2.0
"""Functions behind primitives, which have no public name.

JAX lowers some primitives through a Python function of other primitives. Using the same function
gives the same numbers. Its own are looked up by name when such a primitive is met, never at import;
those of other libraries are found in JAX's tables of lowerings, which are only read.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.extend.core

from .errors import ConversionError

_THREEFRY = ("jax._src.random.threefry2x32", "jax._src.prng")  # jax 0.10 split prng
_LAX = ("jax._src.lax.lax",)
_SPECIAL = ("jax._src.lax.special",)
_RANDOM = ("jax._src.random.core", "jax._src.random")

# What each primitive is computed with: the modules that may have it, newest first, and its name.
_NAMES = {
    "bessel_i0e": (_SPECIAL, "bessel_i0e_impl"),
    "igamma": (_SPECIAL, "igamma_impl"),
    "igamma_grad_a": (_SPECIAL, "igamma_grad_a_impl"),
    "igammac": (_SPECIAL, "igammac_impl"),
    "ragged_dot_general": (_LAX, "_ragged_dot_general_impl"),
    "random_gamma": (_RANDOM, "_gamma_impl"),
    "random_gamma_grad": (_SPECIAL, "random_gamma_grad_impl"),
    "regularized_incomplete_beta": (_SPECIAL, "regularized_incomplete_beta_impl"),
    "scaled_dot": (("jax._src.lax.scaled_dot",), "_scaled_dot_impl"),
    "threefry2x32": (_THREEFRY, "_threefry2x32_lowering"),
}


def private(primitive: str) -> Any:
    """JAX's function for a primitive. Raises ConversionError E078 when this JAX has none."""
    modules, name = _NAMES[primitive]
    for module in modules:
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise ConversionError(
        "E078",
        f"primitive '{primitive}' is computed with JAX's {name}, which JAX {jax.__version__} lacks",
        help="use a version of JAX that jaxport names as tested, or give the computation with "
        f'jaxport.register_decomposition("{primitive}", fn)',
    )


def definition(primitive: Any, has_effects: bool) -> Callable[..., Any] | None:
    """The function of other primitives that JAX runs for a primitive: None when there is none.

    It takes operands and parameters as the primitive does. `has_effects`: JAX's own evaluation may
    act on the host, so only what JAX compiles will do.
    """
    return _lowered_function(primitive) or (None if has_effects else _evaluation(primitive))


def _lowered_function(primitive: Any) -> Callable[..., Any] | None:
    """What mlir.lower_fun made the lowering of a primitive from."""
    try:
        mlir = importlib.import_module("jax._src.interpreters.mlir")
        tables = (mlir._platform_specific_lowerings.get("cpu", {}), mlir._lowerings)
        code = mlir.lower_fun(lambda: ()).__code__
    except (ImportError, AttributeError):  # a version of JAX that keeps them elsewhere
        return None
    for table in tables:
        entry = table.get(primitive)
        if entry is None:
            continue
        rule = inspect.unwrap(getattr(entry, "rule", entry))
        if getattr(rule, "__code__", None) is not code:
            return None
        return inspect.getclosurevars(rule).nonlocals.get("fun")
    return None


def _evaluation(primitive: Any) -> Callable[..., Any] | None:
    """What JAX runs for a primitive outside of jit, unless that is to compile the primitive."""
    impl = primitive.impl
    if isinstance(impl, functools.partial) and impl.func.__name__ == "apply_primitive":
        return None
    is_absent = getattr(impl, "__func__", None) is jax.extend.core.Primitive.impl
    return None if is_absent else impl

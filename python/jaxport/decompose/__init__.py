# SPDX-License-Identifier: Apache-2.0
"""Primitives that ONNX has no op for, written as JAX functions of primitives that it has.

A decomposition takes the operands and the parameters of a primitive and gives its results. The
importer puts its jaxpr in place of the equation. A module of this package is loaded when one of its
primitives is met.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from .. import _core, lowering
from ..registry import register

Decomposition = Callable[..., Any]

# The module of each primitive; the function there has the primitive's name.
_HOMES = {
    "bessel_i0e": "special",
    "bessel_i1e": "special",
    "call_hi_primitive": "other",
    "cholesky": "triangular",
    "cholesky_update": "triangular",
    "digamma": "special",
    "eig": "schur",
    "eigh": "jacobi",
    "empty": "other",
    "empty2": "other",
    "erf_inv": "special",
    "erfc": "special",
    "fft": "fourier",
    "geqp3": "orthogonal",
    "geqrf": "orthogonal",
    "hessenberg": "orthogonal",
    "householder_product": "orthogonal",
    "igamma": "special",
    "igamma_grad_a": "special",
    "igammac": "special",
    "iota_2x32_shape": "random",
    "lgamma": "special",
    "log2": "special",
    "lu": "elimination",
    "lu_pivots_to_permutation": "elimination",
    "mulhi": "other",
    "ormqr": "orthogonal",
    "platform_index": "platform",
    "polygamma": "special",
    "qr": "orthogonal",
    "ragged_dot_general": "other",
    "random_bits": "random",
    "random_fold_in": "random",
    "random_gamma": "random",
    "random_gamma_grad": "special",
    "random_seed": "random",
    "random_split": "random",
    "reduce": "reduction",
    "reduce_window": "reduction",
    "regularized_incomplete_beta": "special",
    "rng_bit_generator": "bit_generator",
    "scaled_dot": "other",
    "scatter": "scatter",
    "schur": "schur",
    "select_and_scatter": "scatter",
    "svd": "jacobi",
    "symmetric_product": "triangular",
    "threefry2x32": "random",
    "triangular_solve": "triangular",
    "tridiagonal": "orthogonal",
    "tridiagonal_solve": "orthogonal",
    "zeta": "special",
}
_registered: dict[str, Decomposition] = {}


def register_decomposition(primitive: Any, fn: Decomposition | None = None) -> Any:
    """Says how a primitive is computed in JAX, for conversions from now on.

    Args:
        primitive: a primitive or its name.
        fn: takes the operands of the primitive as arrays and its parameters as keywords, and gives
            the result, or a sequence of results. May use primitives that are decomposed in turn.
            NotImplemented leaves the equation as it is.

    Returns:
        fn, or a decorator when fn is left out.

    A decomposition goes before what jaxport does with the primitive by itself.
    """
    return register(_registered, primitive, fn)


class Names:
    """The names of all primitives that may have a decomposition."""

    def __contains__(self, name: str) -> bool:
        return name in _registered or name in _HOMES or is_foreign(name)


def is_foreign(name: str) -> bool:
    """Whether the compiler has nothing for a primitive: its own definition may stand for it."""
    return not (_core.knows(name) or lowering.is_registered(name))


def find(name: str) -> Decomposition | None:
    """The decomposition of a primitive, or None."""
    if name in _registered:
        return _registered[name]
    if name in _HOMES:
        module = importlib.import_module(f"{__name__}.{_HOMES[name]}")
        return getattr(module, name)
    return None

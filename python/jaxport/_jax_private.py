# SPDX-License-Identifier: Apache-2.0
"""JAX's own functions behind its primitives, which have no public name.

JAX lowers some primitives through a Python function of other primitives. Using the same function
gives the same numbers. The names are looked up when such a primitive is met, never at import.
"""

from __future__ import annotations

import importlib
from typing import Any

import jax

from .errors import ConversionError

_THREEFRY = ("jax._src.random.threefry2x32", "jax._src.prng")  # jax 0.10 split prng
_LAX = ("jax._src.lax.lax",)
_SPECIAL = ("jax._src.lax.special",)
_RANDOM = ("jax._src.random.core", "jax._src.random")

# What each primitive is computed with: the modules that may have it, newest first, and its name.
_NAMES = {
    "bcoo_dot_general": (("jax.experimental.sparse.bcoo",), "_bcoo_dot_general_impl"),
    "bcsr_dot_general": (("jax.experimental.sparse.bcsr",), "_bcsr_dot_general_impl"),
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

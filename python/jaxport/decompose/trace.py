# SPDX-License-Identifier: Apache-2.0
"""Equations as jaxprs of their decompositions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from .. import _jax
from ..errors import ConversionError, first_line
from . import BY_IMPL, complex_numbers, find
from .complex_numbers import PACKED, is_complex
from .keys import over_key_data


class Tracer:
    """Traces decompositions; one for each conversion, so that equal equations are traced once."""

    def __init__(self) -> None:
        self._traced: dict[Any, Any] = {}

    def jaxpr(self, eqn: Any, name: str) -> Any:
        """The closed jaxpr that computes what the equation does; None when it stays as it is.

        Raises ConversionError E077 when the decomposition fails or gives other types, E012 when a
        primitive has no form for complex numbers.
        """
        key = self._key(eqn)
        if key is None or key not in self._traced:
            try:
                traced = _trace(eqn, name)
            except ConversionError:
                raise
            except Exception as error:
                why = f"cannot be traced: {type(error).__name__}: {first_line(error)}"
                raise _unusable(name, why) from error
            problem = traced and _misfit(_structs(eqn.outvars, name), traced.out_avals)
            if problem:
                raise _unusable(name, problem)
            if key is None:
                return traced
            self._traced[key] = traced
        return self._traced[key]

    def _key(self, eqn: Any) -> Any:
        key = (
            eqn.primitive,
            tuple(sorted(eqn.params.items(), key=lambda item: item[0])),
            tuple((atom.aval.shape, atom.aval.dtype, _literal(atom)) for atom in eqn.invars),
            eqn.ctx,
        )
        try:
            hash(key)
        except TypeError:  # a parameter such as an array: trace each of these
            return None
        return key


def _trace(eqn: Any, name: str) -> Any:
    operands = _structs(eqn.invars, name)
    literals = [None if name in PACKED else _literal(x) for x in eqn.invars]
    decomposition = _decomposition(eqn, name)
    stays = False

    def results(*arrays: Any) -> list[Any]:
        nonlocal stays
        known = [
            array if literal is None else literal
            for array, literal in zip(arrays, literals, strict=True)
        ]
        result = decomposition(*known, **eqn.params)
        stays = result is NotImplemented
        if stays:
            return []
        return list(result) if isinstance(result, tuple | list) else [result]

    with _jax.context_of(eqn):
        traced = jax.make_jaxpr(results)(*operands)
    return None if stays else traced


def _decomposition(eqn: Any, name: str) -> Callable[..., Any]:
    if name in PACKED:
        return lambda *operands, **_: PACKED[name](*operands)
    is_empty = all(0 in atom.aval.shape for atom in eqn.outvars)
    if is_empty and name != "broadcast_in_dim":  # which is what zeros are made of
        return lambda *_, **__: [jnp.zeros(x.aval.shape, x.aval.dtype) for x in eqn.outvars]
    if name in BY_IMPL:
        return cast(Callable[..., Any], eqn.primitive.impl)
    found = find(name)
    dtypes = [atom.aval.dtype for atom in (*eqn.invars, *eqn.outvars)]
    if not any(is_complex(dtype) or _jax.is_key(dtype) for dtype in dtypes):
        assert found
        return found

    def of_packed(*operands: Any, **params: Any) -> Any:
        result = found(*operands, **params) if found else NotImplemented
        if result is not NotImplemented or name in _jax.TAKES_PACKED:
            return result
        if any(map(is_complex, dtypes)):
            return complex_numbers.decomposition(eqn.primitive)(*operands, **params)
        return over_key_data(eqn.primitive)(*operands, **params)

    return of_packed


def _literal(atom: Any) -> Any:
    """The value of a complex literal as a numpy scalar, else None."""
    if not hasattr(atom, "val") or atom.aval.shape or not is_complex(atom.aval.dtype):
        return None
    return atom.aval.dtype.type(complex(atom.val))


def _structs(atoms: Sequence[Any], name: str) -> list[Any]:
    """The types that a decomposition sees; between parts and complex numbers the packed ones."""

    def struct(aval: Any) -> Any:
        if name in PACKED and is_complex(aval.dtype):
            return jax.ShapeDtypeStruct((*aval.shape, 2), np.zeros((), aval.dtype).real.dtype)
        return jax.ShapeDtypeStruct(aval.shape, aval.dtype)

    return [struct(atom.aval) for atom in atoms]


def _misfit(declared: Sequence[Any], given: Sequence[Any]) -> str:
    if len(declared) != len(given):
        return f"gives {len(given)} results instead of {len(declared)}"
    for want, have in zip(declared, given, strict=True):
        if (want.shape, want.dtype) != (have.shape, have.dtype):
            return f"gives {_text(have)} instead of {_text(want)}"
    return ""


def _text(aval: Any) -> str:
    return f"{aval.dtype}[{','.join(map(str, aval.shape))}]"


def _unusable(name: str, why: str) -> ConversionError:
    return ConversionError(
        "E077",
        f"the decomposition of primitive '{name}' {why}",
        help="see jaxport.register_decomposition",
    )

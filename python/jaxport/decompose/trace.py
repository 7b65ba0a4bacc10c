# SPDX-License-Identifier: Apache-2.0
"""Equations as jaxprs of their decompositions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import _jax
from ..errors import ConversionError, first_line
from . import complex_numbers, find, is_foreign
from .complex_numbers import PACKED, is_complex
from .keys import over_key_data


class Tracer:
    """Traces decompositions; one for each conversion, so that equal equations are traced once."""

    def __init__(self) -> None:
        self._traced: dict[Any, Any] = {}
        self._why_not: dict[str, str] = {}

    def jaxpr(self, eqn: Any, name: str) -> Any:
        """The closed jaxpr that computes what the equation does; None when it stays as it is.

        Raises ConversionError E077 when the decomposition fails or gives other types, E012 when a
        primitive has no form for complex numbers. A primitive that only has the definition of its
        library stays when that fails: nobody may need its results.
        """
        key = self._key(eqn)
        if key is not None and key in self._traced:
            return self._traced[key]
        traced, problem, cause = _try(eqn, name)
        if problem and not _is_by_definition(name):
            raise _unusable(name, problem) from cause
        if problem:
            self._why_not.setdefault(name, problem)
            traced = None
        if key is not None:
            self._traced[key] = traced
        return traced

    def why_not(self, name: str) -> str:
        """What is wrong with the definition of a primitive; "" when nothing is known."""
        return self._why_not.get(name, "")

    def _key(self, eqn: Any) -> Any:
        key = (
            eqn.primitive,
            tuple(sorted(eqn.params.items(), key=lambda item: item[0])),
            tuple((atom.aval.shape, atom.aval.dtype, _value(atom)) for atom in eqn.invars),
            eqn.ctx,
        )
        try:
            hash(key)
        except TypeError:  # a parameter such as an array: trace each of these
            return None
        return key


def _is_by_definition(name: str) -> bool:
    return find(name) is None and is_foreign(name)


def _try(eqn: Any, name: str) -> tuple[Any, str, Exception | None]:
    """The jaxpr of a decomposition, what is wrong with it, and the error that says so."""
    try:
        traced = _trace(eqn, name)
    except ConversionError:
        raise
    except Exception as error:
        return None, f"cannot be traced: {type(error).__name__}: {first_line(error)}", error
    if traced is None:
        return None, "", None
    if _is_by_definition(name) and _uses(traced.jaxpr, eqn):
        return None, "uses itself", None
    return traced, _misfit(_structs(eqn.outvars, name), traced.out_avals), None


def _uses(jaxpr: Any, eqn: Any) -> bool:
    """Whether an equal equation is in a jaxpr or in what it calls: it would never end.

    A definition may use its own primitive on smaller things; their number is bounded elsewhere.
    """

    def is_equal(other: Any) -> bool:
        return other.primitive is eqn.primitive and _signature(other) == _signature(eqn)

    return any(
        is_equal(inner) or (inner.primitive.name in ("jit", "pjit") and _uses(body.jaxpr, eqn))
        for inner in jaxpr.eqns
        for body in [inner.params.get("jaxpr")]
    )


def _signature(eqn: Any) -> tuple[str, ...]:
    """Parameters and types as text: not everything in there can be compared."""
    return str(eqn.params), *(str(atom.aval) for atom in eqn.invars)


def _trace(eqn: Any, name: str) -> Any:
    operands = _structs(eqn.invars, name)
    decomposition = _decomposition(eqn, name)
    if decomposition is None:
        return None
    known_values = [None if name in PACKED else _known(atom, name) for atom in eqn.invars]
    stays = False

    def results(*arrays: Any) -> list[Any]:
        nonlocal stays
        known = [
            array if value is None else value
            for array, value in zip(arrays, known_values, strict=True)
        ]
        result = decomposition(*known, **eqn.params)
        stays = result is NotImplemented
        if stays:
            return []
        return list(result) if isinstance(result, tuple | list) else [result]

    with _jax.context_of(eqn):
        traced = jax.make_jaxpr(results)(*operands)
    return None if stays else traced


def _decomposition(eqn: Any, name: str) -> Callable[..., Any] | None:
    if name in PACKED:
        return lambda *operands, **_: PACKED[name](*operands)
    is_empty = all(0 in atom.aval.shape for atom in eqn.outvars)
    if is_empty and name != "broadcast_in_dim":  # which is what zeros are made of
        return lambda *_, **__: [jnp.zeros(x.aval.shape, x.aval.dtype) for x in eqn.outvars]
    found = find(name) or (_jax.definition(eqn) if is_foreign(name) else None)
    dtypes = [atom.aval.dtype for atom in (*eqn.invars, *eqn.outvars)]
    if not any(is_complex(dtype) or _jax.is_key(dtype) for dtype in dtypes):
        return found

    def of_packed(*operands: Any, **params: Any) -> Any:
        result = found(*operands, **params) if found else NotImplemented
        if result is not NotImplemented or name in _jax.TAKES_PACKED:
            return result
        if any(map(is_complex, dtypes)):
            return complex_numbers.decomposition(eqn.primitive)(*operands, **params)
        return over_key_data(eqn.primitive)(*operands, **params)

    return of_packed


def _known(atom: Any, name: str) -> Any:
    """The value of an operand that a decomposition gets as a number rather than as an array.

    Definitions of other libraries may look at numbers: Equinox's noinline finds its function so.
    """
    if is_complex(atom.aval.dtype):
        return _value(atom)
    value = _value(atom) if _is_by_definition(name) else None
    return None if value is None else np.asarray(value)


def _value(atom: Any) -> Any:
    """The value of a scalar literal as a numpy scalar, else None."""
    if not hasattr(atom, "val") or atom.aval.shape or _jax.is_key(atom.aval.dtype):
        return None
    return np.asarray(atom.val).astype(atom.aval.dtype)[()]


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

# SPDX-License-Identifier: Apache-2.0
"""Who is off where two results differ: a run of JAX in 64 bits, and runs that round otherwise.

The jaxpr is evaluated again with all floats in 64 bits, which gives the exact result, as far as one
can speak of one. Then a few times more with every operation off by a unit in the last place of the
dtype that the program has there: how far these results lie apart is what rounding alone can do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import _jax
from .._jaxpr import is_variable
from .equations import body_of, parts
from .tolerances import TOLERANCES, Array, allowed, distance, is_float, scale_of, wide

# How much farther from the exact result than JAX a model may be: both are one sample of the same
# rounding errors each, and their ratio is rarely beyond this.
_FACTOR = 8.0
_NUDGE_FACTOR = 2.0
_NUDGES = 6

# Their results depend on the bits or the width of their operands, so they keep their dtypes.
_NARROW = {
    *("bitcast_convert_type", "nextafter", "random_bits", "random_gamma", "reduce_precision"),
    *("rng_bit_generator", "rng_uniform"),
}

# Operations that round; all others give what they are given, or integers.
_ROUNDING = {
    *("acos", "acosh", "add", "add_any", "asin", "asinh", "atan", "atan2", "atanh", "bessel_i0e"),
    *("bessel_i1e", "cbrt", "conv_general_dilated", "convert_element_type", "cos", "cosh"),
    *("cumlogsumexp", "cumprod", "cumsum", "digamma", "div", "dot_general", "erf", "erf_inv"),
    *("erfc", "exp", "exp2", "expm1", "fft", "integer_pow", "lgamma", "log", "log1p", "logistic"),
    *("mul", "pow", "reduce_prod", "reduce_sum", "reduce_window_sum", "rem", "rsqrt"),
    *("scatter-add", "scatter-mul", "sin", "sinh", "sqrt", "square", "sub", "tan", "tanh"),
}
_SUMS = {"conv_general_dilated", "cumsum", "dot_general", "reduce_sum", "reduce_window_sum"}


def rounding_explains(
    jaxpr: Any, arguments: Sequence[Any], pairs: dict[int, tuple[Array, Array]]
) -> dict[int, bool]:
    """Whether rounding alone may make these results of JAX and of a model differ, by position.

    False where no run in 64 bits is possible.
    """
    try:
        runs = wide_results(jaxpr, arguments)
    except Exception:  # what a primitive refuses in 64 bits is nobody's fault here
        return dict.fromkeys(pairs, False)
    with np.errstate(all="ignore"):
        return {
            i: bool(within(want, have, [run[i] for run in runs]).all())
            for i, (want, have) in pairs.items()
        }


def wide_results(jaxpr: Any, arguments: Sequence[Any]) -> list[list[Array]]:
    """The exact results, then those of runs that round otherwise."""
    with _jax.double_precision(True):
        given = [_widened(value) for value in arguments]
        run = jax.jit(lambda turn, *args: _Wide(turn).jaxpr(jaxpr, args))
        return [
            [_jax.host_array(value) for value in run(jnp.uint32(turn), *given)]
            for turn in range(_NUDGES + 1)
        ]


def within(want: Array, have: Array, others: list[Array]) -> Array:
    """Elements that rounding explains. The first of `others` is the exact result."""
    exact, nudged = others[0], others[1:]
    least = allowed(want, have)
    if not is_float(want):
        return _whole_within(want, have, others)
    w, h = wide(want), wide(have)
    size = scale_of(want, have)
    own = distance(w, exact)
    apart = [own, *(distance(exact, other) for other in nudged)]
    spread = np.maximum.reduce([_FACTOR * own, *(_NUDGE_FACTOR * d for d in apart[1:])])
    finite = spread[np.isfinite(spread)]
    # Where results that are as good as JAX's are far apart, the model's must be among them.
    gross = 10 * TOLERANCES[want.dtype.name].relative * size
    # One element may be exact by luck: a quarter of the worst error of the array is everybody's, as
    # long as that is small.
    shared = min(0.25 * (finite.max() if finite.size else 0.0), gross)
    slack = np.where(np.isfinite(spread), spread, 0.0) + shared
    is_far = np.maximum.reduce(apart) > gross
    near = np.minimum(distance(w, h), distance(exact, h)) <= slack + least
    return np.asarray(np.where(is_far, _among(h, [w, *others], least), near))


def _whole_within(want: Array, have: Array, others: list[Array]) -> Array:
    """The same for integers and bools: one of the results or, where these are many, between them.

    An index may be one of two; what a floor gives of a lost digit may be anything near.
    """
    results = np.stack([want, *others]).astype(np.longdouble)
    ordered = np.sort(results, axis=0)
    is_many = np.count_nonzero(np.diff(ordered, axis=0), axis=0) >= 3
    is_one = np.any(results == have, axis=0)
    between = _among(have.astype(np.longdouble), list(results), np.zeros(have.shape))
    return np.asarray(is_one | (is_many & between))


def _among(h: Array, results: list[Array], least: Array) -> Array:
    """Elements that lie between the results of JAX, or half as far beyond them."""
    low = np.minimum.reduce([np.where(np.isnan(r), np.inf, r) for r in results])
    high = np.maximum.reduce([np.where(np.isnan(r), -np.inf, r) for r in results])
    margin = np.where(np.isfinite(high - low), 0.5 * np.abs(high - low), 0.0) + least
    is_nan = np.logical_or.reduce([np.isnan(r) for r in results])
    return np.asarray(((h >= low - margin) & (h <= high + margin)) | (np.isnan(h) & is_nan))


class _Wide:
    """Evaluates jaxprs in 64 bits. `turn` chooses what is off by a unit; in turn 0 nothing is."""

    def __init__(self, turn: Any) -> None:
        self._turn = turn
        self._count = 0

    def jaxpr(self, jaxpr: Any, arguments: Sequence[Any]) -> list[Any]:
        inner, consts = parts(jaxpr)
        env = dict(zip(inner.invars, arguments, strict=True))
        env |= {v: _widened(c) for v, c in zip(inner.constvars, consts, strict=True)}

        def read(atom: Any) -> Any:
            if is_variable(atom):
                return env[atom]
            return _widened(jnp.asarray(atom.val, atom.aval.dtype))

        for eqn in inner.eqns:
            if eqn.outvars:
                results = self._equation(eqn, [read(atom) for atom in eqn.invars])
                env.update(zip(eqn.outvars, results, strict=True))
        return [read(atom) for atom in inner.outvars]

    def _equation(self, eqn: Any, operands: list[Any]) -> list[Any]:
        name, params = eqn.primitive.name, eqn.params
        body = body_of(eqn)
        if body is not None:
            return self.jaxpr(body, operands)
        if name == "cond":
            branches = [self._function(branch) for branch in params["branches"]]
            return list(lax.switch(operands[0], branches, *operands[1:]))
        if name == "scan":
            return self._scan(_jax.scan_params(eqn), operands)
        if name == "while" and not params["cond_jaxpr"].out_avals[0].shape:
            m, n = params["cond_nconsts"], params["body_nconsts"]
            test, step = self._function(params["cond_jaxpr"]), self._function(params["body_jaxpr"])
            return list(
                lax.while_loop(
                    lambda s: test(*operands[:m], *s)[0],
                    lambda s: step(*operands[m : m + n], *s),
                    operands[m + n :],
                )
            )
        if name in _NARROW or any(map(_has_jaxpr, params.values())):
            return self._narrow(eqn, operands)
        results = _jax.bind(eqn, operands, {k: _wide_dtype(v) for k, v in params.items()})
        return self._nudged(eqn, operands, results) if name in _ROUNDING else results

    def _function(self, jaxpr: Any) -> Callable[..., list[Any]]:
        return lambda *arguments: self.jaxpr(jaxpr, arguments)

    def _scan(self, params: dict[str, Any], operands: list[Any]) -> list[Any]:
        fixed, carried = params["num_consts"], params["num_carry"]
        consts, init = operands[:fixed], operands[fixed : fixed + carried]

        def body(carry: Any, x: Any) -> Any:
            results = self.jaxpr(params["jaxpr"], [*consts, *carry, *x])
            return results[:carried], results[carried:]

        xs = operands[fixed + carried :]
        carry, ys = lax.scan(body, init, xs, params["length"], params["reverse"])
        return [*carry, *ys]

    def _narrow(self, eqn: Any, operands: list[Any]) -> list[Any]:
        """An equation in its own dtypes."""
        atoms = zip(eqn.invars, operands, strict=True)
        own = [_in_dtype(value, atom.aval.dtype) for atom, value in atoms]
        return [_widened(value) for value in _jax.bind(eqn, own, eqn.params)]

    def _nudged(self, eqn: Any, operands: list[Any], results: list[Any]) -> list[Any]:
        """The results, off by a unit in the last place that they have in the program."""
        dtype = eqn.outvars[0].aval.dtype
        if not jnp.issubdtype(dtype, jnp.floating) or dtype == jnp.float64:
            return results
        self._count += 1
        (result,) = results
        size = result
        if eqn.primitive.name in _SUMS:  # their parts are rounded on the way
            sizes = [abs(x) if jnp.issubdtype(x.dtype, jnp.floating) else x for x in operands]
            size = _jax.bind(eqn, sizes, {k: _wide_dtype(v) for k, v in eqn.params.items()})[0]
        unit = float(jnp.finfo(dtype).eps)  # type: ignore[no-untyped-call]
        moved = result + self._signs(result.shape) * unit * size
        # Arithmetic with small whole numbers is exact.
        is_whole = (result == jnp.round(result)) & (abs(result) < 1 / unit)
        return [jnp.where(is_whole | ~jnp.isfinite(moved), result, moved)]

    def _signs(self, shape: tuple[int, ...]) -> Any:
        """-1, 0 or 1 for each element, other ones in each turn; 0 in turn 0."""
        salt = (self._turn * 97 + self._count * 40503).astype(jnp.uint32)
        bits = lax.iota(jnp.uint32, int(np.prod(shape))).reshape(shape) * jnp.uint32(2654435761)
        bits = bits + salt * jnp.uint32(2246822519)
        bits = (bits ^ (bits >> 15)) * jnp.uint32(2146121005)
        bits = (bits ^ (bits >> 13)) * jnp.uint32(2221713035)
        signs = ((bits >> 16) % 3).astype(jnp.float64) - 1.0
        return jnp.where(self._turn == 0, 0.0, signs)


def _has_jaxpr(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_has_jaxpr, value))
    return hasattr(value, "eqns")


def _wide_dtype(value: Any) -> Any:
    """A parameter; a dtype of fewer bits becomes one of 64."""
    if not isinstance(value, np.dtype | type):
        return value
    return _wider(value) if _is_dtype(value) else value


def _is_dtype(value: Any) -> bool:
    try:
        np.dtype(value)
    except TypeError:
        return False
    return True


def _wider(dtype: Any) -> Any:
    if jnp.issubdtype(dtype, jnp.floating):
        return np.dtype(np.float64)
    return np.dtype(np.complex128) if jnp.issubdtype(dtype, jnp.complexfloating) else dtype


def _in_dtype(value: Any, dtype: Any) -> Any:
    return value if value.dtype == dtype else value.astype(dtype)


def _widened(value: Any) -> Any:
    value = value if isinstance(value, jax.Array) else jnp.asarray(value)
    if _jax.is_key(value.dtype) or value.dtype == jax.dtypes.float0:
        return value
    return _in_dtype(value, _wider(value.dtype))

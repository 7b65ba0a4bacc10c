# SPDX-License-Identifier: Apache-2.0
"""Runs a jaxpr equation by equation, so that results can be changed on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.extend.core
import jax.numpy as jnp
from jax import lax

Change = Callable[[Any, Sequence[Any], list[Any]], list[Any]]  # equation, operands, results
Reread = Callable[[Any, Any], Any]  # the equation that made a value, and the value

_JAXPRS = (jax.extend.core.ClosedJaxpr, jax.extend.core.Jaxpr)
_CALLS = {
    *("jit", "pjit", "closed_call", "core_call", "checkpoint", "remat", "remat2"),
    *("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"),
}

# Operations that round; all others give what they are given, or integers.
_ROUNDING = {
    *("acos", "acosh", "add", "add_any", "asin", "asinh", "atan", "atan2", "atanh", "bessel_i0e"),
    *(
        "cbrt",
        "conv_general_dilated",
        "cos",
        "cosh",
        "cumlogsumexp",
        "cumprod",
        "cumsum",
        "digamma",
    ),
    *("div", "dot_general", "erf", "erf_inv", "erfc", "exp", "exp2", "expm1", "fft", "integer_pow"),
    *("lgamma", "log", "log1p", "logistic", "mul", "pow", "reduce_prod", "reduce_sum"),
    *("reduce_window", "reduce_window_sum", "rsqrt", "scatter-add", "scatter-mul", "sin", "sinh"),
    *("sqrt", "square", "sub", "tan", "tanh", "convert_element_type", "rem"),
}

_SUMS = {"cumsum", "conv_general_dilated", "dot_general", "reduce_sum", "reduce_window_sum"}

# XLA's own are off by this much in 64 bits, where nothing is wider to say so.
_INEXACT = {"acosh", "asinh", "atanh", "bessel_i0e", "digamma", "erf_inv", "lgamma", "log1p"}


def primitives(jaxpr: Any) -> set[str]:
    """The names of all primitives, also of those in nested jaxprs."""
    return {eqn.primitive.name for eqn in equations(jaxpr)}


def shapes(jaxpr: Any) -> Iterator[tuple[int, ...]]:
    """Those of all inputs and results, also in nested jaxprs."""
    yield from (v.aval.shape for v in jaxpr.invars)
    for eqn in equations(jaxpr):
        yield from (v.aval.shape for v in eqn.outvars)


def equations(jaxpr: Any) -> Iterator[Any]:
    """All of them, also those in nested jaxprs, behind the one that has them."""
    for eqn in jaxpr.eqns:
        yield eqn
        for value in jax.tree.leaves(eqn.params, is_leaf=lambda v: isinstance(v, _JAXPRS)):
            if isinstance(value, _JAXPRS):
                yield from equations(getattr(value, "jaxpr", value))


def interpreted(
    closed: Any, args: Sequence[Any], change: Change, reread: Reread | None = None
) -> list[Any]:
    """The results of a jaxpr, those of each equation being changed.

    With `reread`, the operands of each equation that are results of others are changed, too.
    """
    inner, consts = getattr(closed, "jaxpr", closed), getattr(closed, "consts", ())
    names = (*inner.constvars, *inner.invars)
    env: dict[Any, Any] = dict(zip(names, (*consts, *args), strict=True))

    def read(atom: Any) -> Any:
        is_literal = isinstance(atom, jax.extend.core.Literal)
        return jnp.asarray(atom.val, atom.aval.dtype) if is_literal else env[atom]

    makers: dict[Any, Any] = {}
    for eqn in inner.eqns:
        operands = [read(atom) for atom in eqn.invars]
        if reread:
            makes = [None if hasattr(a, "val") else makers.get(a) for a in eqn.invars]
            operands = [reread(m, x) if m else x for m, x in zip(makes, operands, strict=True)]
        results = change(eqn, operands, _equation(eqn, operands, change, reread))
        env.update(zip(eqn.outvars, results, strict=True))
        makers.update(dict.fromkeys(eqn.outvars, eqn))
    return [read(atom) for atom in inner.outvars]


def _equation(
    eqn: Any, operands: list[Any], change: Change, reread: Reread | None = None
) -> list[Any]:
    name, params = eqn.primitive.name, eqn.params

    def inside(closed: Any) -> Callable[..., list[Any]]:
        return lambda *args: interpreted(closed, args, change, reread)

    if name in _CALLS:
        return inside(params.get("jaxpr", params.get("call_jaxpr")))(*operands)
    if name == "cond":
        index, *rest = operands
        return list(lax.switch(index, [inside(b) for b in params["branches"]], *rest))
    if name == "scan" and "num_consts" in params:
        return _scan(params, operands, inside(params["jaxpr"]))
    if name == "while":
        m, n = params["cond_nconsts"], params["body_nconsts"]
        test, step = inside(params["cond_jaxpr"]), inside(params["body_jaxpr"])
        a, b, init = operands[:m], operands[m : m + n], operands[m + n :]
        return _while(lambda s: test(*a, *s)[0], lambda s: step(*b, *s), init)
    bound = eqn.primitive.bind(*operands, **params)
    return list(bound) if eqn.primitive.multiple_results else [bound]


def _while(test: Callable[..., Any], step: Callable[..., list[Any]], init: list[Any]) -> list[Any]:
    """vmap makes a batch of the condition: what is done keeps its value."""

    def body(state: list[Any]) -> list[Any]:
        goes_on = test(state)
        rows = [goes_on.reshape(goes_on.shape + (1,) * (x.ndim - goes_on.ndim)) for x in state]
        return [jnp.where(r, y, x) for r, x, y in zip(rows, state, step(state), strict=True)]

    return list(lax.while_loop(lambda s: jnp.any(test(s)), body, init))


def _scan(params: Any, operands: list[Any], step: Callable[..., list[Any]]) -> list[Any]:
    fixed, carried = params["num_consts"], params["num_carry"]
    consts, init = operands[:fixed], operands[fixed : fixed + carried]

    def body(carry: Any, x: Any) -> Any:
        results = step(*consts, *carry, *x)
        return results[:carried], results[carried:]

    xs = operands[fixed + carried :]
    carry, ys = lax.scan(body, init, xs, params["length"], params["reverse"])
    return [*carry, *ys]


def rounded_otherwise(closed: Any, args: Sequence[Any], turn: Any) -> list[Any]:
    """The results of a jaxpr each of whose operations is off by a unit in the last place, or not.

    `turn`, an integer, chooses where it is off upwards, where downwards and where it is not. Small
    whole numbers stay, because arithmetic with them is exact, and so do results that are an
    operand: fills such as -1e9 absorb what is added to them. In every other turn each reader of a
    value sees other digits of it: a model may compute it anew.
    """
    count = 0

    def nudged(eqn: Any, operands: Sequence[Any], results: list[Any]) -> list[Any]:
        nonlocal count
        if eqn.primitive.name not in _ROUNDING:
            return results
        count += 1
        sizes = _sums_of_sizes(eqn, operands, results)
        if eqn.primitive.name in _INEXACT:
            sizes = [16 * size for size in sizes]
        salt = turn * 97 + count * 40503
        return [_nudged(r, operands, salt, s) for r, s in zip(results, sizes, strict=True)]

    def reread(maker: Any, value: Any) -> Any:
        nonlocal count
        if maker.primitive.name not in _ROUNDING:
            return value
        count += 1
        return jnp.where(turn % 2 == 1, _nudged(value, (), turn * 89 + count * 40503, value), value)

    return interpreted(closed, args, nudged, reread)


def _sums_of_sizes(eqn: Any, operands: Sequence[Any], results: list[Any]) -> list[Any]:
    """Of a sum, that of the sizes of its parts: in another order they are rounded on the way."""
    if eqn.primitive.name not in _SUMS:
        return results
    sizes = [jnp.abs(x) if jnp.issubdtype(x.dtype, jnp.floating) else x for x in operands]
    return [eqn.primitive.bind(*sizes, **eqn.params)]


def _nudged(result: Any, operands: Sequence[Any], salt: Any, size: Any) -> Any:
    """The result, off by a unit in the last place of `size`."""
    if not jnp.issubdtype(result.dtype, jnp.inexact):
        return result
    places = jnp.arange(result.size, dtype=jnp.uint32).reshape(result.shape)
    bits = places * jnp.uint32(2654435761) + jnp.asarray(salt, jnp.uint32) * jnp.uint32(2246822519)
    bits = (bits ^ (bits >> 15)) * jnp.uint32(2146121005)
    bits = (bits ^ (bits >> 13)) * jnp.uint32(2221713035)
    sign = ((bits >> 16) % 3).astype(jnp.float32) - 1.0
    unit = float(jnp.finfo(result.dtype).eps)
    step = (sign * unit).astype(result.real.dtype)
    largest = jnp.where(jnp.isinf(size), jnp.finfo(result.dtype).max, result)  # parts overflow
    size = jnp.where(jnp.isfinite(size), size, largest)
    moved = (result + step * size).astype(result.dtype)
    real = jnp.real(result)
    is_small = (jnp.abs(real) <= 1 / unit) & ~(jnp.abs(size) > 1 / unit)
    keep = (real == jnp.round(real)) & is_small & (jnp.imag(result) == 0)
    of_one = len(operands) == 1 and operands[0].dtype == result.dtype
    if of_one and jnp.shape(operands[0]) == result.shape:
        keep &= operands[0] == jnp.round(operands[0])  # log(162754.8) is 12 by rounding only
    for operand in operands:
        if jnp.shape(operand) in ((), result.shape) and operand.dtype == result.dtype:
            keep |= jnp.abs(result) == jnp.abs(operand)
    return _rounded(jnp.where(keep | ~jnp.isfinite(moved), result, moved))


def _rounded(x: Any) -> Any:
    """XLA computes chains of 16-bit operations in 32 bits unless it is told to round each."""
    info = jnp.finfo(x.dtype)
    return lax.reduce_precision(x, info.nexp, info.nmant) if info.bits == 16 else x

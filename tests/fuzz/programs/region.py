# SPDX-License-Identifier: Apache-2.0
"""Steps with functions inside: loops, branches, vmap, grad, jit, checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from fuzz.programs.builder import Body, Builder, RejectError, Value, has_axes, is_float, is_number
from fuzz.programs.fragment import Off

Grow = Callable[[Builder, int], None]


def _struct(v: Value, shape: tuple[Any, ...] | None = None) -> Any:
    return jax.ShapeDtypeStruct(v.shape if shape is None else shape, v.aval.dtype)


def _last(inner: Builder, *fits: Callable[[Value], bool]) -> Value:
    own = [v for v in inner.values if all(fit(v) for fit in fits)]
    if not own:
        raise RejectError("no result fits")
    return own[-1]


def function(b: Builder, grow: Grow, params: list[Any], *fits: Callable[[Value], bool]) -> Body:
    """A function of one result."""

    def build(inner: Builder) -> list[Value]:
        grow(inner, b.choice((1, 2, 3)))
        return [_last(inner, *fits)]

    return b.body(params, build)


def endo(b: Builder, grow: Grow, carry: Value, others: list[Any]) -> Body:
    """A step of a loop: its first result has the type of its last argument."""

    def build(inner: Builder) -> list[Value]:
        state = inner.values[-1]
        grow(inner, b.choice((1, 2, 3)))
        new = _last(inner, lambda v: v.dtype == state.dtype and v.shape == state.shape)
        if new is state:
            new = inner.emit("$0 * 0.5 + 1" if is_float(state) else "$0 + 1", state)
        return [new]

    return b.body([*others, _struct(carry)], build)


def mapped(b: Builder, grow: Grow) -> Value:
    x = b.pick(has_axes)
    axis = b.random.randrange(x.rank)
    row = tuple(n for i, n in enumerate(x.shape) if i != axis)
    y = b.pick()
    both = b.chance(0.4)
    body = function(b, grow, [_struct(x, row)] + ([_struct(y)] if both else []))
    out = f", out_axes={b.choice((0, 0, -1))}"
    if both:
        return b.emit(f"jax.vmap($f0, in_axes=({axis}, None){out})($0, $1)", x, y, bodies=[body])
    return b.emit(f"jax.vmap($f0, in_axes={axis}{out})($0)", x, bodies=[body])


def gradient(b: Builder, grow: Grow) -> Value:
    x = b.pick(is_float)
    body = function(b, grow, [_struct(x)], is_float)
    texts = (
        "jax.grad(lambda a: jnp.sum($f0(a)))($0)",
        "jax.grad(lambda a: jnp.sum($f0(a) * $f0(a)))($0)",
        "jax.jvp($f0, ($0,), (jnp.ones_like($0),))[1]",
        "jax.grad(jax.checkpoint(lambda a: jnp.sum(jnp.sin($f0(a)))))($0)",
    )
    return b.emit(b.choice(texts), x, bodies=[body])


def called(b: Builder, grow: Grow) -> Value:
    x = b.pick()
    body = function(b, grow, [_struct(x)])
    return b.emit(b.choice(("jax.jit($f0)($0)", "jax.checkpoint($f0)($0)")), x, bodies=[body])


def branched(b: Builder, grow: Grow) -> Value:
    x = b.pick()
    first = function(b, grow, [_struct(x)])
    same = [s for s in first.steps[-1:] if s.names[-1] == first.results[0]]
    if not same:
        raise RejectError("an empty branch")

    def second(inner: Builder) -> list[Value]:
        wanted = b.typed("$f0($0)", x, bodies=[first])
        grow(inner, 1)
        own = [v for v in inner.values if (v.dtype, v.shape) == (wanted.dtype, wanted.shape)]
        if own:
            return [own[-1]]
        return [inner.emit(f"jnp.zeros({b.dims(wanted.shape)}, {wanted.dtype})")]

    other = b.body([_struct(x)], second)
    if b.chance(0.4):
        i = b.input("i32", ())
        return b.emit("lax.switch($1, [$f0, $f1, $f0], $0)", x, i, bodies=[first, other])
    p = b.emit("jnp.sum($0) > 0", b.pick(is_number)) if b.chance(0.5) else b.input("boolean", ())
    return b.emit("lax.cond($1, $f0, $f1, $0)", x, p, bodies=[first, other])


def scanned(b: Builder, grow: Grow) -> Value:
    xs = b.pick(has_axes)
    carry = b.pick(is_number)
    row = _struct(xs, xs.shape[1:])

    def build(inner: Builder) -> list[Value]:
        state = inner.values[0]
        grow(inner, b.choice((1, 2, 3)))
        same = [v for v in inner.values if (v.dtype, v.shape) == (state.dtype, state.shape)]
        new = same[-1] if same[-1] is not state else inner.emit("$0 + 1", state)
        return [new, inner.values[-1]]

    body = b.body([_struct(carry), row], build)
    flip = ", reverse=True" if b.chance(0.3) else ""
    made = b.emit_all(f"lax.scan($f0, $0, $1{flip})", carry, xs, bodies=[body], results=2)
    return b.choice(made)


def looped(b: Builder, grow: Grow) -> Value:
    carry = b.pick(is_number)
    if b.chance(0.5):
        body = endo(b, grow, carry, [jax.ShapeDtypeStruct((), "int32")])
        return b.emit(f"lax.fori_loop(0, {b.choice((0, 1, 2, 5))}, $f0, $0)", carry, bodies=[body])
    body = endo(b, grow, carry, [])
    until = b.choice(("s[0] < 3", "(s[0] < 4) & (jnp.sum(s[1]) < 9)", "s[0] < 0"))
    text = f"lax.while_loop(lambda s: {until}, lambda s: (s[0] + 1, $f0(s[1])), (0, $0))[1]"
    return b.emit(text, carry, bodies=[body])


def recurrent(b: Builder, grow: Grow) -> Value:
    """A cell with its gates, with one thing off."""
    xs = b.pick(is_float, lambda v: v.rank in (2, 3) and v.static(-1))
    units = b.choice((2, 3))
    batch = list(xs.shape[1:-1])
    w = b.emit(b.constant(xs.dtype, [xs.shape[-1], units]))
    u = b.emit(b.constant(xs.dtype, [units, units]))
    h0 = b.emit(f"jnp.zeros({b.dims([*batch, units])}, {xs.dtype})")

    def build(inner: Builder) -> list[Value]:
        off, (h, x) = Off(inner), inner.values
        z = off(inner.emit("$0 @ $1 + $2 @ $3", x, w, h, u))
        new = off(
            inner.emit(b.choice(("jnp.tanh($0)", "jax.nn.sigmoid($0)", "jax.nn.relu($0)")), z)
        )
        if b.chance(0.5):
            gate = inner.emit("jax.nn.sigmoid($0)", off(z))
            new = inner.emit("$0 * $1 + (1 - $0) * $2", gate, new, h)
        return [new, new]

    body = b.body([_struct(h0), _struct(xs, xs.shape[1:])], build)
    return b.choice(b.emit_all("lax.scan($f0, $0, $1)", h0, xs, bodies=[body], results=2))


FAMILIES = [
    (4, mapped),
    (5, gradient),
    (2, called),
    (3, branched),
    (3, scanned),
    (3, looped),
    (1, recurrent),
]

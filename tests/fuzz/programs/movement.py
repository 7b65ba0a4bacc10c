# SPDX-License-Identifier: Apache-2.0
"""Steps that move elements: layouts, slices, gathers and scatters, sorts."""

from __future__ import annotations

from fuzz.programs.builder import Builder, RejectError, Value, has_axes, is_float, is_number


def transpose(b: Builder) -> Value:
    x = b.pick(lambda v: v.rank > 1)
    order = list(range(x.rank))
    b.random.shuffle(order)
    m, n = b.axis(x), b.axis(x)
    texts = (
        f"jnp.transpose($0, {tuple(order)})",
        f"jnp.moveaxis($0, {m}, {n})",
        f"jnp.swapaxes($0, {m}, {n})",
        f"$0.transpose{tuple(order)}",
    )
    return b.emit(b.choice(texts), x)


def reshape(b: Builder) -> Value:
    """Merges, splits, adds and removes axes."""
    x = b.pick()
    shape, way = list(x.shape), b.random.random()
    if way < 0.35 and x.rank > 1:
        at = b.random.randrange(x.rank - 1)
        shape[at : at + 2] = [shape[at] * shape[at + 1]]
    elif way < 0.6 and x.rank:
        at = b.random.randrange(x.rank)
        size = shape[at]
        parts = [k for k in (2, 3, 4) if isinstance(size, int) and size % k == 0]
        if not parts:
            raise RejectError("a size that does not split")
        part = b.choice(parts)
        shape[at : at + 1] = [part, size // part] if b.chance(0.5) else [size // part, part]
    elif way < 0.7:
        return b.emit("$0.reshape(-1)", x)
    elif way < 0.85:
        shape.insert(b.random.randint(0, x.rank), 1)
    else:
        b.random.shuffle(shape)
    return b.emit(f"$0.reshape({b.dims(shape)})", x)


def unit_axes(b: Builder) -> Value:
    x = b.pick()
    units = [i for i, size in enumerate(x.shape) if size == 1]
    if units and b.chance(0.5):
        return b.emit(f"jnp.squeeze($0, {b.choice(units)})", x)
    at = b.random.randint(-x.rank - 1, x.rank)
    return b.emit(b.choice((f"jnp.expand_dims($0, {at})", "$0[None]", "$0[..., None]")), x)


def repeat(b: Builder) -> Value:
    x = b.pick(has_axes)
    axis = b.axis(x)
    reps = tuple(b.choice((1, 1, 2)) for _ in range(x.rank))
    texts = (
        f"jnp.tile($0, {reps})",
        f"jnp.repeat($0, {b.choice((1, 2, 3))}, axis={axis})",
        f"jnp.flip($0, {axis})",
        f"jnp.roll($0, {b.choice((-2, -1, 1, 3))}, axis={axis})",
        f"lax.rev($0, {(axis % x.rank,)})",
    )
    return b.emit(b.choice(texts), x)


def join(b: Builder) -> Value:
    x = b.pick(has_axes)
    axis = b.axis(x)
    y = b.pick(lambda v: v.dtype == x.dtype and v.rank == x.rank)
    if x.shape == y.shape and b.chance(0.4):
        return b.emit(f"jnp.stack([$0, $1], axis={axis})", x, y)
    texts = (
        f"jnp.concatenate([$0, $1], axis={axis})",
        f"jnp.concatenate([$1, $0, $0], axis={axis})",
    )
    return b.emit(b.choice(texts), x, y)


def split(b: Builder) -> Value:
    x = b.pick(has_axes)
    axis = b.axis(x)
    if b.chance(0.5):
        parts = b.emit_all(f"jnp.split($0, 2, axis={axis})", x, results=2)
        return b.choice(parts)
    return b.emit(f"jnp.array_split($0, 3, axis={axis})[{b.choice((0, 1, 2))}]", x)


def pad(b: Builder) -> Value:
    x = b.pick(is_number, has_axes)
    low, high, inner = (b.choice((0, 0, 1, 2, -1)), b.choice((0, 1, 2, -1)), b.choice((0, 0, 1)))
    config = [(0, 0, 0)] * x.rank
    config[b.axis(x)] = (low, high, inner)
    if b.chance(0.6):
        fill = f"{x.dtype}({b.choice(('0', '1', '3'))})"
        return b.emit(f"lax.pad($0, {fill}, {tuple(config)})", x)
    widths = tuple((abs(low), abs(high)) if any(c) else (0, 0) for c in config)
    mode = b.choice(("constant", "edge", "reflect", "wrap", "symmetric"))
    return b.emit(f"jnp.pad($0, {widths}, mode='{mode}')", x)


def _slice_text(b: Builder, size: object) -> str:
    ends = ("", "", "1", "2", "-1", "-2", "0", "4", "9")
    step = b.choice(("", "", "", "2", "-1", "3", "-2"))
    if not isinstance(size, int):
        ends, step = ("", "", "1", "-1"), b.choice(("", "", "2", "-1"))
    return f"{b.choice(ends)}:{b.choice(ends)}" + (f":{step}" if step else "")


def cut(b: Builder) -> Value:
    """x[1:, ::-1, 0, ..., None]."""
    x = b.pick(has_axes)
    parts = []
    for size in x.shape[: b.random.randint(1, x.rank)]:
        way = b.random.random()
        if way < 0.2 and isinstance(size, int):
            parts.append(str(b.random.randrange(-size, size) if size else 0))
        else:
            parts.append(_slice_text(b, size) if way < 0.8 else ":")
    if b.chance(0.15):
        parts.insert(b.random.randint(0, len(parts)), "None")
    lead = "..., " if len(parts) < x.rank and b.chance(0.3) else ""
    if lead and not all(map(x.static, range(x.rank))):
        raise RejectError("an element that may not be there")
    return b.emit(f"$0[{lead}{', '.join(parts)}]", x)


def indices(b: Builder, x: Value, axis: int) -> Value:
    """Integers, often out of range: an existing value, a constant or an input."""
    way = b.random.random()
    if way < 0.35:
        return b.pick(lambda v: v.dtype in ("i32", "u8", "i8", "u32") and v.rank <= 2)
    shape = b.choice(((), (2,), (3,), (2, 2)))
    if way < 0.7:
        return b.emit(b.constant("i32", shape))
    return b.input("i32", shape)


def gather(b: Builder) -> Value:
    x = b.pick(has_axes)
    axis = b.axis(x)
    i = indices(b, x, axis)
    mode = b.choice(("", ", mode='clip'", ", mode='wrap'", ", mode='fill'"))
    lead = ":, " * (axis % x.rank)
    fill = b.choice(("", ", fill_value=0", ", fill_value=1"))
    texts = [
        f"jnp.take($0, $1, axis={axis}{mode})",
        f"$0[{lead}$1]",
        f"$0.at[{lead}$1].get(mode='fill'{fill})",
        f"$0.at[{lead}$1].get(mode='clip')",
    ]
    if x.rank > 1:
        texts += ["$0[$1, $1]", "$0[..., $1, :]", "$0[$1, :, $1]" if x.rank > 2 else "$0[:, $1]"]
    text = b.choice(texts)
    if text.startswith("$0["):
        _refuse_promise(x, i)
    return b.emit(text, x, i)


def _refuse_promise(x: Value, i: Value) -> None:
    """JAX promises that one element of a symbolic axis is there, whatever the size is."""
    if i.rank == 0 and not all(map(x.static, range(x.rank))):
        raise RejectError("an element that may not be there")


def gather_along(b: Builder) -> Value:
    x = b.pick(has_axes)
    axis = b.axis(x)
    shape = list(x.shape)
    shape[axis] = b.choice((1, 2, 3))
    sorts = b.chance(0.4)
    i = b.emit(f"jnp.argsort($0, axis={axis})", x) if sorts else b.input("i32", shape)
    mode = b.choice(("", ", mode='clip'", ", mode='fill'"))
    return b.emit(f"jnp.take_along_axis($0, $1, axis={axis}{mode})", x, i)


def dynamic(b: Builder) -> Value:
    x = b.pick(has_axes)
    i = b.input("i32", ()) if b.chance(0.5) else b.pick(lambda v: v.dtype == "i32" and v.rank == 0)
    axis = b.axis(x) % x.rank
    if not x.static(axis):
        raise RejectError("static windows")
    size = b.random.randint(1, max(1, x.shape[axis]))
    texts = [
        f"lax.dynamic_slice_in_dim($0, $1, {size}, axis={axis})",
        f"lax.dynamic_index_in_dim($0, $1, axis={axis}, keepdims={b.chance(0.5)})",
        f"lax.dynamic_update_slice_in_dim($0, $0 * 2, $1, axis={axis})",
        f"lax.dynamic_update_index_in_dim($0, {x.dtype}(1), $1, axis={axis})",
    ]
    return b.emit(b.choice(texts), x, i)


def scatter(b: Builder) -> Value:
    x = b.pick(is_number, has_axes)
    axis = b.axis(x) % x.rank
    where = ":, " * axis
    way = b.choice(("set", "add", "max", "min", "mul"))
    if b.chance(0.4):
        place = _slice_text(b, x.shape[axis]) if b.chance(0.6) else b.choice(("0", "-1"))
        return b.emit(f"$0.at[{where}{place}].{way}({b.choice(('1', '2', '0'))})", x)
    i = indices(b, x, axis)
    mode = b.choice(("", ", mode='drop'", ", mode='clip'"))
    if b.chance(0.5):
        return b.emit(f"$0.at[{where}$1].{way}(2{mode})", x, i)
    _refuse_promise(x, i)
    update = b.emit(f"$0[{where}$1] * 2", x, i)
    return b.emit(f"$0.at[{where}$1].{way}($2{mode})", x, i, update)


def sort(b: Builder) -> Value:
    x = b.pick(has_axes, lambda v: v.dtype not in ("boolean", "c64"))
    axis = b.axis(x)
    way = b.random.random()
    if way < 0.3:
        last = x.shape[-1]
        k = b.random.randint(1, max(1, last)) if isinstance(last, int) else 1
        return b.choice(b.emit_all(f"lax.top_k($0, {k})", x, results=2))
    if way < 0.45:
        y = b.pick(lambda v: v.shape == x.shape and v.dtype not in ("boolean", "c64"))
        keys = b.choice((1, 2))
        text = f"lax.sort(($0, $1), dimension={axis % x.rank}, num_keys={keys})"
        return b.choice(b.emit_all(text, x, y, results=2))
    if way < 0.55:
        line = b.emit("jnp.sort($0.reshape(-1))", x)
        side = b.choice(("left", "right"))
        return b.emit(f"jnp.searchsorted($0, $1, side='{side}')", line, x)
    texts = (
        f"jnp.sort($0, axis={axis})",
        f"jnp.sort($0, axis={axis}, descending=True)",
        f"jnp.argsort($0, axis={axis})",
        f"jnp.argsort($0, axis={axis}, descending=True)",
        f"jnp.argsort(jnp.argsort($0, axis={axis}), axis={axis})",
        f"jnp.median($0, axis={axis})",
        f"jnp.partition($0, 0, axis={axis})",
    )
    return b.emit(b.choice(texts), x)


def pattern(b: Builder) -> Value:
    """Masks and numbers that only depend on positions."""
    x = b.pick(lambda v: v.rank > 1)
    m, n = (b.dim(size) for size in x.shape[-2:])
    shift, type_ = b.choice((-1, 0, 1)), b.choice(("f32", "i32"))
    texts = [
        f"jnp.tril(jnp.ones(({m}, {n}), boolean), {shift})",
        f"jnp.arange({n})",
        f"lax.broadcasted_iota({type_}, ({m}, {n}), {b.choice((0, 1))})",
        f"jnp.eye({n})",
    ]
    if is_float(x):
        texts += [
            f"jnp.where(jnp.arange({n}) < {shift + 1}, $0, {b.choice(('0', '-1e9'))})",
            f"jnp.where(jnp.arange({m})[:, None] >= jnp.arange({n}), $0, 0)",
            f"{b.choice(('jnp.tril', 'jnp.triu'))}($0, {shift})",
        ]
    text = b.choice(texts)
    return b.emit(text, x) if "$0" in text else b.emit(text)


FAMILIES = [
    (6, transpose),
    (6, reshape),
    (3, unit_axes),
    (3, repeat),
    (4, join),
    (2, split),
    (3, pad),
    (6, cut),
    (4, gather),
    (2, gather_along),
    (3, dynamic),
    (4, scatter),
    (4, sort),
    (2, pattern),
]

# SPDX-License-Identifier: Apache-2.0
"""Steps that combine many elements: products, convolutions, windows, reductions."""

from __future__ import annotations

from fuzz.programs.builder import (
    Builder,
    RejectError,
    Value,
    has_axes,
    is_float,
    is_integer,
    is_number,
)


def operand(b: Builder, dtype: str, shape: list) -> Value:
    """A second operand of a known shape: an existing value, a weight or an input."""
    way = b.random.random()
    if way < 0.3:
        return b.pick(lambda v: v.dtype == dtype and v.shape == tuple(shape))
    if way < 0.75 and dtype != "c64" and all(isinstance(size, int) for size in shape):
        return b.emit(b.constant(dtype, shape))
    return b.input(dtype, shape)


def matmul(b: Builder) -> Value:
    x = b.pick(has_axes, lambda v: v.dtype != "boolean")
    way = b.random.random()
    if way < 0.2 and x.rank > 1:
        y = b.emit("jnp.swapaxes($0, -1, -2)", x)
        return b.emit("$0 @ $1", x, y)
    if way < 0.4:
        return b.emit("$0 @ $1", x, b.pick(has_axes, lambda v: v.dtype == x.dtype))
    columns = b.choice((1, 2, 3, 4, 8))
    y = operand(b, x.dtype, [x.shape[-1], columns] if b.chance(0.8) else [x.shape[-1]])
    return b.emit(b.choice(("$0 @ $1", "jnp.dot($0, $1)", "jnp.matmul($0, $1)")), x, y)


def einsum(b: Builder) -> Value:
    """Random subscripts: every letter of x is kept, summed or shared with y."""
    x = b.pick(has_axes, lambda v: v.dtype != "boolean" and v.rank < 5)
    letters = "abcde"[: x.rank]
    sizes = dict(zip(letters, x.shape, strict=True))
    shared = [letter for letter in letters if b.chance(0.5)]
    second = shared + [letter for letter in "xy" if b.chance(0.5)]
    b.random.shuffle(second)
    sizes |= {letter: b.choice((1, 2, 3)) for letter in "xy"}
    y = operand(b, x.dtype, [sizes[letter] for letter in second])
    result = [letter for letter in {**sizes} if letter in (*letters, *second) and b.chance(0.6)]
    b.random.shuffle(result)
    return b.emit(f"jnp.einsum('{letters},{''.join(second)}->{''.join(result)}', $0, $1)", x, y)


def layer(b: Builder) -> Value:
    """A product beside what runtimes merge into it: factors, transposes, casts, a bias."""
    x = b.pick(is_float, lambda v: v.rank > 1)
    before = ("$0", "$0 * 0.5", "$0 / 3.0", "-$0", "jnp.swapaxes($0, 0, 1)", "$0.astype(f16)")
    x = b.emit(b.choice(before), x)
    if b.chance(0.4):
        x = b.emit(b.choice(("$0 * 0.25", "jnp.swapaxes($0, 0, -1)", "$0 + $0")), x)
    y = b.emit("$0 @ $1", x, operand(b, x.dtype, [x.shape[-1], b.choice((1, 3, 4))]))
    way = b.random.random()
    if way < 0.3:
        return b.emit("$0 + $1", y, operand(b, y.dtype, [y.shape[-1]]))
    if way < 0.5:
        return b.emit(b.choice(("$0 * 2.0", "$0 / 4", "$0.astype(f32)", "$0.T")), y)
    if way < 0.7:
        return b.emit("$0 @ $1", y, operand(b, y.dtype, [y.shape[-1], x.shape[-1]]))
    return b.emit("jnp.swapaxes($0, -1, -2) @ $1", y, x) if way < 0.85 else y


def tensordot(b: Builder) -> Value:
    x = b.pick(has_axes, lambda v: v.dtype != "boolean")
    axis = b.axis(x)
    way = b.random.random()
    if way < 0.3:
        y = b.pick(lambda v: v.dtype == x.dtype and v.shape == x.shape)
        return b.emit(b.choice(("jnp.vdot($0, $1)", "jnp.inner($0, $1)", "jnp.sum($0 * $1)")), x, y)
    y = operand(b, x.dtype, [x.shape[axis], b.choice((2, 3))])
    if way < 0.6:
        return b.emit(f"jnp.tensordot($0, $1, axes=(({axis},), (0,)))", x, y)
    if way < 0.8:
        return b.emit(f"jnp.tensordot($1, $0, axes=((0,), ({axis},)))", x, y)
    batch = f"((({axis % x.rank},), (0,)), ((), ()))"
    return b.emit(f"lax.dot_general($0, $1, {batch}, preferred_element_type={x.dtype})", x, y)


def convolution(b: Builder) -> Value:
    x = b.pick(lambda v: v.rank in (3, 4) and is_number(v) and v.static(-1))
    spatial = x.rank - 2
    layout = "NCHW"[: x.rank] if b.chance(0.4) else "NHWC" if spatial == 2 else "NHC"
    if b.chance(0.2):
        layout = "".join(b.random.sample(layout, len(layout)))
    channels = x.shape[layout.index("C")]
    if not isinstance(channels, int):
        raise RejectError("static channels")
    groups = b.choice([k for k in (1, 1, 2, 3, 4) if channels % k == 0])
    window = [b.choice((1, 2, 3)) for _ in range(spatial)]
    kernel_layout = b.choice(("OIHW", "HWIO", "OHWI"))
    kernel_layout = kernel_layout if spatial == 2 else kernel_layout.replace("W", "")
    sizes = dict(zip("HW", window, strict=False))
    sizes |= {"O": groups * b.choice((1, 2)), "I": channels // groups}
    w = operand(b, x.dtype, [sizes[letter] for letter in kernel_layout])
    padding = b.choice(
        ("'SAME'", "'VALID'", repr([(b.choice((0, 1, 2, -1)), b.choice((0, 1))) for _ in window]))
    )
    stride = tuple(b.choice((1, 1, 2)) for _ in window)
    extra = f", rhs_dilation={tuple(b.choice((1, 2)) for _ in window)}" if b.chance(0.3) else ""
    if b.chance(0.2) and "'" not in padding:
        extra += f", lhs_dilation={tuple(b.choice((1, 2)) for _ in window)}"
    result = layout if b.chance(0.8) else "".join(b.random.sample(layout, len(layout)))
    text = (
        f"lax.conv_general_dilated($0, $1, {stride}, {padding}{extra}, "
        f"feature_group_count={groups}, "
        f"dimension_numbers=('{layout}', '{kernel_layout}', '{result}'))"
    )
    y = b.emit(text, x, w)
    if b.chance(0.3):
        y = b.emit("$0 + 1", y)
    return y


def window(b: Builder) -> Value:
    x = b.pick(is_number, has_axes)
    sizes = tuple(b.choice((1, 2, 3)) for _ in x.shape)
    strides = tuple(b.choice((1, 1, 2)) for _ in x.shape)
    if b.chance(0.6):  # as layers pool: batch and channels stay
        keep = {0, x.rank - 1 if b.chance(0.5) else 1}
        sizes = tuple(1 if i in keep else s for i, s in enumerate(sizes))
        strides = tuple(1 if i in keep else s for i, s in enumerate(strides))
    low = "-jnp.inf" if is_float(x) else f"jnp.iinfo({x.dtype}).min"
    start, op = b.choice((("0", "add"), (low, "max"), ("0", "max"), ("1", "mul"), ("2", "add")))
    if op == "max" and b.chance(0.3) and is_float(x):
        start, op = "jnp.inf", "min"
    padding = b.choice(("'SAME'", "'VALID'", repr([(b.choice((0, 1)), 1)] * x.rank)))
    text = (
        f"lax.reduce_window($0, {x.dtype}({start}), lax.{op}, {sizes}, {strides}, {padding}"
        + (
            f", window_dilation={tuple(b.choice((1, 2)) for _ in x.shape)}"
            if b.chance(0.15)
            else ""
        )
        + ")"
    )
    y = b.emit(text, x)
    if op == "add" and is_float(y) and b.chance(0.5):
        if b.chance(0.5):
            count = f"jnp.ones_like($0), {x.dtype}(0), lax.add, {sizes}, {strides}, {padding})"
            return b.emit(f"$1 / lax.reduce_window({count}", x, y)
        return b.emit(f"$0 / {int(b.choice((2, 3, 4, 9)))}", y)
    return y


def cumulative(b: Builder) -> Value:
    x = b.pick(is_number, has_axes)
    axis = b.axis(x) % x.rank
    name = b.choice(("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"))
    if b.chance(0.3):
        return b.emit(f"jnp.{b.choice(('cumsum', 'cumprod'))}($0, axis={axis - x.rank})", x)
    return b.emit(f"lax.{name}($0, axis={axis}, reverse={b.chance(0.4)})", x)


def reduction(b: Builder) -> Value:
    x = b.pick(has_axes, lambda v: v.dtype != "c64")
    axes: object = b.choice((b.axes(x), b.axes(x), b.axis(x), None))
    keep = b.choice(("", "", ", keepdims=True"))
    names = ["sum", "prod", "any", "all", "count_nonzero", "argmax", "argmin", "max", "min"]
    if is_float(x):
        names = ["sum", "sum", "mean", "mean", "max", "min", "prod", "var", "std", "logsumexp"]
        names += ["argmax", "argmin", "any", "norm", "ptp", "nansum", "nanmax", "amax", "average"]
    elif is_integer(x):
        names += ["mean", "ptp", "sum"]
    name = b.choice(names)
    if name in ("argmax", "argmin"):
        return b.emit(f"jnp.{name}($0, axis={b.axis(x)}{keep})", x)
    if name in ("var", "std"):
        return b.emit(f"jnp.{name}($0, axis={axes}, ddof={b.choice((0, 0, 1))}{keep})", x)
    if name == "logsumexp":
        return b.emit(f"jax.nn.logsumexp($0, axis={axes}{keep})", x)
    if name == "norm":
        order = b.choice(("None", "1", "2", "jnp.inf"))
        return b.emit(f"jnp.linalg.norm($0, ord={order}, axis={b.axis(x)}{keep})", x)
    if name == "sum" and b.chance(0.2):
        return b.emit(f"jnp.sum($0, axis={axes}, dtype={b.choice(('f32', x.dtype))}{keep})", x)
    if name == "average":
        return b.emit(f"jnp.average($0, axis={axes})", x)
    return b.emit(f"jnp.{name}($0, axis={axes}{keep})", x)


FAMILIES = [
    (6, matmul),
    (5, layer),
    (4, einsum),
    (3, tensordot),
    (9, convolution),
    (4, window),
    (2, cumulative),
    (9, reduction),
]

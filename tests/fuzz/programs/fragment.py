# SPDX-License-Identifier: Apache-2.0
"""What the compiler recognises, spelled in many ways, with one thing off.

A near miss differs from its model in a factor, a clamp, a cast, a mask or the like at one place:
a rule that accepts what only resembles its pattern gives wrong numbers for it.
"""

from __future__ import annotations

from fuzz.programs.builder import Builder, RejectError, Value, has_axes, is_float

FILLS = ("-1e9", "-1e4", "-jnp.inf", "-1e30", "-3.4028235e38", "0.0", "-5.0")
ACTIVATIONS = [
    *("jax.nn.relu($0)", "jax.nn.relu6($0)", "jax.nn.sigmoid($0)", "jax.nn.silu($0)"),
    *("jax.nn.gelu($0)", "jax.nn.gelu($0, approximate=False)", "jax.nn.mish($0)"),
    *("jax.nn.elu($0)", "jax.nn.elu($0, {a})", "jax.nn.celu($0, {a})", "jax.nn.selu($0)"),
    *("jax.nn.softplus($0)", "jax.nn.soft_sign($0)", "jax.nn.hard_sigmoid($0)", "jnp.tanh($0)"),
    *("jax.nn.hard_swish($0)", "jax.nn.leaky_relu($0, {a})", "jax.nn.hard_tanh($0)"),
    *("jax.nn.log_sigmoid($0)", "jax.nn.squareplus($0)", "jnp.maximum($0, {a} * $0)"),
    *(
        "$0 * jax.nn.sigmoid({a} * $0)",
        "$0 * jnp.tanh(jax.nn.softplus($0))",
        "1 / (1 + jnp.exp(-$0))",
    ),
    *(
        "$0 / (1 + jnp.exp(-$0))",
        "0.5 * $0 * (1 + lax.erf($0 / 1.41421356))",
        "jnp.log1p(jnp.exp($0))",
    ),
    *(
        "0.5 * $0 * (1 + jnp.tanh(0.7978845608 * ($0 + 0.044715 * $0 ** 3)))",
        "$0 / (1 + jnp.abs($0))",
    ),
    *("jnp.where($0 > {a}, $0, 0)", "jnp.where($0 > 0, $0, {a} * (jnp.exp($0) - 1))"),
    *("jnp.where($0 >= 0, $0, {a} * $0)", "jnp.clip({a} * $0 + 0.5, 0, 1)", "jnp.maximum($0, 0)"),
    *("$0 * jnp.clip($0 / 6 + 0.5, 0, 1)", "$0 * jnp.minimum(jnp.maximum($0 + 3, 0), 6) / 6"),
    *("$0.astype(boolean).astype($0.dtype) * jax.nn.sigmoid($0)", "jnp.square(jax.nn.relu($0))"),
    *("jnp.where(jnp.abs($0) < {a}, 0, $0)", "jnp.sign($0) * jnp.maximum(jnp.abs($0) - {a}, 0)"),
    *("jnp.expm1(jnp.minimum($0, 0)) + jnp.maximum($0, 0)", "jnp.logaddexp($0, {a})"),
]
CHANGES = [
    *("$0 * {}", "$0 * {}", "$0 + {}", "{} - $0", "$0 / {}", "jnp.maximum($0, {})", "-$0"),
    *("jnp.minimum($0, {})", "jnp.where($0 < 0, 0, $0)", "jnp.abs($0)", "jnp.clip($0, -0.7, {})"),
    *("$0.astype(boolean).astype($0.dtype)", "$0.astype(f16).astype($0.dtype)", "$0 ** 2"),
    *("$0.astype(i32).astype($0.dtype)", "jnp.nan_to_num($0)", "jnp.where($0 > {}, $0, 0)"),
    *("jnp.round($0)", "lax.stop_gradient($0)", "$0 * $0", "jnp.where($0 == 0, 1, $0)"),
    *("jnp.flip($0, -1)", "$0.astype(bf16).astype($0.dtype)", "$0 + $0"),
]


class Off:
    """Changes at most two of the values that pass through it."""

    def __init__(self, b: Builder) -> None:
        self.builder = b
        self.left = b.choice((0, 1, 1, 1, 2))

    def __call__(self, v: Value) -> Value:
        if self.left and self.builder.chance(0.3):
            self.left -= 1
            return changed(self.builder, v)
        return v


def changed(b: Builder, v: Value) -> Value:
    """The value with a factor, a clamp, a mask, … applied to it."""
    way = b.random.random()
    try:
        if way < 0.15:
            return b.emit("$0 * $1", v, operand(b, v))
        if way < 0.25:
            return b.emit("$0 + $1", v, operand(b, v))
        if way < 0.35 and v.rank:
            mask = b.input("boolean", v.shape[b.random.randint(0, v.rank - 1) :])
            return b.emit(f"jnp.where($1, $0, {b.choice(FILLS)})", v, mask)
        return b.emit(b.choice(CHANGES).format(b.number()), v)
    except RejectError:
        return v


def operand(b: Builder, v: Value) -> Value:
    """A number, a row or a whole array as an input, or a constant that looks like one."""
    shape = list(v.shape[b.random.randint(0, v.rank) :])
    shape = [1 if b.chance(0.3) else size for size in shape]
    if b.chance(0.4):
        return b.emit(b.constant(v.dtype, shape))
    return b.input(v.dtype, shape)


def activation(b: Builder) -> Value:
    """One function of one value after another, as a whole or with something between them."""
    x, off = b.pick(is_float), Off(b)
    for _ in range(b.choice((1, 1, 2))):
        parameter = b.choice(("0.1", "0.5", "1.0", "1.5", "2.0", "0.01"))
        x = off(x)
        x = off(b.emit(b.choice(ACTIVATIONS).replace("{a}", parameter), x))
    return x


def gated(b: Builder) -> Value:
    """x * act(y) and the like."""
    x = b.pick(is_float)
    y = b.pick(lambda v: v.dtype == x.dtype and v.shape == x.shape)
    gate = b.emit(b.choice(ACTIVATIONS).replace("{a}", b.choice(("0.5", "1.0"))), y)
    return b.emit("$0 * $1", x, Off(b)(gate))


def softmax(b: Builder, given: Value | None = None, axis: int | None = None) -> Value:
    x, off = given or b.pick(is_float, has_axes), Off(b)
    axis = b.axis(x) if axis is None else axis
    way = b.random.random()
    if way < 0.45:
        return b.emit(f"jax.nn.softmax($0, axis={axis})", off(x))
    if way < 0.55:
        return b.emit(f"jax.nn.log_softmax($0, axis={axis})", off(x))
    top = off(b.emit(f"jnp.max($0, axis={axis}, keepdims=True)", x))
    e = off(b.emit("jnp.exp($0)", off(b.emit("$0 - $1", x, top))))
    if b.chance(0.1):
        axis = b.axis(x)
    total = off(b.emit(f"jnp.sum($0, axis={axis}, keepdims=True)", e))
    if way < 0.65:
        return b.emit("$0 - jnp.log($1)", b.emit("$0 - $1", x, top), total)
    return off(b.emit("$0 / $1", e, total))


def norm(b: Builder) -> Value:
    """Layer, RMS, instance and group norms, unit length; over any axes."""
    x, off = b.pick(is_float, has_axes), Off(b)
    axes: object = b.choice((-1, -1, b.axis(x), b.axes(x), b.axes(x)))
    x = off(x)
    centred = x
    if b.chance(0.6):
        centred = off(b.emit("$0 - $1", x, off(b.emit(f"jnp.mean($0, {axes}, keepdims=True)", x))))
    way = b.random.random()
    if way < 0.25:
        v = b.emit(f"jnp.var($0, {axes}, keepdims=True)", x)
    elif way < 0.5:
        mean = b.emit(f"jnp.mean($0, {axes}, keepdims=True)", x)
        square = b.emit(f"jnp.mean($0 * $0, {axes}, keepdims=True)", x)
        v = off(b.emit("$0 - $1 * $1", square, mean))
    elif way < 0.6:
        v = b.emit(f"jnp.sum($0 * $0, {axes}, keepdims=True)", centred)
    else:
        v = b.emit(f"jnp.mean(jnp.square($0), {axes}, keepdims=True)", centred)
    v = off(v)
    eps = b.choice(("1e-5", "1e-6", "1e-3", "0.1", "0.3"))
    scale = b.choice(
        (
            f"$0 * lax.rsqrt($1 + {eps})",
            f"$0 / jnp.sqrt($1 + {eps})",
            f"$0 / (jnp.sqrt($1) + {eps})",
            f"$0 * lax.rsqrt(jnp.maximum($1, {eps}))",
            f"$0 / jnp.maximum(jnp.sqrt($1), {eps})",
            f"$0 * lax.rsqrt(jnp.maximum($1, 0.0) + {eps})",
        )
    )
    y = off(b.emit(scale, centred, v))
    if b.chance(0.5):
        y = off(b.emit("$0 * $1", y, operand(b, y)))
    return b.emit("$0 + $1", y, operand(b, y)) if b.chance(0.4) else y


def _masked(b: Builder, s: Value) -> Value:
    shape = [1 if b.chance(0.15) else n for n in s.shape[b.random.randint(0, s.rank - 1) :]]
    way = b.random.random()
    if way < 0.3:
        m, n = (b.dim(size) for size in s.shape[-2:])
        mask = b.emit(f"jnp.tril(jnp.ones(({m}, {n}), boolean), {b.choice((0, 0, -1, 1))})")
    else:
        mask = b.input("boolean", shape)
    fill = b.choice(FILLS)
    texts = (
        f"jnp.where($1, $0, {fill})",
        f"jnp.where($1, $0, {fill})",
        f"$0 + jnp.where($1, 0.0, {fill})",
        f"$0 + (1.0 - $1.astype($0.dtype)) * {fill}",
        "jnp.where($1, $0, $0 - 1e9)",
        "jnp.where($1, $0, $0 - 5)",
    )
    return b.emit(b.choice(texts), s, mask)


def attention(b: Builder) -> Value:
    """Products, a chain of factors, biases and masks in any order, softmax, a product."""
    off = Off(b)
    q = b.pick(is_float, lambda v: v.rank >= 2)
    keys = b.choice((2, 3, 5))
    batch, width = list(q.shape[:-2]), q.shape[-1]
    k = b.input(q.dtype, [*batch, keys, width]) if b.chance(0.7) else q
    s = b.emit("$0 @ jnp.swapaxes($1, -1, -2)", off(q), off(k))
    for _ in range(b.choice((0, 1, 1, 2, 3))):
        way = b.random.random()
        if way < 0.25:
            s = b.emit(b.choice(("$0 * {}", "$0 / {}")).format(b.choice(("0.5", "2.0", "-1.0"))), s)
        elif way < 0.35:
            s = b.emit(b.choice(("$0 * $1", "$0 / $1")), s, operand(b, s))
        elif way < 0.55:
            s = b.emit(b.choice(("$0 + $1", "$0 - $1")), s, operand(b, s))
        elif way < 0.62:
            s = b.emit("jnp.tanh($0 / 5.0) * 5.0", s)
        else:
            s = _masked(b, s)
        s = off(s)
    p = softmax(b, s, -1) if b.chance(0.3) else b.emit("jax.nn.softmax($0, axis=-1)", s)
    p = _masked(b, p) if b.chance(0.1) else off(p)
    if b.chance(0.1):
        p = b.emit("jnp.where(jnp.isnan($0), 0, $0)", p)
    v = b.input(q.dtype, [*batch, s.shape[-1], 2]) if b.chance(0.5) else k
    return off(b.emit("$0 @ $1", p, v))


def rotary(b: Builder) -> Value:
    x, off = b.pick(is_float, lambda v: v.rank >= 2 and v.shape[-1] in (2, 4, 6, 8)), Off(b)
    half = x.shape[-1] // 2
    table = [x.shape[-2], half]
    angle = b.input(x.dtype, table) if b.chance(0.5) else None
    if angle is None:
        n = b.dim(x.shape[-2])
        freq = f"(10.0 ** -(np.arange({half}) / {half})).astype({x.dtype})"
        angle = b.emit(f"jnp.arange({n}).astype({x.dtype})[:, None] * {freq}")
    cos, sin = off(b.emit("jnp.cos($0)", angle)), off(b.emit("jnp.sin($0)", off(angle)))
    interleaved = b.chance(0.4)
    cuts = (
        ("$0[..., ::2]", "$0[..., 1::2]")
        if interleaved
        else (f"$0[..., :{half}]", f"$0[..., {half}:]")
    )
    lo, hi = off(b.emit(cuts[0], x)), off(b.emit(cuts[1], x))
    first = off(b.emit("$0 * $2 - $1 * $3", lo, hi, cos, sin))
    second = off(b.emit(b.choice(("$1 * $2 + $0 * $3", "$1 * $2 - $0 * $3")), lo, hi, cos, sin))
    if interleaved:
        shape = b.dims(x.shape)
        return b.emit(f"jnp.stack([$0, $1], -1).reshape({shape})", first, second)
    return b.emit("jnp.concatenate([$0, $1], -1)", first, second)


def resize(b: Builder) -> Value:
    x = b.pick(is_float, lambda v: v.rank in (3, 4) and all(isinstance(n, int) for n in v.shape))
    shape = [
        n if i == 0 or b.chance(0.4) else b.choice((1, 2, 3, 4, 6)) for i, n in enumerate(x.shape)
    ]
    method = b.choice(("nearest", "linear", "cubic"))
    smooth = b.choice(("", ", antialias=False"))
    return b.emit(f"jax.image.resize($0, {tuple(shape)}, '{method}'{smooth})", x)


def transform(b: Builder) -> Value:
    x = b.pick(has_axes, lambda v: v.dtype in ("f32", "c64") and v.static(-1))
    name = b.choice(("fft", "ifft", "rfft") if x.dtype == "f32" else ("fft", "ifft", "irfft"))
    return b.emit(f"jnp.fft.{name}($0)", x)


FAMILIES = [
    (11, activation),
    (2, gated),
    (6, softmax),
    (13, norm),
    (15, attention),
    (5, rotary),
    (1, resize),
    (1, transform),
]

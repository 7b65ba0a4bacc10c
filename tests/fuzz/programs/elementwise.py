# SPDX-License-Identifier: Apache-2.0
"""Steps that compute each element by itself: functions, operators, casts, broadcasts, choices."""

from __future__ import annotations

from fuzz.programs.builder import (
    FLOATS,
    INTEGERS,
    WIDE_FLOATS,
    WIDE_INTEGERS,
    Builder,
    RejectError,
    Value,
    has_axes,
    is_float,
    is_integer,
    is_number,
)

UNARY_FLOAT = [
    *("-$0", "jnp.abs($0)", "jnp.sign($0)", "jnp.floor($0)", "jnp.ceil($0)", "jnp.round($0)"),
    *("jnp.trunc($0)", "jnp.exp($0)", "jnp.exp2($0)", "jnp.expm1($0)", "jnp.log($0)"),
    *("jnp.log1p($0)", "jnp.log2($0)", "jnp.log10($0)", "jnp.sqrt($0)", "lax.rsqrt($0)"),
    *("jnp.cbrt($0)", "jnp.square($0)", "1 / $0", "jnp.sin($0)", "jnp.cos($0)", "jnp.tan($0)"),
    *("jnp.arcsin($0)", "jnp.arccos($0)", "jnp.arctan($0)", "jnp.sinh($0)", "jnp.cosh($0)"),
    *("jnp.tanh($0)", "jnp.arcsinh($0)", "jnp.arccosh($0)", "jnp.arctanh($0)"),
    *("jax.nn.sigmoid($0)", "lax.erf($0)", "lax.erfc($0)", "lax.erf_inv($0)", "lax.lgamma($0)"),
    *("lax.digamma($0)", "jnp.isnan($0)", "jnp.isinf($0)", "jnp.isfinite($0)", "jnp.signbit($0)"),
    *("jnp.nan_to_num($0)", "jnp.deg2rad($0)", "jnp.sinc($0)", "lax.bessel_i0e($0)"),
    *("$0 ** 2", "$0 ** 3", "$0 ** -1", "$0 ** 0.5", "lax.integer_pow($0, 5)", "jnp.rint($0)"),
    *("lax.round($0, lax.RoundingMethod.TO_NEAREST_EVEN)", "lax.reduce_precision($0, 5, 4)"),
    *("jnp.modf($0)[0]", "jnp.frexp($0)[0]", "jnp.round($0, 1)", "jax.nn.relu($0)"),
    *("lax.stop_gradient($0)", "jnp.real($0)", "jnp.fix($0)", "jnp.positive($0)"),
]
UNARY_INTEGER = [
    *("-$0", "~$0", "jnp.abs($0)", "jnp.sign($0)", "jnp.square($0)", "lax.population_count($0)"),
    *("lax.clz($0)", "$0 << 1", "$0 >> 1", "$0 << 3", "lax.shift_right_logical($0, $0 & 3)"),
    *("$0 ** 2", "$0 ** 3", "$0 % 3", "$0 // 2", "$0 * 7", "$0 & 3", "$0 | 1", "-$0 // 3"),
    *("jnp.bitwise_not($0)", "$0 == 0", "$0 * 0.5", "jnp.remainder($0, -3)"),
]
UNARY_BOOLEAN = ["~$0", "$0.astype(f32)", "$0.astype(i32)", "$0 * 2.0", "jnp.logical_not($0)"]
UNARY_COMPLEX = [
    *("jnp.real($0)", "jnp.imag($0)", "jnp.conj($0)", "jnp.abs($0)", "jnp.exp($0)", "$0 * 2j"),
    *("jnp.angle($0)", "-$0", "$0 * $0", "jnp.sqrt($0)", "jnp.tanh($0)", "$0 + 1.5"),
]
BINARY = ["$0 + $1", "$0 - $1", "$0 * $1", "jnp.maximum($0, $1)", "jnp.minimum($0, $1)"]
BINARY_FLOAT = [
    *("$0 / $1", "jnp.arctan2($0, $1)", "jnp.hypot($0, $1)", "jnp.fmod($0, $1)", "$0 % $1"),
    *("$0 // $1", "jnp.copysign($0, $1)", "jnp.nextafter($0, $1)", "jnp.logaddexp($0, $1)"),
    *("jnp.logaddexp2($0, $1)", "jnp.heaviside($0, $1)", "jnp.fmax($0, $1)", "jnp.fmin($0, $1)"),
    *("jnp.power($0, $1)", "jnp.abs($0) ** $1", "jnp.divmod($0, $1)[1]", "$1 / $0"),
    *("jnp.where($0 > $1, $0, $1)", "$0 * (1 - $1)", "$0 + $1 * 0.5", "jnp.float_power($0, 2.0)"),
    "jnp.clip($0, -1.0, $1)",
]
BINARY_INTEGER = [
    *("$0 // $1", "$0 % $1", "$0 & $1", "$0 | $1", "$0 ^ $1", "$0 << ($1 & 3)", "$0 >> ($1 & 7)"),
    *("jnp.fmod($0, $1)", "$0 / $1", "lax.div($0, $1)", "lax.rem($0, $1)"),
    "jnp.where($1 > 0, $0, $1)",
]
BINARY_BOOLEAN = ["$0 & $1", "$0 | $1", "$0 ^ $1", "jnp.logical_xor($0, $1)", "$0 == $1"]
COMPARE = [
    "$0 < $1",
    "$0 <= $1",
    "$0 > $1",
    "$0 >= $1",
    "$0 == $1",
    "$0 != $1",
    "jnp.isclose($0, $1)",
]
LIMITS = [
    *("jnp.maximum($0, {a})", "jnp.minimum($0, {a})", "jnp.clip($0, -{b}, {b})"),
    *("jnp.clip($0, {a}, None)", "jnp.clip($0, None, {a})", "jnp.where($0 > {a}, $0, 0)"),
    *("jnp.where($0 < {a}, {b}, $0)", "jnp.minimum({a}, jnp.maximum($0, -{b}))"),
    *("lax.clamp({a}, $0, {b})", "jnp.maximum(jnp.minimum($0, {b}), {a})", "jax.nn.relu6($0)"),
    *("jnp.where(jnp.isnan($0), {a}, $0)", "jnp.where($0 == {a}, {b}, $0)"),
]


def partner(b: Builder, x: Value) -> Value:
    """A second operand: a value that broadcasts with x, a constant or a new input."""

    def broadcasts(v: Value) -> bool:
        pairs = zip(reversed(v.shape), reversed(x.shape), strict=False)
        return v.dtype == x.dtype and all(m == n or 1 in (m, n) for m, n in pairs)

    way = b.random.random()
    if way < 0.6:
        return b.pick(broadcasts)
    shape = list(x.shape[b.random.randint(0, x.rank) :])
    shape = [1 if b.chance(0.25) else size for size in shape]
    if way < 0.8 and all(isinstance(size, int) for size in shape):
        return b.emit(b.constant(x.dtype, shape)) if x.dtype != "c64" else x
    return b.input(x.dtype, shape)


def unary(b: Builder) -> Value:
    x = b.pick()
    if is_float(x):
        texts = UNARY_FLOAT
    elif is_integer(x):
        texts = UNARY_INTEGER
    else:
        texts = UNARY_BOOLEAN if x.dtype == "boolean" else UNARY_COMPLEX
    return b.emit(b.choice(texts), x)


def binary(b: Builder) -> Value:
    x = b.pick()
    y = partner(b, x)
    if is_float(x):
        texts = b.choice((BINARY, BINARY_FLOAT))
    elif is_integer(x):
        texts = b.choice((BINARY, BINARY_INTEGER))
    else:
        texts = BINARY_BOOLEAN if x.dtype == "boolean" else BINARY[:3]
    return b.emit(b.choice(texts), x, y)


def compare(b: Builder) -> Value:
    x = b.pick(is_number)
    if b.chance(0.5):
        return b.emit(b.choice(COMPARE[:6]).replace("$1", b.choice(("0", "1", "2"))), x)
    return b.emit(b.choice(COMPARE), x, partner(b, x))


def limit(b: Builder) -> Value:
    x = b.pick(is_number)
    if is_float(x):
        low, high = b.number(), b.choice(("1.5", "0.7", "6.0", "3.0"))
    else:
        low, high = b.choice(("1", "2", "0")), b.choice(("3", "5"))
    return b.emit(b.choice(LIMITS).replace("{a}", low).replace("{b}", high), x)


def affine(b: Builder) -> Value:
    x = b.pick(is_float)
    texts = ("$0 * {}", "$0 + {}", "{} - $0", "$0 / {}", "$0 * {} + 1.0", "($0 - 0.5) * {}")
    return b.emit(b.choice(texts).format(b.number()), x)


def cast(b: Builder) -> Value:
    x = b.pick()
    kinds = (*FLOATS, *FLOATS, *INTEGERS, "boolean")
    if b.root.double:
        kinds += (*WIDE_FLOATS, *WIDE_INTEGERS) * 3
    back = b.choice(kinds) if x.dtype == "c64" else x.dtype
    way = b.random.random()
    if way < 0.3 and x.dtype != "c64":
        return b.emit(f"$0.astype({b.choice(kinds)}).astype({back})", x)
    if way < 0.4 and x.dtype == "f32":
        return b.emit(b.choice(("lax.complex($0, $0 * 0.5)", "$0.astype(c64)")), x)
    if way < 0.5 and x.dtype in ("f32", "i32", "u32"):
        return b.emit(f"lax.bitcast_convert_type($0, {b.choice(('f32', 'i32', 'u32'))})", x)
    if x.dtype == "c64":
        return b.emit("jnp.real($0)", x)
    return b.emit(f"$0.astype({b.choice(kinds)})", x)


def select(b: Builder) -> Value:
    mask = b.pick(lambda v: v.dtype == "boolean")

    def alike(v: Value) -> bool:
        return v.dtype != "boolean" and (v.shape == mask.shape or v.rank == 0)

    x = b.pick(alike)
    way = b.random.random()
    if way < 0.4:
        fill = b.choice(("0", "1", "-1"))
        if is_float(x):
            fill = b.choice(("0.0", "-1e9", "-jnp.inf", "-1e4", "1.0", "jnp.nan", "-0.0"))
        texts = ("jnp.where($0, $1, {})", "jnp.where($0, {}, $1)", "jnp.where(~$0, $1, {})")
        return b.emit(b.choice(texts).format(fill), mask, x)
    y = b.pick(lambda v: v.dtype == x.dtype and v.shape in (x.shape, ()))
    if way < 0.5 and x.shape == y.shape == mask.shape:
        return b.emit("lax.select_n($0, $1, $2)", mask, x, y)
    return b.emit("jnp.where($0, $1, $2)", mask, x, y)


def broadcast(b: Builder) -> Value:
    x = b.pick()
    way = b.random.random()
    if way < 0.4:
        sizes = [b.choice((1, 2, 3)), *x.shape]
        return b.emit(f"jnp.broadcast_to($0, {b.dims(sizes)})", x)
    if way < 0.7:
        outer = "$0[:, None] {} $1[None, :]" if x.rank == 1 else "$0[..., None] {} $1[..., None, :]"
        if not has_axes(x) or x.dtype == "boolean":
            raise RejectError("no axis")
        y = b.pick(
            lambda v: v.dtype == x.dtype and v.rank == x.rank and v.shape[:-1] == x.shape[:-1]
        )
        return b.emit(outer.format(b.choice(("+", "-", "*"))), x, y)
    sizes = [b.choice((1, 2, 3)), *x.shape, 2]
    kept = tuple(range(1, x.rank + 1))
    return b.emit(f"lax.broadcast_in_dim($0, {b.dims(sizes)}, {kept})", x)


FAMILIES = [
    (10, unary),
    (10, binary),
    (3, compare),
    (4, limit),
    (4, affine),
    (4, cast),
    (4, select),
    (3, broadcast),
]

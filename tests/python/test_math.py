# SPDX-License-Identifier: Apache-2.0
"""Elementwise primitives: arithmetic, functions, comparisons, bits, conversions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxport
from jaxport import runtime
from support.cases import bf16, boolean, case, check, f16, f32, f64, i8, i32, i64, parity, u8, u32

EVERYWHERE = [[f32("B", 3)], [f64(3)], [f32()]]
POSITIVE = [[f32("B", 3, lo=0.1)], [f64(3, lo=0.1)], [f32(lo=0.1)]]
# ONNX Runtime has no float64 kernels for these functions.
SINGLE = [[f32("B", 3)], [f32()]]
UNIT = [[f32("B", 3, lo=-0.9, hi=0.9)], [f32(lo=-0.9, hi=0.9)]]

AWAY = lax.RoundingMethod.AWAY_FROM_ZERO
LOWEST = -(2**31)
INTEGERS = (LOWEST, LOWEST + 1, -7, -3, -1, 0, 1, 2, 6, 7, 2**30, 2**31 - 1)
DIVISORS = (-8, -3, -1, 1, 3, 4, 7, 2**30, LOWEST)
HALVES = (0.5, -1.5, 2.5, 0.49999997, -0.49999997, 1023.5, -1025, 0, -jnp.inf, jnp.nan)
BOUNDS = np.float32([-2, -1, -0.5, 0, 0.25, 2])
STEPS = (-jnp.inf, -1.0, -0.0, 0.0, 1.0, jnp.inf, jnp.nan)

ARITHMETIC = [
    case("add", lax.add, [f32(2, 3), f32(2, 3)], also=[[f64(3), f64(3)], [i32(4), i32(4)]]),
    case("add broadcast", jnp.add, [f32("B", 1, 3), f32(4, 1)]),
    case("add twice the same", lambda x: x + x, [f32("B")]),
    case("sub", lax.sub, [f32(3), f32(3)], also=[[i64(3), i64(3)], [f16(3), f16(3)]]),
    case("sub from scalar", lambda x: 2.5 - x, [f32("B", 3)]),
    case("mul", lax.mul, [f32(3), f32(3)], also=[[f16(3), f16(3)], [u8(3), u8(3)]]),
    case("div", lax.div, [f32(3), f32(3)], also=[[f64(3), f64(3)]]),
    case(
        "div of integers truncates", lax.div, [i32(9), i32(9, lo=1)], also=[[u32(9), u32(9, lo=1)]]
    ),
    case("div by zero", lambda x: x / (x - x), [f32(3)]),
    case("floor divide of integers", jnp.floor_divide, [i32(9), i32(9, lo=-4, hi=-1)]),
    case(
        "rem has the sign of the dividend",
        lax.rem,
        [f32(9), f32(9, lo=0.5)],
        also=[[i32(9), i32(9, lo=1)]],
    ),
    case("mod has the sign of the divisor", jnp.mod, [i32(9), i32(9, lo=-5, hi=-1)]),
    case("neg", lax.neg, [f32(3)], also=[[i32(3)], [f64("B")]]),
    case("abs", lax.abs, [f32(3)], also=[[i32(3)], [i8(3)], [f64("B")]]),
    case("sign", lax.sign, [f32(3)], also=[[i32(3)], [f64()]]),
    case("max", lax.max, [f32(3), f32(3)], also=[[i32(3), i32(3)], [f64(3), f64(3)]]),
    case("max keeps nan", lambda x: jnp.maximum(jnp.log(x), 1.0), [f32(9)], tolerance="function"),
    case("min", lax.min, [f32(3), f32(3)], also=[[i32(3), i32(3)], [u8(3), u8(3)]]),
    case(
        "clamp scalar bounds",
        lambda x: lax.clamp(-1.5, x, 2.5),
        [f32(3)],
        also=[[f32("B", 3)], [f64()]],
    ),
    case("clamp tensor bounds", lax.clamp, [f32(3), f32(3), f32(3)]),
    case("clamp integers", lambda x: lax.clamp(jnp.int32(-2), x, jnp.int32(3)), [i32(9)]),
    case("square", lax.square, [f32(3)], also=[[i32(3)]]),
    case("integer_pow 3", lambda x: lax.integer_pow(x, 3), [f32(3)], tolerance="function"),
    case("integer_pow -2", lambda x: lax.integer_pow(x, -2), [f32(3)], tolerance="function"),
    case("integer_pow of integers", lambda x: lax.integer_pow(x, 3), [i32(3)]),
    case(
        "pow",
        lax.pow,
        [f32(5, lo=0.1), f32(5)],
        also=[[f64(5, lo=0.1), f64(5)]],
        tolerance="function",
    ),
    case(
        "gradient of abs",
        jax.grad(lambda x: jnp.abs(x).sum()),
        [f32(5)],
    ),
]

FUNCTIONS = [
    case("exp", lax.exp, [f32(3)], also=EVERYWHERE, tolerance="function"),
    case("exp2", lax.exp2, [f32(3)], also=EVERYWHERE, tolerance="function"),
    case("expm1", lax.expm1, [f32(3)], also=EVERYWHERE, tolerance="function"),
    case("expm1 near zero", lax.expm1, [f32(9, lo=-1e-5, hi=1e-5)], tolerance="function"),
    case("log", lax.log, [f32(3, lo=0.1)], also=POSITIVE, tolerance="function"),
    case("log1p", lax.log1p, [f32(3, lo=-0.9)], also=POSITIVE, tolerance="function"),
    case("log1p of -0", lambda x: 1 / lax.log1p(-x), [f32(lo=0, hi=0)]),
    case("log1p of inf", lambda x: lax.log1p(1 / x), [f32(lo=0, hi=0)]),
    case("log1p near zero", lax.log1p, [f32(9, lo=-1e-5, hi=1e-5)], tolerance="function"),
    case("sqrt", lax.sqrt, [f32(3, lo=0.1)], also=POSITIVE),
    case("rsqrt", lax.rsqrt, [f32(3, lo=0.1)], also=POSITIVE, tolerance="function"),
    case("cbrt", lax.cbrt, [f32(9)], also=EVERYWHERE, tolerance="function"),
    case("sin", lax.sin, [f32(3)], also=EVERYWHERE, tolerance="function"),
    case("cos", lax.cos, [f32(3)], also=EVERYWHERE, tolerance="function"),
    case("tan", lax.tan, [f32(3, lo=-1, hi=1)], also=UNIT, tolerance="function"),
    case("sinh", lax.sinh, [f32(3)], also=SINGLE, tolerance="function"),
    case("cosh", lax.cosh, [f32(3)], also=SINGLE, tolerance="function"),
    case("tanh", lax.tanh, [f32(3)], also=EVERYWHERE, tolerance="function"),
    case("asin", lax.asin, [f32(3, lo=-0.9, hi=0.9)], also=UNIT, tolerance="function"),
    case("acos", lax.acos, [f32(3, lo=-0.9, hi=0.9)], also=UNIT, tolerance="function"),
    case("atan", lax.atan, [f32(3)], also=SINGLE, tolerance="function"),
    case("asinh", lax.asinh, [f32(3)], also=SINGLE, tolerance="function"),
    case("acosh", lax.acosh, [f32(3, lo=1.1)], tolerance="function"),
    case("atanh", lax.atanh, [f32(3, lo=-0.9, hi=0.9)], also=UNIT, tolerance="function"),
    case("atan2 in all quadrants", lax.atan2, [f32(16), f32(16)], tolerance="function"),
    case("erf", lax.erf, [f32(3)], also=SINGLE, tolerance="function"),
    case("erfc", lax.erfc, [f32(3, lo=-2, hi=1)], tolerance="sum"),
    case("logistic", lax.logistic, [f32(3)], also=EVERYWHERE, tolerance="function"),
    case("floor", lax.floor, [f32(9)], also=EVERYWHERE),
    case("ceil", lax.ceil, [f32(9)], also=EVERYWHERE),
    case("round to even", lambda x: lax.round(x / 2, lax.RoundingMethod.TO_NEAREST_EVEN), [f32(9)]),
    case(
        "round away from zero",
        lambda x: lax.round(x / 2, lax.RoundingMethod.AWAY_FROM_ZERO),
        [f32(9)],
    ),
    case("round halves to even", lambda x: jnp.round(x.astype(jnp.float32) / 2), [i32(9)]),
    case("is_finite", lambda x: lax.is_finite(jnp.log(x)), [f32(9)], also=[[f64("B")]]),
]

ACTIVATIONS = [
    case(name, fn, [f32(2, 8)], also=[[f32("B", 8)], [f64(8)]], tolerance="sum")
    for name, fn in [
        ("relu", jax.nn.relu),
        ("relu6", jax.nn.relu6),
        ("leaky_relu", lambda x: jax.nn.leaky_relu(x, 0.2)),
        ("elu", lambda x: jax.nn.elu(x, 0.7)),
        ("celu", lambda x: jax.nn.celu(x, 0.7)),
        ("selu", jax.nn.selu),
        ("gelu tanh", jax.nn.gelu),
        ("silu", jax.nn.silu),
        ("sigmoid", jax.nn.sigmoid),
        ("softplus", jax.nn.softplus),
        ("soft_sign", jax.nn.soft_sign),
        ("log_sigmoid", jax.nn.log_sigmoid),
        ("hard_swish", jax.nn.hard_swish),
        ("hard_sigmoid", jax.nn.hard_sigmoid),
        ("hard_tanh", jax.nn.hard_tanh),
        ("mish", jax.nn.mish),
        ("glu", lambda x: jax.nn.glu(x, axis=-1)),
    ]
]

ACTIVATIONS.append(
    case(
        "gelu erf",
        lambda x: jax.nn.gelu(x, approximate=False),
        [f32(2, 8)],
        also=[[f32("B", 8)]],  # ONNX Runtime has no float64 kernel for erf
        tolerance="sum",
    )
)

COMPARISONS = [
    *(
        case(name, fn, [i32(9, hi=1), i32(9, hi=1)], also=[[f32(9), f32(9)], [f64("B"), f64("B")]])
        for name, fn in [
            ("eq", lax.eq),
            ("ne", lax.ne),
            ("lt", lax.lt),
            ("le", lax.le),
            ("gt", lax.gt),
            ("ge", lax.ge),
        ]
    ),
    case("eq of booleans", lax.eq, [boolean(4), boolean(4)]),
    case("lt of booleans", lambda x, y: x < y, [boolean(4), boolean(4)]),
    case(
        "select_n",
        lax.select_n,
        [boolean(5), f32(5), f32(5)],
        also=[[boolean("B"), i32("B"), i32("B")]],
    ),
    case("select_n with a scalar predicate", lax.select_n, [boolean(), f32(5), f32(5)]),
    case("select_n of three", lax.select_n, [i32(5, lo=0, hi=2), f32(5), f32(5), f32(5)]),
    case("select of one", lambda x: jnp.select([x > 0], [x], -x), [f32("B", 3)], also=[[f32(1)]]),
    case(
        "select of two",
        lambda x, y: jnp.select([x > 0, y > x], [x, 2 * y], jnp.nan),
        [f32("B", 1, 3), f32(4, 1)],
    ),
    case(
        "the first of overlapping conditions",
        lambda x: lax.select_n(jnp.argmax(jnp.stack([x > 1, x > -1]), 0).astype("int32"), x, -x),
        [f32(20)],
    ),
    case(
        "the first true condition as a bool",
        lambda x: lax.select_n(
            jnp.argmax(jnp.stack([x > 2, x > 1, x > -1]), 0).astype(bool).astype("int32"),
            x,
            -x,
            x + 9,
        ),
        [f32(20)],
    ),
    case(
        "where broadcasts", lambda c, x: jnp.where(c[:, None], x, -1.0), [boolean("B"), f32("B", 3)]
    ),
]


def placed(*table):
    """Where the elements of a constant table, their neighbours and edges belong, on each side."""

    def positions(x):
        steps = np.asarray(table, x.dtype)
        sought = np.concatenate([steps, steps - 1, steps + 1, np.asarray([0, 100], x.dtype)])
        if steps.dtype.kind == "f":
            sought = np.append(sought, np.asarray([-0.0, INF, -INF, NAN], x.dtype))
        sides = ("left", "right")
        return [jnp.searchsorted(steps, sought + 0 * x, side=side) for side in sides]

    return positions


BITS = [
    *(
        case(name, fn, [boolean(4), boolean(4)], also=[[i32(9), i32(9)], [u8(9), u8(9)]])
        for name, fn in [
            ("and", lax.bitwise_and),
            ("or", lax.bitwise_or),
            ("xor", lax.bitwise_xor),
        ]
    ),
    *(
        case(
            name,
            fn,
            [i32(9, lo=-(2**31)), i32(9, lo=-40, hi=40)],
            also=[[u32(9, hi=2**32 - 1), u32(9, hi=40)]],
        )
        for name, fn in [
            ("shift_left", lax.shift_left),
            ("shift_right_arithmetic", lax.shift_right_arithmetic),
            ("shift_right_logical", lax.shift_right_logical),
        ]
    ),
    case("shifts by constants", lambda x: (x << 3, x >> 5), [i32(9, lo=-99)], also=[[u32(9)]]),
    case(
        "total order",
        lambda x: [
            jnp.searchsorted(jnp.array(STEPS, x.dtype), x * y, side=side)
            for y in (jnp.nan, jnp.inf, -0.0, 0.5)
            for side in ("left", "right")
        ],
        [f32(9)],
        also=[[f64(9)]],
    ),
    *(
        case(f"place in {name}", placed(*table), [f32(1, 1)], also=[[f64()], [f16()], [i32()]])
        for name, table in {
            "a table": (-3, 0, 1, 1, 1, 4, 9),
            "a table out of order": (4, 1, 3, -2, 7),
            "one element": (2,),
            "a long table": tuple(range(0, 600, 2)),
        }.items()
    ),
    case("places along symbolic dims", lambda x: jnp.digitize(x, BOUNDS), [f32("B", 3, "C")]),
    case("places in infinities", placed(-jnp.inf, 0.0, 1.0, jnp.inf), [f32()], also=[[f64()]]),
    case("histogram", lambda x: jnp.histogram(x, bins=BOUNDS)[0], [f32(40)]),
    case("interp", lambda x: jnp.interp(x, BOUNDS, BOUNDS**2), [f32(40)], tolerance="sum"),
    case("not", lax.bitwise_not, [boolean(4)], also=[[i32(9)], [u8(9)]]),
]

CONVERSIONS = [
    case("f32 to i32 truncates", lambda x: x.astype(jnp.int32), [f32(9)]),
    case("i32 to f32", lambda x: x.astype(jnp.float32), [i32(9)]),
    case("f32 to bool", lambda x: (x - x[0]).astype(bool), [f32(9)]),
    case("bool to f32", lambda x: x.astype(jnp.float32), [boolean(4)]),
    case("bool to i32", lambda x: x.astype(jnp.int32), [boolean("B")]),
    case("f32 to f16", lambda x: x.astype(jnp.float16), [f32(9)]),
    case("f32 to bf16 and back", lambda x: x.astype(jnp.bfloat16).astype(jnp.float32), [f32(9)]),
    case("i32 to u8 wraps", lambda x: x.astype(jnp.uint8), [i32(9)]),
    case("f64 to f32", lambda x: x.astype(jnp.float32), [f64(9)]),
    case("f32 to f64", lambda x, y: x.astype(jnp.float64) + y, [f32(9), f64(9)]),
    case("stop_gradient", lax.stop_gradient, [f32(3)]),
]


def edges(*numbers):
    """Numbers that depend on a zero from outside, so that nothing is folded."""
    return lambda zero: jnp.asarray(numbers, zero.dtype) + zero


def pairs(zero):
    """Every pair of integers at the edges."""
    x, y = np.meshgrid(np.int32(INTEGERS), np.int32(INTEGERS))
    return jnp.asarray(x.reshape(-1)) + zero, jnp.asarray(y.reshape(-1)) + zero


ZERO = {"lo": 0, "hi": 0}
INF, NAN = jnp.inf, jnp.nan
FAR = edges(NAN, INF, -INF, 1e20, -1e20, 3.7, -3.7, 300, -300, -0.5, 2147483647, 4e9)
UP = edges(0, 0, 1, -1, INF, INF, -INF, 1, NAN)
RIGHT = edges(-1, 1, 0, 0, INF, -INF, -INF, -INF, 1)

EDGES = [
    *[
        case(
            f"out of range to {dtype.__name__}",
            lambda zero, dtype=dtype: FAR(zero).astype(dtype),
            [f32(**ZERO)],
            also=[[f64(**ZERO)]],
        )
        for dtype in (jnp.int8, jnp.int16, jnp.int32, jnp.uint8, jnp.uint16, jnp.uint32)
    ],
    case(
        "out of range to 64 bits",
        lambda zero: (FAR(zero).astype(jnp.int64), FAR(zero).astype(jnp.uint64)),
        [f64(**ZERO)],
    ),
    case("atan2 on axes and at infinity", lambda z: lax.atan2(UP(z), RIGHT(z)), [f32(**ZERO)]),
    case(
        "division of integers by 0 and -1",
        lambda z: lax.div(edges(7, -7, 0, -(2**31), 5)(z), edges(0, 2, 0, -1, -3)(z)),
        [i32(**ZERO)],
    ),
    case(
        "remainder of integers by 0 and -1",
        lambda z: lax.rem(edges(7, -7, 0, -(2**31), 5)(z), edges(0, 2, 0, -1, -3)(z)),
        [i32(**ZERO)],
    ),
    *[
        case(f"{name} of integers at the edges", lambda z, fn=fn: fn(*pairs(z)), [i32(**ZERO)])
        for name, fn in {
            "floor divide": jnp.floor_divide,
            "mod": jnp.mod,
            "rem": lax.rem,
            "floor divide by constants": lambda x, y: [x // c for c in DIVISORS],
            "mod by constants": lambda x, y: [x % c for c in DIVISORS],
            "rem by constants": lambda x, y: [lax.rem(x, np.int32(c)) for c in DIVISORS],
        }.items()
    ],
    case(
        "round away from zero at the edges",
        lambda z: lax.round(edges(*HALVES)(z), AWAY),
        [f32(**ZERO)],
        also=[[f64(**ZERO)], [f16(**ZERO)], [bf16(**ZERO)]],
    ),
    case(
        "round large numbers away from zero",
        lambda z: lax.round(edges(8388609, 4194305.5, 8388607.5, -1e30)(z), AWAY),
        [f32(**ZERO)],
        also=[[f64(**ZERO)]],
    ),
    # ONNX Runtime takes the largest finite number for a bound of Clip that is left out.
    *[
        case(
            f"infinities and NaN, {name}",
            lambda z, fn=fn: fn(edges(NAN, INF, -INF, 7, -7, 1)(z)),
            [f32(**ZERO)],
            also=[[f64(**ZERO)], [f16(**ZERO)], [bf16(**ZERO)]],
        )
        for name, fn in {
            "maximum": lambda x: jnp.maximum(x, 1.5),
            "minimum": lambda x: jnp.minimum(x, 1.5),
            "maximum with NaN": lambda x: jnp.maximum(x, NAN),
            "maximum with inf": lambda x: jnp.maximum(x, INF),
            "clip": lambda x: jnp.clip(x, -1.5, 1.5),
            "clip to infinities": lambda x: jnp.clip(x, -INF, INF),
            "clip above": lambda x: jnp.clip(x, None, 1.5),
            "clamp to NaN": lambda x: lax.clamp(x.dtype.type(NAN), x, x.dtype.type(1)),
            "clamp to bounds that cross": lambda x: lax.clamp(x.dtype.type(2), x, x.dtype.type(1)),
            "relu": jax.nn.relu,
            "relu6": jax.nn.relu6,
        }.items()
    ],
    case(
        "bounds that are NaN when the model runs",
        lambda z, x: lax.clamp(z + NAN, x, z),
        [f32(**ZERO), f32(3)],
    ),
    case("integer_pow 0", lambda z: lax.integer_pow(edges(NAN, INF, 0)(z), 0), [f32(**ZERO)]),
    case(
        "select_n picks the nearest case",
        lambda z, a, b, c: lax.select_n(edges(0, 1, 2, 5, -1)(z), a, b, c),
        [i32(**ZERO), f32(5), f32(5), f32(5)],
    ),
]


@parity(ARITHMETIC + FUNCTIONS + ACTIVATIONS + COMPARISONS + BITS + CONVERSIONS + EDGES)
def test_numbers_are_jax_s(case, capfd):
    check(case, capfd)


def test_halves_of_16_bits_round_away_from_zero_where_a_runtime_computes_in_f32():
    halves = np.array([0.5, 1.5, 2.5, -0.5, 0.49975586], np.float16)
    model = jaxport.to_onnx(lax.round, [jax.ShapeDtypeStruct((5,), jnp.float16)], target="onnx")
    (rounded,) = runtime.run(runtime.open_session(model), [halves]).values()
    np.testing.assert_array_equal(rounded, [1, 2, 3, -1, 0])

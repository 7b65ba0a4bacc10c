# SPDX-License-Identifier: Apache-2.0
"""Every dtype: the model loads in ONNX Runtime and gives JAX's numbers, kernel or not."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxport
from jaxport import runtime
from support.cases import (
    Case,
    Spec,
    bf16,
    boolean,
    case,
    check,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    parity,
    structs,
    u8,
    u16,
    u32,
    u64,
)
from support.tolerances import assert_close

SIGNED, UNSIGNED = [i8, i16, i32, i64], [u8, u16, u32, u64]
INTEGERS = SIGNED + UNSIGNED
FLOATS = [bf16, f16, f32, f64]
NUMBERS = INTEGERS + FLOATS
ALL = [boolean, *NUMBERS]


def full(make, *shape, **bounds) -> Spec:
    """A spec over the whole range of an integer dtype, so that arithmetic wraps around."""
    spec = make(*shape, **bounds)
    if not jnp.issubdtype(spec.numpy_dtype, jnp.integer) or bounds:
        return spec
    info = jnp.iinfo(spec.numpy_dtype)
    return make(*shape, lo=int(info.min), hi=int(info.max))


def rows(name, fn, makers, *shapes, tolerance="exact", opsets=(23,), **bounds) -> list[list[Case]]:
    """One row: `fn` in each dtype, with operands of these shapes."""
    first, *others = [[full(make, *shape, **bounds) for shape in shapes] for make in makers]
    return [case(name, fn, first, also=others, tolerance=tolerance, opsets=opsets)]


def table(*groups: list[list[Case]]) -> list[list[Case]]:
    return list(itertools.chain.from_iterable(groups))


ELEMENTWISE = table(
    rows("add", lax.add, NUMBERS, (9,), (9,)),
    rows("sub", lax.sub, NUMBERS, (9,), (9,)),
    rows("mul", lax.mul, NUMBERS, (9,), (9,)),
    rows("div", lax.div, NUMBERS, (9,), (9,), lo=1, hi=120, tolerance="rounding"),
    rows("rem", lax.rem, NUMBERS, (9,), (9,), lo=1, hi=120),
    rows("div by anything", lax.div, INTEGERS, (40,), (40,), lo=0, hi=2),
    rows("rem by anything", lax.rem, INTEGERS, (40,), (40,), lo=0, hi=2),
    rows("div of anything", lambda x, y: lax.div(x, y % 3 - 1), SIGNED, (40,), (40,)),
    rows("rem of anything", lambda x, y: lax.rem(x, y % 3 - 1), SIGNED, (40,), (40,)),
    rows("neg", lax.neg, NUMBERS, (9,)),
    rows("abs", lax.abs, SIGNED + FLOATS, (9,)),
    rows("sign", lax.sign, NUMBERS, (9,)),
    rows("max", lax.max, ALL, (9,), (9,)),
    rows("min", lax.min, ALL, (9,), (9,)),
    rows("clamp", lambda x: jnp.clip(x, x[0], x[1]), NUMBERS, (9,)),
    rows("square", lambda x: x * x, NUMBERS, (9,)),
    rows("integer_pow", lambda x: lax.integer_pow(x, 3), INTEGERS, (9,)),
    rows("and", lax.bitwise_and, [boolean, *INTEGERS], (9,), (9,)),
    rows("not", lax.bitwise_not, [boolean, *INTEGERS], (9,)),
    rows("add a constant", lambda x: x + x.dtype.type(3), NUMBERS, (9,)),
    rows("floor", lax.floor, FLOATS, (9,)),
    rows("round", lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), FLOATS, (9,)),
)

COMPARISONS = table(
    *(
        rows(fn.__name__, fn, ALL, (9,), (9,), lo=0, hi=2)
        for fn in (lax.eq, lax.ne, lax.lt, lax.le, lax.gt, lax.ge)
    ),
    rows("lt of large numbers", lax.lt, INTEGERS, (9,), (9,)),
    rows("select_n", lambda x, y: lax.select_n(x < y, x, y), ALL, (9,), (9,)),
    rows("is_finite", lax.is_finite, FLOATS, (9,)),
)

# Kernels of ONNX Runtime that look at the lower half of 64 bits only are right for small numbers.
WIDE = [i64, u64]
LARGE = table(
    rows("large max", lax.max, WIDE, (40,), (40,), lo=0, hi=2**33),
    rows("large min", lax.min, WIDE, (40,), (40,), lo=0, hi=2**33),
    rows("large sign", lax.sign, WIDE, (40,), lo=0, hi=2**33),
    rows("large clamp", lambda x: jnp.clip(x, x[0], x[1]), WIDE, (40,), lo=0, hi=2**33),
    rows("large reduce_max", lambda x: x.max(0), WIDE, (40, 3), lo=0, hi=2**33),
    rows("large reduce_min", lambda x: x.min((0, 1)), WIDE, (40, 3), lo=0, hi=2**33),
    rows("large u32", lambda x: x.max(0), [u32], (40, 3)),
)

REDUCTIONS = table(
    rows("sum", lambda x: lax.reduce_sum(x, (1,)), NUMBERS, ("B", 7), tolerance="sum"),
    rows("sum of all", lambda x: lax.reduce_sum(x, (0, 2)), NUMBERS, (3, 2, 4), tolerance="sum"),
    rows("prod", lambda x: lax.reduce_prod(x, (1,)), NUMBERS, ("B", 5), tolerance="sum"),
    rows("prod of all", lambda x: lax.reduce_prod(x, (0, 1)), NUMBERS, (2, 3), tolerance="sum"),
    rows("max over an axis", lambda x: lax.reduce_max(x, (1,)), NUMBERS, ("B", 5)),
    rows("min over axes", lambda x: lax.reduce_min(x, (0, 2)), NUMBERS, (3, 2, 4)),
    rows("mean of counts", lambda x: (x > 0).sum(1) / 5, NUMBERS, ("B", 5), tolerance="function"),
    rows("argmax", lambda x: lax.argmax(x, 1, np.int32), NUMBERS, ("B", 5)),
    rows("argmin", lambda x: lax.argmin(x, 1, np.int32), NUMBERS, ("B", 5)),
    rows("cumsum", lambda x: lax.cumsum(x, axis=1), NUMBERS, ("B", 5), tolerance="sum"),
    rows("any", lambda x: x.any(1), [boolean], ("B", 5), opsets=(17, 18, 23)),
    rows("all", lambda x: x.all(1), [boolean], ("B", 5), opsets=(17, 18, 23)),
    rows("mean", lambda x: x.mean(1), FLOATS, ("B", 8), tolerance="sum"),
)

PRODUCTS = table(
    rows("matmul", jnp.matmul, NUMBERS, ("B", 7), (7, 4), tolerance="sum"),
    rows("matmul of ones", lambda x: x @ jnp.ones((7, 4), x.dtype), INTEGERS, ("B", 7)),
    rows("matmul of a constant", lambda x: x @ jnp.eye(7, 4, dtype=x.dtype), NUMBERS, ("B", 7)),
    rows("outer", lambda x, y: x[:, None] * y, NUMBERS, (5,), (4,)),
)


def window(computation, init):
    def fn(x):
        start = init(x.dtype) if callable(init) else init
        return lax.reduce_window(x, x.dtype.type(start), computation, (2, 2), (1, 2), "SAME")

    return fn


def lowest(dtype):
    return -jnp.inf if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo(dtype).min


CONV = {"dimension_numbers": ("NHWC", "HWIO", "NHWC"), "rhs_dilation": (1, 2)}


def conv(x, w):
    return lax.conv_general_dilated(x, w, (2, 1), [(1, 0), (0, 2)], **CONV)


def grouped_conv(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), "VALID", feature_group_count=3, **CONV)


WINDOWS = table(
    rows("window max", window(lax.max, lowest), NUMBERS, (3, 5)),
    rows("window sum", window(lax.add, 0), NUMBERS, (3, 5), tolerance="sum"),
    rows("conv", conv, NUMBERS, (2, 6, 7, 3), (3, 2, 3, 4), lo=0, hi=9, tolerance="sum"),
    rows(
        "conv at symbolic sizes",
        conv,
        [f64, i32],
        ("B", "2*H+4", 7, 3),
        (3, 2, 3, 4),
        lo=0,
        hi=9,
        tolerance="sum",
    ),
    rows("grouped conv", grouped_conv, [f64, i64], (2, 6, 7, 3), (2, 2, 1, 6), tolerance="sum"),
)

MOVES = table(
    rows("transpose", lambda x: x.T.reshape(3, -1), ALL, (2, 3)),
    rows("concatenate", lambda x, y: lax.concatenate([x, y], 0), ALL, (2,), (3,)),
    rows("pad", lambda x: jnp.pad(x, ((1, 2), (0, 1)), constant_values=1), ALL, (2, 3)),
    rows("broadcast", lambda x: jnp.broadcast_to(x[:, None], (3, 4)), ALL, (3,)),
    rows("tile", lambda x: jnp.tile(x, (2, 3)), ALL, (2, 3)),
    rows("slice", lambda x: x[1:4:2], ALL, (5,)),
    rows("rev", lambda x: lax.rev(x, (0,)), ALL, (5,)),
    rows("take", lambda x: jnp.take(x, jnp.array([2, 0]), axis=0), ALL, (3, 2)),
    rows("dynamic_slice", lambda x: lax.dynamic_slice(x, (x.shape[0] - 2,), (2,)), ALL, (5,)),
    rows("sort", lambda x: lax.sort(x, dimension=0), ALL, (9,)),
    rows("top_k", lambda x: lax.top_k(x, 3), NUMBERS, (9,)),
    rows("set", lambda x, y: x.at[jnp.array([3, 1])].set(y), ALL, (5,), (2,)),
    rows("add at", lambda x, y: x.at[jnp.array([3, 1])].add(y), NUMBERS, (5,), (2,)),
    rows("max at", lambda x, y: x.at[jnp.array([3, 1])].max(y), NUMBERS, (5,), (2,)),
    rows("indices", lambda i: jnp.arange(9.0)[i], INTEGERS, (4,), lo=0, hi=8),
)

FUNCTIONS = table(
    *(
        rows(fn.__name__, fn, FLOATS, (9,), lo=0.1, hi=0.9, tolerance="function")
        for fn in (
            lax.exp,
            lax.log,
            lax.log1p,
            lax.expm1,
            lax.sqrt,
            lax.rsqrt,
            lax.tanh,
            lax.logistic,
            lax.sin,
            lax.cos,
            lax.tan,
            lax.asin,
            lax.acos,
            lax.atan,
            lax.sinh,
            lax.cosh,
            lax.asinh,
            lax.atanh,
            lax.erf,
        )
    ),
    rows("acosh", lax.acosh, FLOATS, (9,), lo=1.0, hi=9.0, tolerance="function"),
    rows("pow", lax.pow, FLOATS, (9,), (9,), lo=0.5, hi=3.0, tolerance="function"),
)


ACTIVATIONS = [jax.nn.relu, jax.nn.gelu, jax.nn.silu, jax.nn.softplus, jax.nn.elu, jax.nn.mish]


def layer_norm(x):
    d = x - x.mean(-1, keepdims=True)
    return d * lax.rsqrt((d * d).mean(-1, keepdims=True) + 1e-5)


def attention(q, k, v):
    weights = jax.nn.softmax(jnp.einsum("bthd,bshd->bhts", q, k) * 0.25)
    return jnp.einsum("bhts,bshd->bthd", weights, v)


NETWORKS = table(
    *(rows(fn.__name__, fn, FLOATS, ("B", 8), tolerance="network") for fn in ACTIVATIONS),
    rows("softmax", jax.nn.softmax, FLOATS, ("B", 8), tolerance="network"),
    rows("log_softmax", jax.nn.log_softmax, FLOATS, ("B", 8), tolerance="network"),
    rows("layer_norm", layer_norm, FLOATS, ("B", 8), tolerance="network"),
    rows("attention", attention, FLOATS, *[(2, 5, 3, 8)] * 3, tolerance="network"),
)


@parity(
    ELEMENTWISE
    + COMPARISONS
    + LARGE
    + REDUCTIONS
    + PRODUCTS
    + WINDOWS
    + MOVES
    + FUNCTIONS
    + NETWORKS
)
def test_numbers_of_every_dtype_are_jax_s(case, capfd):
    check(case, capfd)


@parity(
    rows(
        "a chain", lambda x, y: jnp.max(jnp.tanh(x + y) * x, axis=0), [bf16, f16], (4, 3), (4, 3),
        tolerance="sum", opsets=(17, 18, 20, 21, 23, 24, 26),
    )
)  # fmt: skip
def test_numbers_of_every_opset_are_jax_s(case, capfd):
    check(case, capfd)


EXTREMES = np.array([
    0.0, 1e-300, 1e-20, 1e-9, 3e-5, 0.3, 0.7, 1.0 - 1e-15, 1.0, 1.0 + 1e-12, 1.5, 2.9, 5.5, 7.0,
    30.0, 700.0, 710.2, 711.0, 1e9, 1e20, 1e200, np.inf, np.nan,
])  # fmt: skip
COMPOSED = ["acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "sinh", "tan"]


@pytest.mark.parametrize("name", COMPOSED)
def test_f64_functions_are_right_everywhere(name):
    """Some versions have these functions in f32 only; f64 is composed, never narrowed."""
    fn, points = getattr(jnp, name), np.concatenate([EXTREMES, -EXTREMES])
    if name in ("cos", "tan"):
        points = points[~(np.abs(points) > 1e9)]  # what is left after dividing by pi is noise
    with np.errstate(all="ignore"):  # JAX itself loses digits of cosh before it overflows
        want = getattr(np, name)(points)
    model = jaxport.to_onnx(
        fn, [jax.ShapeDtypeStruct(points.shape, "float64")], enable_double_precision=True
    )
    (have,) = runtime.run(runtime.open_session(model), [points]).values()
    assert_close(name, want, have, "function")


def test_f64_sigmoid_keeps_the_digits_of_small_results():
    points = np.array([-40.0, -20.0, -3.0, 0.0, 5.0, -800.0, np.inf, -np.inf, np.nan])
    struct = jax.ShapeDtypeStruct(points.shape, "float64")
    model = jaxport.to_onnx(jax.nn.sigmoid, [struct], enable_double_precision=True)
    (have,) = runtime.run(runtime.open_session(model), [points]).values()
    with np.errstate(over="ignore"):
        assert_close("sigmoid", 1 / (1 + np.exp(-points)), have, "function")


def test_f64_erf_is_right_everywhere():
    points = np.concatenate([np.linspace(-7, 7, 1001), EXTREMES, -EXTREMES])
    struct = jax.ShapeDtypeStruct(points.shape, "float64")
    model = jaxport.to_onnx(lax.erf, [struct], enable_double_precision=True)
    (have,) = runtime.run(runtime.open_session(model), [points]).values()
    assert_close("erf", np.vectorize(math.erf)(points), have, "function")


@pytest.mark.parametrize("make", [bf16, f16, f32], ids=["bf16", "f16", "f32"])
def test_the_sign_of_nan_is_nan(make):
    (spec,) = structs([make(2)])
    points = np.array([np.nan, -0.0], spec.dtype)
    model = jaxport.to_onnx(lax.sign, [spec])
    (have,) = runtime.run(runtime.open_session(model), [points]).values()
    assert np.isnan(have[0])
    assert have[1] == 0


def ops(fn, spec, **options) -> list[str]:
    model = jaxport.to_onnx(fn, structs([spec]), **options)
    return [node.op_type for node in model.graph.node]


def test_target_onnx_uses_what_the_specification_allows():
    assert ops(lambda x: x * x, bf16(3)) == ["Cast", "Mul", "Cast"]
    assert ops(lambda x: x * x, bf16(3), target="onnx") == ["Mul"]


def test_target_onnx_widens_what_the_specification_does_not_allow():
    assert ops(lambda x: lax.reduce_sum(x, (0,)), i8(3), target="onnx") == [
        "Cast",
        "ReduceSum",
        "Cast",
    ]


def test_widened_operands_are_shared():
    assert ops(lambda x: jnp.exp(x) + jnp.sin(x), bf16(3)).count("Cast") == 6


def test_results_that_need_no_rounding_stay_wide():
    assert ops(lambda x: jnp.exp(jnp.maximum(-x, jnp.abs(x))), bf16(3)) == [
        "Cast", "Neg", "Abs", "Max", "Exp", "Cast",
    ]  # fmt: skip


# Where takes u32 from ONNX Runtime 1.31 on.
def test_versions_that_lack_a_kernel_are_asked_for_only_when_wanted():
    def fn(x):
        return jnp.where(x > 2, x, x + 1)

    assert ops(fn, u32(3)).count("Cast") > 0
    assert ops(fn, u32(3), target="onnxruntime>=1.31").count("Cast") == 0


@pytest.mark.parametrize(
    ("target", "opset", "ir_version"),
    [
        ("onnxruntime==1.17", 20, 9),
        ("onnxruntime-web==1.20", 21, 10),
        ("onnxruntime>=1.23", 23, 10),
    ],
)
def test_auto_is_the_newest_opset_that_the_target_runs(target, opset, ir_version):
    model = jaxport.to_onnx(jnp.tanh, [(3,)], opset="auto", target=target)
    assert [entry.version for entry in model.opset_import] == [opset]
    assert model.ir_version == ir_version


def test_the_model_says_what_it_requires():
    model = jaxport.to_onnx(jnp.tanh, [(3,)], opset=21, return_mode="model")
    assert model.requires == "onnxruntime>=1.18"
    metadata = {entry.key: entry.value for entry in model.to_proto().metadata_props}
    assert metadata["jaxport.requires"] == model.requires


def test_a_version_that_does_not_load_the_opset_is_refused():
    with pytest.raises(jaxport.ConversionError, match="does not run opset 23") as caught:
        jaxport.to_onnx(jnp.tanh, [(3,)], target="onnxruntime==1.20")
    assert caught.value.code == "E011"


def test_unknown_target_is_refused():
    with pytest.raises(jaxport.ConversionError) as caught:
        jaxport.to_onnx(jnp.tanh, [(3,)], target="tensorrt")
    assert caught.value.code == "E079"

# SPDX-License-Identifier: Apache-2.0
"""Complex numbers are a last axis of two parts in a model, and Fourier transforms work on them."""

from __future__ import annotations

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxport
from jaxport import _jax, runtime
from support.cases import c64, c128, case, check, f32, f64, i32, load, parity

Z, ZB, Z_DOUBLE = c64(3, 4), c64("B", 4), c128(3, 4)
SCATTERED = c64(5, 2), i32(6, lo=-5, hi=6), c64(6, 2)
UNARY = (
    *("exp", "expm1", "log", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh"),
    *("arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh"),
    *("sqrt", "square", "abs", "sign", "angle"),
)


def row(name, fn, *inputs, tolerance="function", also=()):
    return case(name, fn, inputs, also, tolerance=tolerance)


FUNCTIONS = [
    # A part may cancel: what counts is the size of the number.
    *(row(name, getattr(jnp, name), ZB, tolerance="sum", also=[[Z_DOUBLE]]) for name in UNARY),
    row("rsqrt", lax.rsqrt, Z, tolerance="sum"),
    row("logistic", jax.nn.sigmoid, Z, tolerance="sum"),
    row("third power below", lambda z: z**-3, Z, tolerance="sum"),
    row("pow", lambda z, w: z**w, Z, Z, tolerance="network"),
]


def choose(z, w):
    return lax.select_n((z.real > 0).astype("int32") + (z.imag > 0), z, w, z + w)


ARITHMETIC = [
    row("add", lambda z, w: z + w, ZB, ZB),
    row("sub", lambda z, w: z - w, Z, Z),
    row("add of broadcast", lambda z, w: z + w[0] - 2.0, Z, Z),
    row("mul", lambda z, w: z * w, ZB, ZB, tolerance="sum", also=[[Z_DOUBLE, Z_DOUBLE]]),
    row("div", lambda z, w: z / w, Z, Z, tolerance="sum"),
    row(
        "extremes with nan",
        lambda z: (lax.max(z * jnp.nan, z), lax.max(z, z * jnp.nan), lax.min(z * jnp.nan, z)),
        Z,
    ),
    row("by a real number", lambda z, x: z * x, Z, f32(3, 4)),
    row("by a literal", lambda z: z * 2j - 1, Z),
    row("by a weight", lambda z: z * jnp.array([1 + 1j, 2, 3j, 4], "complex64"), Z),
    row("matmul", lambda z, w: z @ w.T, ZB, Z, tolerance="sum"),
    row("matmul with a real one", lambda z, x: z @ x, Z, f32(4, 2), tolerance="sum"),
    # Types are not promoted here: the product is complex64.
    row("product with a double", lambda x, z: lax.dot(x, z), f64(2, 3), Z, tolerance="sum"),
    *(
        row(
            f"beyond the end, filled with {fill}",
            lambda z, fill=fill: z.at[jnp.array([0, 7, -9])].get(mode="fill", fill_value=fill),
            Z,
        )
        for fill in (None, 1, 2.5)
    ),
    row("conj", jnp.conj, Z),
    row("parts", lambda z: (z.real, z.imag), Z),
    row("from parts", lambda x, y: lax.complex(x, y), f32("B"), f32("B")),
    row("sum", lambda z: z.sum(0), Z, tolerance="sum"),
    row("mean", lambda z: z.mean(), Z, tolerance="sum"),
    row("prod", lambda z: z.prod(1), c64(2, 5), tolerance="network"),
    row("prod of nothing", lambda z: z.prod(1), c64(2, 0)),
    row("cumprod", lambda z: jnp.cumprod(z, 1), Z, tolerance="network"),
    row("cumsum", lambda z: jnp.cumsum(z, 1), Z, tolerance="sum"),
    row("equal", lambda z: (z == z.real) | (z != z), Z),
    row("to wider parts", lambda z: z.astype("complex128"), c128(2)),
    row("turned by an angle", lambda x, t: rotated(x, t), f32(3, 8), f32(3, 4), tolerance="sum"),
]

MOVES = [
    row("reshape, transpose, reverse", lambda z: z.reshape(2, 6).T[::-1], Z),
    row("where", lambda z: jnp.where(z.real > 0, z, 0), ZB),
    row("concatenate and pad", lambda z: jnp.pad(jnp.concatenate([z, z]), 1), Z),
    row("stack", lambda z, w: (jnp.stack([z, w]), jnp.stack([z, w], -1)), ZB, ZB),
    row("unstack", lambda z: jnp.unstack(z, axis=1), ZB),
    row("pad with a number", lambda z: jnp.pad(z, 1, constant_values=1j), Z),
    row("edges", lambda z: jnp.pad(z, 1, mode="edge"), Z),
    row("sort", lambda z: (jnp.sort(z, 1), jnp.argsort(z, 0)), Z),
    row("slice at a position", lambda z, i: lax.dynamic_slice(z, (i, 1), (2, 2)), Z, i32()),
    row("update at a position", lambda z, i: lax.dynamic_update_slice(z, -z[:1], (i, 0)), Z, i32()),
    row("any and all", lambda z: (jnp.any(z, 1), jnp.all(z, 0)), Z),
    row("choose among three", choose, Z, Z),
    row("take", lambda z: z[jnp.array([2, 0])], Z),
    row("set", lambda z: z.at[1].set(1j), Z),
    row("add, in part outside", lambda z, i, w: z.at[i].add(w), *SCATTERED, tolerance="sum"),
    row("multiply", lambda z, i, w: z.at[i].multiply(w), *SCATTERED, tolerance="sum"),
    row("max and min", lambda z, i, w: (z.at[i].max(w), z.at[i].min(w)), *SCATTERED),
    row("bits", lambda z: lax.bitcast_convert_type(z, jnp.complex64), Z),
    row(
        "scan", lambda z: lax.scan(lambda c, x: (c * x, c + x), 1 + 1j, z), c64(4), tolerance="sum"
    ),
    row("while", lambda z: lax.fori_loop(0, 3, lambda i, c: c * z, z), Z, tolerance="network"),
    row("cond", lambda z: lax.cond(z[0].real > 0, lambda y: y * 1j, lambda y: y, z), c64(3)),
]

TRANSFORMS = [
    row(
        "fft",
        jnp.fft.fft,
        ZB,
        tolerance="sum",
        also=[[c64(7)], [c128(2, 8)], [c128(2, 7)], [f32("B", 6)]],
    ),
    row("ifft", jnp.fft.ifft, ZB, tolerance="sum"),
    row(
        "rfft",
        jnp.fft.rfft,
        f32("B", 8),
        tolerance="sum",
        also=[[f32(2, 7)], [f64(2, 8)], [f64(2, 9)]],
    ),
    row("irfft", lambda z: jnp.fft.irfft(z, 6), Z, tolerance="sum"),
    row("irfft of odd length", lambda z: jnp.fft.irfft(z, 7), ZB, tolerance="sum"),
    row("fft2", jnp.fft.fft2, ZB, tolerance="sum"),
    row("rfft2", jnp.fft.rfft2, f32(2, 4, 6), tolerance="sum"),
    row("irfft2", jnp.fft.irfft2, Z, tolerance="sum"),
    row(
        "fftn, shifted", lambda z: jnp.fft.fftshift(jnp.fft.fftn(z)), c64(2, 3, 4), tolerance="sum"
    ),
    row("along another axis", lambda z: jnp.fft.fft(z, axis=0), Z, tolerance="sum"),
    row(
        "gradient through a spectrum",
        jax.grad(lambda x: jnp.abs(jnp.fft.rfft(x)).sum()),
        f32(3, 8),
        tolerance="network",
    ),
]


def rotated(x, angle):
    """Rotary embedding in the complex spelling."""
    z = lax.complex(x[..., ::2], x[..., 1::2]) * jnp.exp(1j * angle)
    return jnp.stack([z.real, z.imag], -1).reshape(x.shape)


@parity([*FUNCTIONS, *ARITHMETIC, *MOVES, *TRANSFORMS])
def test_numbers_are_jax_s(case, capfd):
    check(case, capfd)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions_of_extremes_are_those_of_numpy(name, axis):
    """JAX traces these and then cannot compile them."""
    z = np.array([[1 + 2j, 1 + 3j, 1 + 3j], [2, -1j, 2 + 0j], [0, np.nan, complex(5, np.nan)]])
    z = z.astype("complex64")
    model = jaxport.to_onnx(lambda z: getattr(jnp, name)(z, axis), [z])
    (have,) = runtime.run(load(model, 23), [_jax.host_array(z)]).values()
    assert have.tolist() == getattr(np, name)(z, axis).tolist()


def test_a_rotation_leaves_no_arithmetic_on_zeros():
    model = jaxport.to_onnx(rotated, [(3, 8), (3, 4)], opset=22, return_mode="model")
    ops = model.stats()["ops"]
    assert (ops["Mul"], ops["Cos"], ops["Sin"]) == (4, 1, 1)
    assert "Exp" not in ops


def test_a_primitive_without_a_complex_form_is_named():
    primitive = jax.extend.core.Primitive("turned")
    primitive.def_abstract_eval(lambda z: z)
    with pytest.raises(jaxport.ConversionError, match="'turned' has no form for complex numbers"):
        jaxport.to_onnx(primitive.bind, [jax.ShapeDtypeStruct((3,), "complex64")])


AXES = np.asarray([-2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0])


@pytest.mark.parametrize("name", [*UNARY, "rsqrt"])
def test_branch_cuts_are_on_the_side_of_jax(name):
    fn = lax.rsqrt if name == "rsqrt" else getattr(jnp, name)
    z = (AXES[:, None] + 1j * AXES).astype(np.complex64)
    z.imag = AXES  # the sum has lost -0
    model = jaxport.to_onnx(fn, [jax.ShapeDtypeStruct(z.shape, z.dtype)])
    have = next(iter(runtime.run(runtime.open_session(model), [_jax.host_array(z)]).values()))
    want = np.asarray(jax.jit(fn)(z))
    if np.iscomplexobj(want):
        have = np.ascontiguousarray(have).view(np.complex64)[..., 0]
    finite = np.isfinite(want)
    np.testing.assert_allclose(have[finite], want[finite], rtol=1e-5, atol=1e-5)

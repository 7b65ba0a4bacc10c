# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms of any length keep JAX's digits, whichever way their length is computed."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

import jaxport
from support.cases import c64, c128, case, check, f32, f64, parity

# One product; primes; two products; stages (5040) and convolutions (1009, 2018, 10007).
SMALL = range(1, 21)
LENGTHS = (100, 127, 251, 400, 1000, 1024)
LARGE = (1009, 2018, 4096, 5040, 10007)


def all_kinds(length):
    def transforms(x, z):
        half = z[..., : length // 2 + 1]
        return jnp.fft.fft(z), jnp.fft.ifft(z), jnp.fft.rfft(x), jnp.fft.irfft(half, length)

    return transforms


def row(length, batch=3):
    inputs = [f32(batch, length), c64(batch, length)]
    wide = [f64(2, length), c128(2, length)]
    return case(f"length {length}", all_kinds(length), inputs, [wide], tolerance="sum", opsets=[23])


CASES = [
    *(row(length) for length in (*SMALL, *LENGTHS)),
    *(row(length, batch=1) for length in LARGE),
    *(
        case(
            f"any batch, length {length}",
            all_kinds(length),
            [f32("B", length), c64("B", length)],
            tolerance="sum",
            opsets=[17, 26],
        )
        for length in (12, 300, 1031)
    ),
    case(
        "a power of two before the op",
        lambda x: jnp.fft.irfft(jnp.fft.rfft(x)[:, :1025], 2048),
        [f32(1, 1 << 13)],
        tolerance="sum",
        opsets=[16],
    ),
    case("symbolic length", jnp.fft.fft, [c64(2, "N")], tolerance="sum", sizes=(2, 4, 8)),
    case(
        "symbolic length back", jnp.fft.irfft, [c64(2, "N + 1")], tolerance="sum", sizes=(2, 4, 8)
    ),
    case("two axes", jnp.fft.fft2, [c64("B", 30, 20)], [[c64(2, 100, 300)]], tolerance="sum"),
    case(
        "three axes of real numbers",
        lambda x: jnp.fft.irfftn(jnp.fft.rfftn(x, axes=(0, 1, 2)), (6, 10, 9)),
        [f32(6, 10, 9)],
        tolerance="sum",
    ),
    case("padded", lambda x: jnp.fft.rfft(x, 300), [f32(2, 250)], tolerance="sum"),
    case("cut", lambda x: jnp.fft.rfft(x, 100), [f32(2, 250)], tolerance="sum"),
    case("normalised", lambda z: jnp.fft.fft(z, norm="ortho"), [c64(2, 60)], tolerance="sum"),
    case("hfft", lambda z: jnp.fft.hfft(z, 30), [c64(2, 16)], tolerance="sum"),
]


@parity(CASES)
def test_numbers_are_jax_s(case, capfd):
    check(case, capfd)


def ops_of(fn, *shapes):
    return jaxport.to_onnx(fn, list(shapes), return_mode="model").stats()


def test_only_large_powers_of_two_and_symbolic_lengths_use_the_op():
    assert "DFT" not in ops_of(jnp.fft.rfft, (3, 1024))["ops"]
    assert "DFT" not in ops_of(jnp.fft.rfft, (3, 1000))["ops"]
    assert ops_of(jnp.fft.rfft, (3, 1 << 16))["ops"]["DFT"] == 1
    assert ops_of(jnp.fft.rfft, (3, "N"))["ops"]["DFT"] == 1


def test_a_symbolic_length_needs_the_op():
    with pytest.raises(jaxport.ConversionError, match="needs opset 17"):
        jaxport.to_onnx(jnp.fft.rfft, [(3, "N")], opset=16)


def test_transforms_of_one_length_share_their_constants():
    once = ops_of(jnp.fft.rfft, (3, 400))["initializer_bytes"]
    twice = ops_of(lambda x: jnp.fft.rfft(x) + jnp.fft.rfft(jnp.sin(x)), (3, 400))
    assert twice["initializer_bytes"] < once + 256  # shapes


@pytest.mark.parametrize("length", [997, 1 << 13, 44100, 65537])
def test_constants_are_bounded(length):
    """A matrix has at most 2^20 numbers, of which a model needs at most two."""
    assert ops_of(jnp.fft.rfft, (1, length))["initializer_bytes"] < 10 << 20

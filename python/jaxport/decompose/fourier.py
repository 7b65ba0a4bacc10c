# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms by those along the last axis, which ONNX has."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Kind = lax.FftType


def fft(x: jax.Array, *, fft_type: Kind, fft_lengths: tuple[Any, ...]) -> Any:
    kind, lengths = Kind(fft_type), tuple(fft_lengths)
    if kind == Kind.IRFFT:
        *outer, last = lengths
        return _real_inverse(_along(x, Kind.IFFT, outer, before_last=True), last)
    if len(lengths) == 1:
        return _by_matrix(x, kind, lengths[0]) if _needs_matrix(x, lengths[0]) else NotImplemented
    if kind == Kind.RFFT:
        *outer, last = lengths
        return _along(lax.fft(x, kind, (last,)), Kind.FFT, outer, before_last=True)
    return _along(x, kind, lengths, before_last=False)


def _needs_matrix(x: jax.Array, length: Any) -> bool:
    """In 64 bits, ONNX Runtime's DFT is exact for powers of two; otherwise its angles are f32."""
    is_double = x.dtype in (np.float64, np.complex128)
    return is_double and isinstance(length, int) and length & (length - 1) != 0


def _by_matrix(x: jax.Array, kind: Kind, length: int) -> jax.Array:
    sign, scale = (1, 1 / length) if kind == Kind.IFFT else (-1, 1)
    count = length // 2 + 1 if kind == Kind.RFFT else length
    turns = np.outer(np.arange(length), np.arange(count)) % length / length
    matrix = scale * np.exp(sign * 2j * np.pi * turns)
    return x.astype(np.complex128) @ jnp.asarray(matrix)


def _along(x: jax.Array, kind: Kind, lengths: Any, *, before_last: bool) -> jax.Array:
    """The transform over the last axes, or those before the last one, one after the other."""
    first = x.ndim - len(lengths) - before_last
    for axis, length in enumerate(lengths, first):
        x = jnp.moveaxis(lax.fft(jnp.moveaxis(x, axis, -1), kind, (length,)), -1, axis)
    return x


def _real_inverse(z: jax.Array, length: Any) -> jax.Array:
    """The half that RFFT leaves out is the conjugate of the other, backwards."""
    half = length // 2 + 1
    mirrored = jnp.conj(lax.rev(z[..., 1 : length - half + 1], [z.ndim - 1]))
    # The zero frequency, and the highest of an even length, are taken as real.
    z = lax.concatenate([z[..., :half], mirrored], z.ndim - 1)
    return lax.real(lax.fft(z, Kind.IFFT, (length,)))

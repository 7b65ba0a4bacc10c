# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms along several axes by those along the last one."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

Kind = lax.FftType


def fft(x: jax.Array, *, fft_type: Kind, fft_lengths: tuple[Any, ...]) -> Any:
    kind, (*outer, last) = Kind(fft_type), fft_lengths
    if not outer:
        return NotImplemented
    if kind == Kind.RFFT:
        return _along(lax.fft(x, kind, (last,)), Kind.FFT, outer, before_last=True)
    if kind == Kind.IRFFT:
        return lax.fft(_along(x, Kind.IFFT, outer, before_last=True), kind, (last,))
    return _along(x, kind, fft_lengths, before_last=False)


def _along(x: jax.Array, kind: Kind, lengths: Any, *, before_last: bool) -> jax.Array:
    """The transform over the last axes, or those before the last one, one after the other."""
    first = x.ndim - len(lengths) - before_last
    for axis, length in enumerate(lengths, first):
        x = jnp.moveaxis(lax.fft(jnp.moveaxis(x, axis, -1), kind, (length,)), -1, axis)
    return x

# SPDX-License-Identifier: Apache-2.0
"""Sorting, tables, linear algebra, Fourier transforms, random numbers."""

import jax
import jax.numpy as jnp
import numpy as np

from operations.operation import Array, family, integers, normal, uniform

EDGES = np.sort(uniform(100))
POINTS, VALUES = np.sort(uniform(50)), normal(50)
BINS = np.linspace(0, 1, 21, dtype=np.float32)
KEY = (np.array([1, 2], np.uint32),)


def positive(*shape: int) -> Array:
    """Symmetric matrices whose eigenvalues are positive."""
    x = normal(*shape)
    return x @ np.swapaxes(x, -1, -2) / np.float32(shape[-1]) + np.eye(shape[-1], dtype=np.float32)


def lower_solve(a, b):
    return jax.scipy.linalg.solve_triangular(a, b, lower=True)


def eigh(x):
    """The signs of vectors are free: their magnitudes can be compared."""
    values, vectors = jnp.linalg.eigh(x)
    return values, jnp.abs(vectors)


def svd(x):
    u, values, vh = jnp.linalg.svd(x)
    return jnp.abs(u), values, jnp.abs(vh)


def drop(key, x):
    return jnp.where(jax.random.bernoulli(key, 0.9, x.shape), x / 0.9, 0.0)


LOWER = np.tril(positive(16, 16))
SQUARE = normal(16, 16) + 4 * np.eye(16, dtype=np.float32)

OPERATIONS = (
    *family(
        "sorting and tables",
        ("sort, 64x256", lambda x: jnp.sort(x, -1), (normal(64, 256),)),
        ("argsort, 64x256", lambda x: jnp.argsort(x, -1), (normal(64, 256),)),
        ("top 5 of 64x1000", lambda x: jax.lax.top_k(x, 5), (normal(64, 1000),)),
        ("median of 64x256", lambda x: jnp.median(x, -1), (normal(64, 256),)),
        ("searchsorted, 10000 in 100", lambda x: jnp.searchsorted(EDGES, x), (uniform(10000),)),
        ("searchsorted, table an input", jnp.searchsorted, (EDGES, uniform(10000))),
        ("digitize, 4096 in 21", lambda x: jnp.digitize(x, BINS), (uniform(4096),)),
        ("histogram, 4096 in 20", lambda x: jnp.histogram(x, BINS)[0], (uniform(4096),)),
        ("interp, 4096 in 50", lambda x: jnp.interp(x, POINTS, VALUES), (uniform(4096),)),
        ("bincount, 4096 to 64", lambda x: jnp.bincount(x, length=64), (integers(4096, hi=64),)),
    ),
    *family(
        "linear algebra",
        ("cholesky, 16x16", jnp.linalg.cholesky, (positive(16, 16),)),
        ("triangular solve, 16x16", lower_solve, (LOWER, normal(16, 16))),
        ("solve, 16x16", jnp.linalg.solve, (SQUARE, normal(16, 16))),
        ("inv, 256 of 3x3", jnp.linalg.inv, (positive(256, 3, 3),)),
        ("inv, 64 of 4x4", jnp.linalg.inv, (positive(64, 4, 4),)),
        ("inv, 16x16", jnp.linalg.inv, (SQUARE,)),
        ("det, 64 of 4x4", jnp.linalg.det, (normal(64, 4, 4),)),
        ("lu, 16x16", lambda x: jax.lax.linalg.lu(x), (SQUARE,)),
        ("qr, 16x16", jnp.linalg.qr, (normal(16, 16),)),
        ("eigh, 16x16", eigh, (positive(16, 16),)),
        ("eigenvalues, 16x16", jnp.linalg.eigvalsh, (positive(16, 16),)),
        ("svd, 16x16", svd, (normal(16, 16),)),
        ("singular values, 16x16", lambda x: jnp.linalg.svd(x, compute_uv=False), (SQUARE,)),
    ),
    *family(
        "Fourier transforms",
        ("fft, 16x512", lambda x: jnp.fft.fft(x).real, (normal(16, 512),)),
        ("rfft, 16x512", lambda x: jnp.abs(jnp.fft.rfft(x)), (normal(16, 512),)),
        (
            "irfft, 16x512",
            lambda x, y: jnp.fft.irfft(x + 1j * y),
            (normal(16, 257), normal(16, 257, seed=1)),
        ),
        ("fft2, 4x64x64", lambda x: jnp.fft.fft2(x).real, (normal(4, 64, 64),)),
    ),
    *family(
        "random numbers",
        ("bits, 64x256", lambda key: jax.random.bits(key, (64, 256)), KEY),
        ("uniform, 64x256", lambda key: jax.random.uniform(key, (64, 256)), KEY),
        ("normal, 64x256", lambda key: jax.random.normal(key, (64, 256)), KEY),
        ("split into 4", lambda key: jax.random.split(key, 4), KEY),
        ("dropout, 64x256", drop, (*KEY, normal(64, 256))),
        ("categorical, 8x1000", jax.random.categorical, (*KEY, normal(8, 1000))),
    ),
)

# SPDX-License-Identifier: Apache-2.0
"""Numbers for the inputs of a program."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np

from fuzz.programs.program import DTYPES, Input, Program

KINDS = ("normal", "ties", "small", "large", "zeros", "infinite", "nan")


def arrays(program: Program, turn: int) -> list[np.ndarray]:
    """The inputs of one run; the same for the same program, whatever else it has."""
    sizes, kind = program.sizes[turn % len(program.sizes)], program.values[turn]
    return [_array(program.seed, turn, given, sizes, kind) for given in program.inputs]


def _array(seed: int, turn: int, given: Input, sizes: Mapping[str, int], kind: str) -> np.ndarray:
    random = np.random.default_rng([seed, turn, zlib.crc32(given.name.encode())])
    shape = tuple(sizes[s] if isinstance(s, str) else s for s in given.shape)
    dtype = np.dtype(getattr(jnp, DTYPES[given.dtype]))
    if given.dtype == "boolean":
        return _booleans(random, shape)
    if jnp.issubdtype(dtype, jnp.integer):
        return _integers(random, shape, dtype, kind)
    if jnp.issubdtype(dtype, jnp.complexfloating):
        # What an infinite part gives differs between spellings of the same product.
        kind = "large" if kind in ("infinite", "nan") else kind
        parts = [_floats(random, shape, np.dtype(np.float32), kind) for _ in range(2)]
        return (parts[0] + 1j * parts[1]).astype(dtype)
    return _floats(random, shape, dtype, kind)


def _booleans(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Often all alike, or alike in some rows: masks are hard where nothing is left."""
    share = random.choice([0.0, 0.5, 0.5, 0.8, 1.0])
    result = np.asarray(random.random(shape) < share)
    if result.ndim > 1 and result.size and random.random() < 0.5:
        result[tuple(random.integers(0, n) for n in shape[:-1])] = random.random() < 0.5
    return result


def _integers(
    random: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype, kind: str
) -> np.ndarray:
    info = np.iinfo(dtype)
    low = 0 if info.min == 0 else -9
    result = random.integers(low, 9, shape, dtype=dtype, endpoint=True)
    if kind in ("large", "infinite", "nan"):
        extremes = np.array([info.min, info.max, info.max - 1, 0, 1, info.max // 2], dtype)
        result = np.where(random.random(shape) < 0.4, random.choice(extremes, shape), result)
    return np.asarray(result, dtype)


def _floats(
    random: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype, kind: str
) -> np.ndarray:
    info = jnp.finfo(dtype)
    result = random.normal(0.0, 1.5, shape)
    specials: list[float] = []
    if kind == "ties":
        result = np.round(result)
    elif kind == "small":
        result = result * random.choice([1e-3, 1e-6], shape)
        specials = [0.0, float(info.tiny) * 4]
    elif kind == "large":
        result = result * random.choice([1.0, 30.0, 1e4], shape)
    elif kind == "zeros":
        specials = [0.0, -0.0]
    elif kind in ("infinite", "nan"):
        specials = [np.inf, -np.inf, -0.0, 0.0]
        if dtype != np.float64:  # no wider type tells who is right when numbers overflow
            specials.append(float(info.max) / 2)
        specials += [np.nan] * 3 * (kind == "nan")
    if specials:
        result = np.where(random.random(shape) < 0.3, random.choice(specials, shape), result)
    return np.asarray(result).astype(dtype)

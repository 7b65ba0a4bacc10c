# SPDX-License-Identifier: Apache-2.0
"""However a function is written and converted, its model computes the same.

Each program of the table in some ways, so that all ways are met; `make metamorphic` runs all.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax import lax

import jaxport
from fuzz.programs import metamorphic
from fuzz.programs.metamorphic import RELATIONS, SETTINGS, WAYS
from jaxport import runtime
from support import models
from support.tolerances import assert_close


def attention(x, w):
    q, k, v = jnp.split(x @ w, 3, axis=-1)
    scores = q @ jnp.swapaxes(k, -1, -2) / jnp.sqrt(q.shape[-1])
    mask = jnp.tril(jnp.ones((x.shape[-2], x.shape[-2]), bool))
    return jax.nn.softmax(jnp.where(mask, scores, -1e9), axis=-1) @ v


def recurrent(x, w):
    def cell(h, step):
        h = jnp.tanh(step @ w[:4] + h @ w[4:])
        return h, h

    return lax.scan(cell, jnp.zeros((x.shape[0], 6)), jnp.swapaxes(x, 0, 1))


def halved(x):
    return lax.while_loop(lambda c: jnp.max(jnp.abs(c)) > 0.1, lambda c: c * 0.5, x)


def gradient(x, w):
    return jax.grad(lambda w: jnp.sum(jax.nn.gelu(x @ w) ** 2))(w)


def chosen(x):
    values, places = lax.top_k(x, 2)
    return jnp.take_along_axis(x, places, axis=-1) + values, jnp.argsort(x, axis=-1)


def scattered(x, i):
    return jnp.zeros((7, 3), x.dtype).at[i].add(x), x[i % x.shape[0]]


def spectrum(x):
    return jnp.abs(jnp.fft.rfft(x, axis=-1))


def solved(x):
    a = x @ x.T + 4 * jnp.eye(x.shape[0])
    return jnp.linalg.solve(a, x), jnp.linalg.cholesky(a)


def drawn(seed):
    key = jax.random.key(seed)
    return jax.random.normal(key, (4,)), jax.random.randint(key, (3,), 0, 100)


def integers(x):
    return x // 3, x % 5, x << 2, lax.population_count(x), jnp.cumsum(x)


def module(cls: Any) -> Callable[..., Any]:
    return nnx.merge(*nnx.split(cls(nnx.Rngs(0))))


def table() -> dict[str, tuple[Callable[..., Any], list[np.ndarray]]]:
    random = np.random.default_rng(0)

    def f32(*shape: int) -> np.ndarray:
        return random.normal(size=shape).astype(np.float32)

    return {
        "attention": (attention, [f32(2, 5, 8), f32(8, 24)]),
        "block": (module(lambda rngs: models.NnxBlock(16, 2, rngs)), [f32(1, 5, 16)]),
        "branches": (lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), [f32(5)]),
        "chosen": (chosen, [f32(3, 6)]),
        "convolution": (module(models.NnxCnn), [f32(2, 8, 8, 3)]),
        "drawn": (drawn, [np.uint32(7)]),
        "gradient": (gradient, [f32(3, 4), f32(4, 2)]),
        "halved": (halved, [f32(4)]),
        "half": (lambda x: jnp.exp(x) @ x.T, [f32(3, 4).astype(np.float16)]),
        "integers": (integers, [np.arange(-6, 9, dtype=np.int32)]),
        "recurrent": (recurrent, [f32(2, 5, 4), f32(10, 6)]),
        "scattered": (scattered, [f32(4, 3), np.array([6, 0, 3, 3], np.int32)]),
        "solved": (solved, [f32(3, 3)]),
        "spectrum": (spectrum, [f32(2, 8)]),
    }


TABLE = table()
EVERY = 1 if "JAXPORT_METAMORPHIC" in os.environ else 11
ROWS = [
    (name, way)
    for i, name in enumerate(TABLE)
    for j, way in enumerate(WAYS)
    if (i + j) % EVERY == 0
]


def test_the_sample_has_every_way_and_every_program() -> None:
    assert {way for _, way in ROWS} == set(WAYS)
    assert {name for name, _ in ROWS} == set(TABLE)


@pytest.mark.parametrize(("name", "way"), ROWS, ids=[" in ".join(row) for row in ROWS])
def test_a_function_and_its_variant_agree(name: str, way: str) -> None:
    fn, arrays = TABLE[name]
    altered = RELATIONS[way](fn) if way in RELATIONS else fn
    model = jaxport.to_onnx(altered, list(arrays), **SETTINGS.get(way, {}))
    have = runtime.run(runtime.open_session(model), arrays)
    for want, (output, got) in zip(jax.tree.leaves(fn(*arrays)), have.items(), strict=True):
        assert_close(output, np.asarray(want), got, "network")


@pytest.mark.parametrize("seed", range(1, 7))
def test_a_random_program_and_its_variants_agree(seed: int) -> None:
    ways = tuple(WAYS[(seed * 2 + k) % len(WAYS)] for k in range(2))
    wrong = [
        f"{way}: {outcome.kind} {outcome.detail}"
        for _, way, outcome in metamorphic.finds(range(seed, seed + 1), ways)
        if outcome.is_find
    ]
    assert not wrong

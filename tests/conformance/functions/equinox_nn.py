# SPDX-License-Identifier: Apache-2.0
"""Rows of equinox.nn: layers as functions of their input, made when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from equinox import nn

from conformance.functions.samples import LayerRow, real


def rows() -> Iterator[LayerRow]:
    four = (real(4),)
    yield "Linear", _linear, four
    yield "MLP", lambda: nn.MLP(4, 2, 8, 2, key=_key()), four
    yield "LayerNorm", lambda: nn.LayerNorm((4,)), four
    yield "RMSNorm", lambda: nn.RMSNorm((4,)), four
    yield "GroupNorm", lambda: nn.GroupNorm(2, 4), (real(4, 3),)
    yield "BatchNorm", _batch_norm, (real(3, 4),)
    yield "SpectralNorm", _spectral_norm, four
    yield "WeightNorm", lambda: nn.WeightNorm(_linear()), four
    yield "Embedding", _embedding, four
    yield "PReLU", lambda: nn.PReLU(0.2), four
    yield "LSTMCell", _lstm, four
    yield "GRUCell", _gru, four
    yield "MultiheadAttention", _attention, (real(5, 4),)
    yield "RotaryPositionalEmbedding", lambda: nn.RotaryPositionalEmbedding(4), (real(5, 4),)
    yield "Dropout", lambda: nn.Dropout(0.5, inference=True), four
    yield "Dropout (with a key)", lambda: lambda x: nn.Dropout(0.5)(x, key=_key()), four
    yield "Identity", nn.Identity, four
    yield "Lambda", lambda: nn.Lambda(jax.nn.relu), four
    yield (
        "Sequential",
        lambda: nn.Sequential([_linear(), nn.Lambda(jax.nn.relu), nn.Linear(3, 2, key=_key())]),
        four,
    )
    for dims in (1, 2, 3):
        yield from _spatial(dims)


def _key() -> jax.Array:
    return jax.random.key(3)


def _linear() -> nn.Linear:
    return nn.Linear(4, 3, key=_key())


def _embedding() -> Callable[..., Any]:
    layer = nn.Embedding(7, 4, key=_key())
    return lambda x: layer(jnp.int32(2)) * x


def _lstm() -> Callable[..., Any]:
    cell = nn.LSTMCell(4, 3, key=_key())
    return lambda x: cell(x, (x[:3], x[1:]))


def _gru() -> Callable[..., Any]:
    cell = nn.GRUCell(4, 3, key=_key())
    return lambda x: cell(x, x[:3])


def _attention() -> Callable[..., Any]:
    layer = nn.MultiheadAttention(2, 4, key=_key())
    return lambda x: layer(x, x, x)


def _batch_norm() -> Callable[..., Any]:
    norm, state = nn.make_with_state(nn.BatchNorm)(4, "batch", mode="ema")
    norm = nn.inference_mode(norm)
    return lambda x: jax.vmap(lambda row: norm(row, state)[0], axis_name="batch")(x)


def _spectral_norm() -> Callable[..., Any]:
    norm, state = nn.make_with_state(nn.SpectralNorm)(_linear(), "weight", key=_key())
    norm = nn.inference_mode(norm)
    return lambda x: norm(x, state)[0]


def _spatial(dims: int) -> Iterator[LayerRow]:
    image, suffix = (real(2, *[4] * dims),), f"{dims}d"

    def layer(kind: str, *sizes: int, **options: Any) -> Callable[[], Any]:
        keys = (lambda: {"key": _key()}) if kind.startswith("Conv") else dict
        return lambda: getattr(nn, kind + suffix)(*sizes, **options, **keys())

    yield f"Conv{suffix}", layer("Conv", 2, 3, 3, padding=1), image
    yield f"ConvTranspose{suffix}", layer("ConvTranspose", 2, 3, 3, stride=2), image
    for kind in ("Avg", "Max"):
        yield f"{kind}Pool{suffix}", layer(f"{kind}Pool", 2, 2), image
        yield f"Adaptive{kind}Pool{suffix}", layer(f"Adaptive{kind}Pool", 2), image

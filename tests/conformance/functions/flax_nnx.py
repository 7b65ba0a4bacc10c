# SPDX-License-Identifier: Apache-2.0
"""Rows of flax.nnx: layers as functions of their input, made when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from conformance.functions.samples import LayerRow, X, real


def rows() -> Iterator[LayerRow]:
    yield "Linear", _linear, (X,)
    yield "LinearGeneral", lambda: nnx.LinearGeneral(4, (2, 3), rngs=_rngs()), (X,)
    yield "Einsum", lambda: nnx.Einsum("ij,jk->ik", (4, 3), rngs=_rngs()), (X,)
    yield "LoRA", lambda: nnx.LoRA(4, 2, 3, rngs=_rngs()), (X,)
    yield "LoRALinear", lambda: nnx.LoRALinear(4, 3, lora_rank=2, rngs=_rngs()), (X,)
    yield "Embed", _embed, (X,)
    yield "Sequential", lambda: nnx.Sequential(_linear(), nnx.relu, _linear(3)), (X,)
    yield "Dropout", lambda: nnx.Dropout(0.5, deterministic=True, rngs=_rngs()), (X,)
    yield "PReLU", lambda: nnx.PReLU(0.2), (X,)
    yield from _convolutions()
    yield from _norms()
    yield from _attention()
    yield from _cells()


def _rngs() -> nnx.Rngs:
    return nnx.Rngs(0)


def _linear(features: int = 4) -> nnx.Linear:
    return nnx.Linear(features, 3, rngs=_rngs())


def _embed() -> Callable[..., Any]:
    embed = nnx.Embed(7, 4, rngs=_rngs())
    return lambda x: embed(jnp.array([2, 0, 5])) * x


def _pure(module: nnx.Module) -> Callable[..., Any]:
    """A layer that changes its state when it is called, which is then forgotten."""
    definition, state = nnx.split(module)
    return lambda x: nnx.merge(definition, jax.tree.map(jnp.asarray, state))(x)


def _convolutions() -> Iterator[LayerRow]:
    image = (real(1, 4, 4, 2),)
    yield "Conv", lambda: nnx.Conv(2, 3, (3, 3), rngs=_rngs()), (real(1, 5, 5, 2),)
    yield (
        "ConvTranspose",
        lambda: nnx.ConvTranspose(2, 3, (3, 3), strides=(2, 2), rngs=_rngs()),
        image,
    )
    for name in ("avg_pool", "max_pool", "min_pool"):
        pool = getattr(nnx, name)
        yield name, lambda f=pool: lambda x: f(x, (2, 2), (2, 2)), image


def _norms() -> Iterator[LayerRow]:
    sequence = (real(2, 3, 4),)
    yield "LayerNorm", lambda: nnx.LayerNorm(4, rngs=_rngs()), (X,)
    yield "RMSNorm", lambda: nnx.RMSNorm(4, rngs=_rngs()), (X,)
    yield "GroupNorm", lambda: nnx.GroupNorm(4, num_groups=2, rngs=_rngs()), sequence
    yield "InstanceNorm", lambda: nnx.InstanceNorm(4, rngs=_rngs()), sequence
    yield "BatchNorm", lambda: nnx.BatchNorm(4, use_running_average=True, rngs=_rngs()), (X,)
    yield "WeightNorm", lambda: _pure(nnx.WeightNorm(_linear(), rngs=_rngs())), (X,)
    yield "SpectralNorm", lambda: _pure(nnx.SpectralNorm(_linear(), rngs=_rngs())), (X,)


def _attention() -> Iterator[LayerRow]:
    def layer() -> nnx.MultiHeadAttention:
        return nnx.MultiHeadAttention(2, 4, decode=False, rngs=_rngs())

    def masked() -> Callable[..., Any]:
        attention = layer()

        def call(x: Any) -> Any:
            seen = x[..., 0] > -9
            masks = nnx.make_causal_mask(seen), nnx.make_attention_mask(seen, seen)
            return attention(x, mask=nnx.combine_masks(*masks))

        return call

    yield "MultiHeadAttention", layer, (real(2, 5, 4),)
    yield "MultiHeadAttention (masks)", masked, (real(2, 5, 4),)
    qkv = (real(2, 5, 2, 4),) * 3
    yield "dot_product_attention", lambda: nnx.dot_product_attention, qkv


def _cells() -> Iterator[LayerRow]:
    def lstm(name: str) -> Callable[..., Any]:
        cell = getattr(nnx, name)(4, 3, rngs=_rngs())
        return lambda x: cell((x[:, :3], x[:, 1:]), x)[1]

    def simple(name: str) -> Callable[..., Any]:
        cell = getattr(nnx, name)(4, 3, rngs=_rngs())
        return lambda x: cell(x[:, :3], x)[1]

    def both() -> Callable[..., Any]:
        parts = (nnx.RNN(nnx.GRUCell(4, 3, rngs=_rngs())) for _ in range(2))
        return _pure(nnx.Bidirectional(*parts))

    for name in ("LSTMCell", "OptimizedLSTMCell"):
        yield name, lambda n=name: lstm(n), (X,)
    for name in ("GRUCell", "SimpleCell"):
        yield name, lambda n=name: simple(n), (X,)
    sequence = (real(2, 5, 4),)
    yield "RNN", lambda: _pure(nnx.RNN(nnx.LSTMCell(4, 3, rngs=_rngs()))), sequence
    yield "Bidirectional", both, sequence

# SPDX-License-Identifier: Apache-2.0
"""Layers of each library as functions, with weights that hide nothing: no scale is 1, no bias 0."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from raising.table import Lazy

# Keras reads it when it is imported.
os.environ.setdefault("KERAS_BACKEND", "jax")

# Libraries that an environment may lack; the rows that need them are not collected there.
HAS_KERAS = find_spec("keras") is not None
HAS_HAIKU = find_spec("haiku") is not None
HAS_EQUIMO = find_spec("equimo") is not None
KEY = jax.random.key(0)


def filled(shapes: Any) -> Any:
    """The tree with numbers for its shapes: vectors around 1, matrices that keep the variance."""
    random = np.random.default_rng(1)

    def leaf(spec: Any) -> Any:
        if jax.dtypes.issubdtype(spec.dtype, jax.dtypes.prng_key):
            return KEY
        if not jnp.issubdtype(spec.dtype, jnp.floating):
            return jnp.zeros(spec.shape, spec.dtype)
        if len(spec.shape) < 2:
            return jnp.asarray(random.uniform(0.5, 1.5, spec.shape), spec.dtype)
        fan_in = math.prod(spec.shape) / min(spec.shape[0], spec.shape[-1])
        return jnp.asarray(random.standard_normal(spec.shape) / math.sqrt(fan_in), spec.dtype)

    return jax.tree.map(leaf, shapes)


def lazy(build: Callable[[], Callable[..., Any]]) -> Lazy:
    return Lazy(functools.cache(build))


def nnx_module(make: Callable[[nnx.Rngs], Any]) -> Any:
    """A Flax NNX module whose weights are no random numbers, which JAX would compile first."""
    graph, state = nnx.split(nnx.eval_shape(lambda: make(nnx.Rngs(0))))
    return nnx.merge(graph, filled(state))


def linen_function(module: nn.Module, *example: Any, **arguments: Any) -> Callable[..., Any]:
    """A Flax Linen module as a function; `example` are the shapes of its inputs."""
    init = functools.partial(module.init, **arguments)
    variables = filled(jax.eval_shape(init, KEY, *map(jnp.ones, example)))
    return lambda *xs, **more: module.apply(variables, *xs, **arguments, **more)


def equinox_module(make: Callable[[], Any]) -> Any:
    shapes, rest = eqx.partition(eqx.filter_eval_shape(make), _is_shape)
    return eqx.combine(filled(shapes), rest)


def with_nnx(make: Callable[[nnx.Rngs], Any], call: Callable[..., Any] | None = None) -> Lazy:
    """`call(module, *inputs)` of a Flax NNX module; by default the module's own call."""

    def build() -> Callable[..., Any]:
        module = nnx_module(make)
        return lambda *xs: call(module, *xs) if call else module(*xs)

    return lazy(build)


def with_linen(module: nn.Module, *example: Any, **arguments: Any) -> Lazy:
    return lazy(lambda: linen_function(module, *example, **arguments))


def with_equinox(make: Callable[[], Any], call: Callable[..., Any] | None = None) -> Lazy:
    """`call(module, *inputs)` of an Equinox module; by default the module's own call."""

    def build() -> Callable[..., Any]:
        module = equinox_module(make)
        return lambda *xs: call(module, *xs) if call else module(*xs)

    return lazy(build)


def _is_shape(leaf: Any) -> bool:
    return isinstance(leaf, jax.ShapeDtypeStruct)


def over_batch(call: Callable[..., Any]) -> Callable[..., Any]:
    """`call(module, *inputs)` of one example as a call of a batch."""
    return lambda module, *xs: jax.vmap(functools.partial(call, module))(*xs)


def with_keras(make: Callable[[Any], Any], call: Callable[..., Any], *example: Any) -> Lazy:
    """`call(made, *inputs)`, `make(keras)` being a layer or a list of layers.

    `example` are the shapes that layers are built for; a function of Keras needs none.
    """

    def build() -> Callable[..., Any]:
        import keras

        made = make(keras)
        if example:
            call(made, *(np.ones(shape, np.float32) for shape in example))
            for layer in made if isinstance(made, list) else [made]:
                layer.set_weights(filled(layer.get_weights()))
        return lambda *xs: call(made, *xs)

    return lazy(build)


def with_haiku(call: Callable[..., Any], *example: Any) -> Lazy:
    """`call(haiku, *inputs)` as a Haiku program."""

    def build() -> Callable[..., Any]:
        import haiku

        program = haiku.transform_with_state(lambda *xs: call(haiku, *xs))
        params, state = filled(jax.eval_shape(program.init, KEY, *map(jnp.ones, example)))
        return lambda *xs: program.apply(params, state, None, *xs)[0]

    return lazy(build)

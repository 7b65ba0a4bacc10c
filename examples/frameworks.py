# SPDX-License-Identifier: Apache-2.0
"""The same small image classifier in five frameworks, each exported as its users have it.

python -m examples.frameworks
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "jax")

import equinox as eqx
import flax.linen as nn
import haiku as hk
import jax
import jax.numpy as jnp
import keras
from flax import nnx

import jaxport

IMAGES = ("B", 28, 28, 1)


def of_nnx() -> Any:
    class Classifier(nnx.Module):
        def __init__(self, rngs: nnx.Rngs):
            self.conv = nnx.Conv(1, 8, (3, 3), strides=2, rngs=rngs)
            self.norm = nnx.BatchNorm(8, use_running_average=True, rngs=rngs)
            self.head = nnx.Linear(8, 10, rngs=rngs)

        def __call__(self, x: jax.Array) -> jax.Array:
            return self.head(nnx.relu(self.norm(self.conv(x))).mean((1, 2)))

    return Classifier(nnx.Rngs(0))


def of_linen() -> Any:
    class Classifier(nn.Module):
        @nn.compact
        def __call__(self, x: jax.Array) -> jax.Array:
            x = nn.Conv(8, (3, 3), strides=2)(x)
            x = nn.relu(nn.BatchNorm(use_running_average=True)(x))
            return nn.Dense(10)(x.mean((1, 2)))

    module = Classifier()
    return module, module.init(jax.random.key(0), jnp.ones((1, 28, 28, 1)))


def of_equinox() -> Any:
    """Equinox' layers take one image with its channels first; vmap brings the batch."""

    class Classifier(eqx.Module):
        conv: eqx.nn.Conv2d
        head: eqx.nn.Linear

        def __init__(self, key: jax.Array):
            keys = jax.random.split(key)
            self.conv = eqx.nn.Conv2d(1, 8, 3, stride=2, padding=1, key=keys[0])
            self.head = eqx.nn.Linear(8, 10, key=keys[1])

        def __call__(self, image: jax.Array) -> jax.Array:
            x = jax.nn.relu(self.conv(jnp.moveaxis(image, -1, 0)))
            return self.head(x.mean((1, 2)))

    return jax.vmap(Classifier(jax.random.key(0)))


def of_haiku() -> Any:
    def classifier(x: jax.Array) -> jax.Array:
        x = jax.nn.relu(hk.Conv2D(8, 3, stride=2)(x))
        return hk.Linear(10)(x.mean((1, 2)))

    transformed = hk.without_apply_rng(hk.transform(classifier))
    return transformed, transformed.init(jax.random.key(0), jnp.ones((1, 28, 28, 1)))


def of_keras() -> Any:
    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            keras.layers.Conv2D(8, 3, strides=2, padding="same"),
            keras.layers.BatchNormalization(),
            keras.layers.ReLU(),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(10),
        ]
    )


FRAMEWORKS: dict[str, Callable[[], Any]] = {
    "Flax NNX": of_nnx,
    "Flax Linen": of_linen,
    "Equinox": of_equinox,
    "Haiku": of_haiku,
    "Keras": of_keras,
}


def main() -> dict[str, Any]:
    results = {}
    print("framework     nodes   equal to JAX")
    for name, made in FRAMEWORKS.items():
        module = made()
        model = jaxport.to_onnx(module, [IMAGES])
        equal, message = jaxport.allclose(module, model, [IMAGES])
        ops = [node.op_type for node in model.graph.node]
        print(f"{name:12} {len(ops):6}   {'yes' if equal else message}   {' '.join(ops)}")
        results[name] = (equal, ops)
    return results


if __name__ == "__main__":
    main()

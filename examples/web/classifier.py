# SPDX-License-Identifier: Apache-2.0
"""From a drawing to the probabilities of ten digits. All of it goes into the model.

The page only hands over the pixels of its canvas: cutting the drawing out, scaling it and centring
it is JAX, so that it is the same code in training, in a test and in the browser.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from sklearn.datasets import load_digits

SIDE = 128  # pixels of the canvas
SMALL = 8  # pixels of what the network reads


class Network(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.conv1 = nnx.Conv(1, 16, (3, 3), rngs=rngs)
        self.conv2 = nnx.Conv(16, 32, (3, 3), rngs=rngs)
        self.hidden = nnx.Linear(32 * (SMALL // 2) ** 2, 64, rngs=rngs)
        self.head = nnx.Linear(64, 10, rngs=rngs)

    def __call__(self, images: jax.Array) -> jax.Array:
        """Logits of images [batch, 8, 8]."""
        x = nnx.relu(self.conv1(images[..., None]))
        x = nnx.max_pool(nnx.relu(self.conv2(x)), (2, 2), (2, 2))
        return self.head(nnx.relu(self.hidden(x.reshape(x.shape[0], -1))))


def edges(marked: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The first marked place and the one behind the last; the whole axis when none is."""
    first, behind = jnp.argmax(marked), marked.size - jnp.argmax(marked[::-1])
    return first.astype(jnp.float32), behind.astype(jnp.float32)


def small(ink: jax.Array) -> jax.Array:
    """A drawing [rows, columns] cut out, scaled to 8 pixels and put into the middle."""
    top, bottom = edges(ink.max(1) > 0.1)
    left, right = edges(ink.max(0) > 0.1)
    scale = SMALL / jnp.maximum(bottom - top, right - left)
    middle = jnp.stack([top + bottom, left + right]) / 2
    image = jax.image.scale_and_translate(
        ink, (SMALL, SMALL), (0, 1), jnp.stack([scale, scale]), SMALL / 2 - middle * scale, "linear"
    )
    return image / jnp.maximum(image.max(), 1e-3)


def reader(network: Network) -> Any:
    """The function that is exported: ink [128, 128] from 0 to 1 -> ten probabilities."""

    def read(ink: jax.Array) -> jax.Array:
        return jax.nn.softmax(network(small(ink)[None])[0])

    return read


def varied(key: jax.Array, images: jax.Array) -> jax.Array:
    """The same digits a little larger, smaller, thinner, slanted and moved."""

    def one(key: jax.Array, image: jax.Array) -> jax.Array:
        keys = jax.random.split(key, 4)
        scale = jax.random.uniform(keys[0], (2, 1, 1), minval=0.75, maxval=1.3)
        slant = jax.random.uniform(keys[1], (), minval=-0.25, maxval=0.25)
        move = jax.random.uniform(keys[2], (2, 1, 1), minval=-0.6, maxval=0.6)
        places = (jnp.mgrid[:SMALL, :SMALL] - 3.5) * scale
        places = places + jnp.stack([jnp.zeros_like(places[0]), slant * places[0]]) + move + 3.5
        image = jax.scipy.ndimage.map_coordinates(image, list(places), order=1)
        return image ** jax.random.uniform(keys[3], (), minval=0.5, maxval=2.0)

    return jax.vmap(one)(jax.random.split(key, images.shape[0]), images)


def digits() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The 1,797 digits that come with scikit-learn, [n, 8, 8] from 0 to 1, in random order."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    return (data.images[order] / 16).astype(np.float32), data.target[order].astype(np.int32)


def trained(steps: int = 300, held_out: int = 297) -> tuple[Network, float]:
    """The network, and the share of held-out digits that it reads."""
    images, labels = map(jnp.asarray, digits())
    network = Network(nnx.Rngs(0))
    optimizer = nnx.Optimizer(network, optax.adam(2e-3), wrt=nnx.Param)

    def loss_of(network: Network, images: jax.Array, labels: jax.Array) -> jax.Array:
        losses = optax.softmax_cross_entropy_with_integer_labels(network(images), labels)
        return losses.mean()

    @nnx.jit
    def step(network: Network, optimizer: nnx.Optimizer[Network], key: jax.Array) -> None:
        keys = jax.random.split(key)
        chosen = jax.random.randint(keys[0], (64,), held_out, labels.size)
        gradients = nnx.grad(loss_of)(network, varied(keys[1], images[chosen]), labels[chosen])
        optimizer.update(network, gradients)

    for key in jax.random.split(jax.random.key(1), steps):
        step(network, optimizer, key)
    guesses = network(images[:held_out]).argmax(-1)
    return network, float((guesses == labels[:held_out]).mean())

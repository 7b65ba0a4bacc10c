# SPDX-License-Identifier: Apache-2.0
"""Models of examples/dinov3 with weights far from their start, made without JAX."""

import jax
import numpy as np
from examples.dinov3 import build, weights


def randomised(config, dtype=np.float32):
    """Scales and biases of a fresh model hide mistakes: here they are about 1 and about 0."""
    shapes = weights.empty(lambda: build(config, key=jax.random.key(0)))
    generator = np.random.default_rng(0)

    def weight(name, shape):
        if name.endswith("periods"):
            return 100 ** (np.arange(shape[0]) / shape[0])
        noise = generator.normal(size=shape)
        if name.endswith("gamma") or (len(shape) == 1 and name.endswith("weight")):
            return 1 + 0.3 * noise
        return 0.3 * noise if len(shape) == 1 else noise / np.sqrt(np.prod(shape[1:]))

    arrays = {
        name: weight(name, leaf.shape).astype(dtype)
        for name, leaf in weights.named_arrays(shapes).items()
    }
    leaves, tree = jax.tree.flatten(shapes)
    given = iter(arrays.values())
    return jax.tree.unflatten(tree, [next(given) if weights.is_weight(x) else x for x in leaves])

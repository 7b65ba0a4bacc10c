# SPDX-License-Identifier: Apache-2.0
"""Writes what examples/cpp/run.cpp needs: a model, an input for it, and JAX's numbers.

python -m examples.cpp build/cpp
"""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

import jaxport


class Block(nnx.Module):
    """Attention over a sequence whose length is known when the model runs."""

    def __init__(self, width: int, rngs: nnx.Rngs):
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.project = nnx.Linear(width, 3 * width, rngs=rngs)
        self.out = nnx.Linear(width, width, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        query, key, value = jnp.split(self.project(self.norm(x)), 3, axis=-1)
        weights = jax.nn.softmax(query @ key.T / x.shape[-1] ** 0.5)
        return x + self.out(weights @ value)


def write(folder: Path, tokens: int = 5, width: int = 16) -> None:
    """model.onnx, x.bin and expected.txt, in the form that the program prints."""
    folder.mkdir(parents=True, exist_ok=True)
    block = Block(width, nnx.Rngs(0))
    jaxport.to_onnx(
        block,
        [("T", width)],
        opset=20,  # what ONNX Runtime 1.17 and later load
        output_names=["y"],
        return_mode="file",
        output_path=folder / "model.onnx",
    )
    x = np.random.default_rng(0).standard_normal((tokens, width), np.float32)
    x.tofile(folder / "x.bin")
    lines = [f"y [{tokens},{width}]", *(f"{number:.9g}" for number in np.ravel(block(x)))]
    (folder / "expected.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "build/cpp"))

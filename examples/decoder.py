# SPDX-License-Identifier: Apache-2.0
"""A decoder whose cache of keys and values goes in and out: prefill and decoding in ONNX Runtime.

One model serves both: the number of tokens is symbolic, the cache has a fixed length. The loop over
tokens stays outside, where a program wants it to stream them.

    python -m examples.decoder
"""

from __future__ import annotations

from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import onnxruntime
from flax import nnx

import jaxport

WORDS, WIDTH, HEADS, LAYERS, LENGTH = 256, 64, 4, 2, 128


class Block(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.norm1 = nnx.RMSNorm(WIDTH, rngs=rngs)
        self.project = nnx.Linear(WIDTH, 3 * WIDTH, use_bias=False, rngs=rngs)
        self.out = nnx.Linear(WIDTH, WIDTH, use_bias=False, rngs=rngs)
        self.norm2 = nnx.RMSNorm(WIDTH, rngs=rngs)
        self.up = nnx.Linear(WIDTH, 4 * WIDTH, rngs=rngs)
        self.down = nnx.Linear(4 * WIDTH, WIDTH, rngs=rngs)

    def __call__(
        self, x: jax.Array, cache: jax.Array, position: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """x [tokens, width]; the cache holds keys and values, [2, length, heads, width of one]."""
        tokens = x.shape[0]
        projected = self.project(self.norm1(x)).reshape(tokens, 3, HEADS, WIDTH // HEADS)
        query, new = projected[:, 0], jnp.moveaxis(projected[:, 1:], 1, 0)
        cache = jax.lax.dynamic_update_slice(cache, new, (0, position, 0, 0))
        here = position + jnp.arange(tokens)
        is_past = jnp.arange(LENGTH)[None, :] <= here[:, None]
        seen = jax.nn.dot_product_attention(
            query[None], cache[:1], cache[1:], mask=is_past[None, None]
        )
        x = x + self.out(seen.reshape(tokens, WIDTH))
        return x + self.down(jax.nn.gelu(self.up(self.norm2(x)))), cache


class Decoder(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.words = nnx.Embed(WORDS, WIDTH, rngs=rngs)
        self.positions = nnx.Embed(LENGTH, WIDTH, rngs=rngs)
        self.blocks = nnx.List([Block(rngs) for _ in range(LAYERS)])
        self.norm = nnx.RMSNorm(WIDTH, rngs=rngs)
        self.head = nnx.Linear(WIDTH, WORDS, use_bias=False, rngs=rngs)

    def __call__(
        self, tokens: jax.Array, cache: jax.Array, position: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """The word that follows the last token, and the cache with all tokens in it."""
        x = self.words(tokens) + self.positions(position + jnp.arange(tokens.shape[0]))
        caches = []
        for block, part in zip(self.blocks, cache, strict=True):
            x, part = block(x, part, position)
            caches.append(part)
        return jnp.argmax(self.head(self.norm(x[-1]))).astype(jnp.int32), jnp.stack(caches)


def empty_cache() -> np.ndarray[Any, Any]:
    return np.zeros((LAYERS, 2, LENGTH, HEADS, WIDTH // HEADS), np.float32)


def generate(step: Any, prompt: list[int], count: int) -> list[int]:
    """Prefill with the prompt, then one token a call. `step` is a session or the JAX function."""
    tokens, cache, position, words = prompt, empty_cache(), 0, []
    for _ in range(count):
        word, cache = step(np.asarray(tokens, np.int32), cache, np.asarray(position, np.int32))
        position += len(tokens)
        words.append(int(word))
        tokens = [words[-1]]
    return words


def in_onnxruntime(model: Any) -> Any:
    session = onnxruntime.InferenceSession(model.to_bytes(), providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    return lambda *values: session.run(None, dict(zip(names, values, strict=True)))


def main() -> dict[str, Any]:
    decoder = Decoder(nnx.Rngs(0))
    # JAX has to know that the tokens fit into the cache.
    tokens = jax.export.symbolic_shape("T", constraints=[f"T <= {LENGTH}"])
    model = jaxport.to_onnx(
        decoder,
        [
            jax.ShapeDtypeStruct(tokens, jnp.int32),
            jax.ShapeDtypeStruct(empty_cache().shape, jnp.float32),
            jax.ShapeDtypeStruct((), jnp.int32),
        ],
        return_mode="model",
    )
    prompt = [3, 14, 15, 92, 65]
    have = generate(in_onnxruntime(model), prompt, 40)
    want = generate(nnx.jit(decoder), prompt, 40)
    print(f"ONNX Runtime {have[:12]} …\nJAX          {want[:12]} …")
    print("the same 40 words" if have == want else "the words differ")
    return {"have": have, "want": want, "model": model}


if __name__ == "__main__":
    main()

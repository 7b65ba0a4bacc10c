# SPDX-License-Identifier: Apache-2.0
"""Latency of decoding steps with a cache of keys and values, in ONNX Runtime and in jax.jit.

Two layers of attention, whose caches are apart, [B, S, H, D] or [B, H, S, D], or packed into one
array for all layers, as in KerasHub. One core, one thread each; the candidates take turns.
"""

import os

# XLA reads this when JAX starts.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import itertools  # noqa: E402
from collections.abc import Callable  # noqa: E402
from typing import Any  # noqa: E402

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from forms_report import DECODE, decode_row, print_row  # noqa: E402
from jax import lax  # noqa: E402
from measure import in_turns, onnx_runner, save_result  # noqa: E402

import jaxport  # noqa: E402

LAYERS, HEADS, SIZE, ROUNDS = 2, 8, 64, 10
WIDTH = HEADS * SIZE
CACHES, TOKENS = (128, 1024, 4096), (1, 16)
LAYOUTS = ("BSHD", "BHSD", "packed")


def weights() -> np.ndarray:
    shape = (LAYERS, 4, WIDTH, WIDTH)
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32) / np.sqrt(
        np.float32(WIDTH)
    )


def attention(x, w, keys, values, position, time_axis):
    """One layer, with the caches it leaves; time_axis is 1 for BSHD and 2 for BHSD."""
    tokens, length = x.shape[1], keys.shape[time_axis]
    q, k, v = ((x @ w[i]).reshape(1, tokens, HEADS, SIZE) for i in range(3))
    if time_axis == 2:
        q, k, v = (part.transpose(0, 2, 1, 3) for part in (q, k, v))
    start = [0, 0, 0, 0]
    start[time_axis] = position
    keys, values = (lax.dynamic_update_slice(a, b, start) for a, b in ((keys, k), (values, v)))
    mask = jnp.arange(length)[None, :] <= position + jnp.arange(tokens)[:, None]
    letters = "bthd,bshd->bhts" if time_axis == 1 else "bhtd,bhsd->bhts"
    scores = jnp.einsum(letters, q, keys) / np.float32(np.sqrt(SIZE))
    scores = jax.nn.softmax(jnp.where(mask, scores, -1e9), axis=-1)
    letters = "bhts,bshd->bthd" if time_axis == 1 else "bhts,bhsd->bthd"
    out = jnp.einsum(letters, scores, values).reshape(1, tokens, WIDTH)
    return x + out @ w[3], keys, values


def step(layout: str) -> Callable[..., Any]:
    w = weights()
    time_axis = 2 if layout == "BHSD" else 1

    def apart(x, caches, position):
        left = []
        for i in range(LAYERS):
            x, *cache = attention(x, w[i], *caches[i], position, time_axis)
            left.append(cache)
        return x, left

    def packed(x, cache, position):
        left = []
        for i in range(LAYERS):
            layer = cache[:, i]
            x, keys, values = attention(x, w[i], layer[:, 0], layer[:, 1], position, time_axis)
            left.append(jnp.stack((keys, values), axis=1))
        return x, jnp.stack(left, axis=1)

    return packed if layout == "packed" else apart


def inputs_of(layout: str, length: int, tokens: int) -> list[Any]:
    rng = np.random.default_rng(1)
    shape = (1, HEADS, length, SIZE) if layout == "BHSD" else (1, length, HEADS, SIZE)
    x = rng.standard_normal((1, tokens, WIDTH), dtype=np.float32)
    if layout == "packed":
        caches = rng.standard_normal((1, LAYERS, 2, *shape[1:]), dtype=np.float32)
    else:
        caches = [[rng.standard_normal(shape, dtype=np.float32)] * 2 for _ in range(LAYERS)]
    return [x, caches, np.int32(length - tokens - 3)]


def measured(layout: str, length: int, tokens: int) -> dict[str, Any]:
    fn, inputs = step(layout), inputs_of(layout, length, tokens)
    model = jaxport.to_onnx(fn, inputs)
    jitted = jax.jit(fn)
    runners = {
        "jaxport": onnx_runner(model, *map(np.asarray, jax.tree.leaves(inputs))),
        "jit": lambda: jax.tree.map(np.asarray, jitted(*inputs))[0],
    }
    error = float(np.abs(runners["jaxport"]() - runners["jit"]()).max())
    timings = in_turns(runners, ROUNDS)
    return {
        "layout": layout,
        "cache": length,
        "tokens": tokens,
        "nodes": len(model.graph.node),
        "seconds": timings,
        "ratio_to_jit": timings["jaxport"]["best"] / timings["jit"]["best"],
        "largest_error": error,
    }


def main() -> None:
    steps = []
    print_row(DECODE)
    for layout, length, tokens in itertools.product(LAYOUTS, CACHES, TOKENS):
        steps.append(measured(layout, length, tokens))
        print_row(decode_row(steps[-1]))
    save_result("decode", {"layers": LAYERS, "steps": steps})


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Latency of layers under scan in ONNX Runtime: unrolled, as a Scan, and in jax.jit.

Eight layers of a transformer over stacked weights. One core, one thread each; the candidates take
turns.
"""

import os

# XLA reads this when JAX starts.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

from collections.abc import Callable  # noqa: E402
from typing import Any  # noqa: E402

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from forms_report import LAYERS as HEAD  # noqa: E402
from forms_report import layers_row, print_row  # noqa: E402
from measure import in_turns, onnx_runner, op_counts, save_result  # noqa: E402

import jaxport  # noqa: E402

LAYERS, HEADS, ROUNDS = 8, 4, 20
SIZES = ((256, 1), (256, 64), (512, 1), (512, 64))  # width, tokens


def stack(width: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = {
        "qkv": (width, 3 * width),
        "out": (width, width),
        "up": (width, 4 * width),
        "down": (4 * width, width),
    }
    return {
        name: rng.standard_normal((LAYERS, *shape), dtype=np.float32) / np.float32(width)
        for name, shape in shapes.items()
    }


def norm(x: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def layer(x: jax.Array, w: dict[str, jax.Array]) -> tuple[jax.Array, None]:
    batch, tokens, width = x.shape
    q, k, v = jnp.split((norm(x) @ w["qkv"]).reshape(batch, tokens, 3 * HEADS, -1), 3, axis=2)
    x = x + jax.nn.dot_product_attention(q, k, v).reshape(batch, tokens, width) @ w["out"]
    return x + jax.nn.gelu(norm(x) @ w["up"]) @ w["down"], None


def network(width: int) -> Callable[[jax.Array], jax.Array]:
    weights = stack(width)
    return lambda x: jax.lax.scan(layer, x, weights)[0]


def measured(width: int, tokens: int) -> dict[str, Any]:
    fn, shape = network(width), (1, tokens, width)
    x = np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
    models = {
        "unrolled": jaxport.to_onnx(fn, [shape], unroll_layers=LAYERS),
        "functions": jaxport.to_onnx(fn, [shape], unroll_layers=LAYERS, functions="auto"),
        "scan": jaxport.to_onnx(fn, [shape], unroll_layers=0),
    }
    jitted = jax.jit(fn)
    runners = {name: onnx_runner(model, x) for name, model in models.items()}
    runners["jit"] = lambda: np.asarray(jitted(x))
    expected = runners["jit"]()
    timings = in_turns(runners, ROUNDS)
    return {
        "width": width,
        "tokens": tokens,
        "nodes": {name: op_counts(model).total() for name, model in models.items()},
        "bytes": {name: model.ByteSize() for name, model in models.items()},
        "seconds": timings,
        "ratios": {
            f"to_{other}": timings["unrolled"]["best"] / timings[other]["best"]
            for other in ("functions", "scan", "jit")
        },
        "largest_error": {
            name: float(np.abs(run() - expected).max()) for name, run in runners.items()
        },
    }


def main() -> None:
    networks = []
    print_row(HEAD)
    for sizes in SIZES:
        networks.append(measured(*sizes))
        print_row(layers_row(networks[-1]))
    save_result("layers", {"layers": LAYERS, "networks": networks})


if __name__ == "__main__":
    main()

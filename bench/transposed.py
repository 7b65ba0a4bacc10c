# SPDX-License-Identifier: Apache-2.0
"""Latency of transposed convolutions in ONNX Runtime: ConvTranspose against zeros between pixels.

Each layer runs as jaxport exports it, as a convolution over the input with the zeros written into
it, and in jax.jit. One core, one thread each; the candidates take turns.
"""

import os

# XLA reads this when JAX starts.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

from collections.abc import Callable  # noqa: E402
from typing import Any  # noqa: E402

import jax  # noqa: E402
import numpy as np  # noqa: E402
from forms_report import TRANSPOSED, print_row, transposed_row  # noqa: E402
from jax import lax  # noqa: E402
from measure import in_turns, onnx_runner, save_result  # noqa: E402

import jaxport  # noqa: E402

ROUNDS = 30
NHWC = ("NHWC", "HWIO", "NHWC")
# channels, pixels a side, kernel, stride
SIZES = (
    (8, 32, 3, 2),
    (64, 16, 2, 2),
    (64, 16, 3, 2),
    (64, 64, 4, 2),
    (128, 32, 4, 2),
    (256, 16, 2, 2),
    (256, 16, 4, 2),
    (64, 16, 5, 3),
)


def kernel_of(channels: int, size: int) -> np.ndarray:
    shape = (size, size, channels, channels)
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32) / channels


def transposed(kernel: np.ndarray, stride: int) -> Callable[[jax.Array], jax.Array]:
    def layer(x: jax.Array) -> jax.Array:
        y = lax.conv_transpose(x, kernel, (stride, stride), "SAME", dimension_numbers=NHWC)
        return y + kernel[0, 0, 0]

    return layer


def over_zeros(kernel: np.ndarray, stride: int) -> Callable[[jax.Array], jax.Array]:
    """The same layer, with zeros that the compiler does not see through."""
    size = kernel.shape[0]
    total = size + stride - 2
    low = size - 1 if stride > size - 1 else (total + 1) // 2  # as "SAME" is defined
    padding = ((low, total - low),) * 2

    def layer(x: jax.Array) -> jax.Array:
        inside = (0, 0, stride - 1)
        wide = lax.pad(x, np.float32(0), ((0, 0, 0), inside, inside, (0, 0, 0)))
        y = lax.conv_general_dilated(wide, kernel, (1, 1), padding, dimension_numbers=NHWC)
        return y + kernel[0, 0, 0]

    return layer


def measured(channels: int, pixels: int, size: int, stride: int) -> dict[str, Any]:
    kernel, shape = kernel_of(channels, size), (1, pixels, pixels, channels)
    x = np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
    fn = transposed(kernel, stride)
    models = {
        "jaxport": jaxport.to_onnx(fn, [shape]),
        "zeros": jaxport.to_onnx(over_zeros(kernel, stride), [shape]),
    }
    jitted = jax.jit(fn)
    runners = {name: onnx_runner(model, x) for name, model in models.items()}
    runners["jit"] = lambda: np.asarray(jitted(x))
    expected = runners["jit"]()
    timings = in_turns(runners, ROUNDS)
    return {
        "channels": channels,
        "pixels": pixels,
        "kernel": size,
        "stride": stride,
        "nodes": {name: len(model.graph.node) for name, model in models.items()},
        "seconds": timings,
        "ratios": {
            f"to_{other}": timings["jaxport"]["best"] / timings[other]["best"]
            for other in ("zeros", "jit")
        },
        "largest_error": {
            name: float(np.abs(run() - expected).max()) for name, run in runners.items()
        },
    }


def main() -> None:
    layers = []
    print_row(TRANSPOSED)
    for sizes in SIZES:
        layers.append(measured(*sizes))
        print_row(transposed_row(layers[-1]))
    save_result("transposed", {"layers": layers})


if __name__ == "__main__":
    main()

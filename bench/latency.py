# SPDX-License-Identifier: Apache-2.0
"""Latency of ViT-B/16 in ONNX Runtime, as jaxport and as jax2onnx export it, and in jax.jit.

One core, one thread each. The candidates take turns, and each turn runs the model twice and times
the second, so that none pays for the caches of the one before it.
"""

import os

# XLA reads this when JAX starts.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

from collections.abc import Callable  # noqa: E402
from pathlib import Path  # noqa: E402

import jax  # noqa: E402
import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
from measure import SCRATCH, in_turns, save_result  # noqa: E402
from models import VIT_BASE_INPUT, vit_base  # noqa: E402

ROUNDS = 12


def onnx_runner(path: Path, image: np.ndarray) -> Callable[[], np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors only
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: image}
    return lambda: session.run(None, feed)[0]


def jit_runner(image: np.ndarray) -> Callable[[], np.ndarray]:
    model = vit_base()
    jitted = jax.jit(lambda x: model(x))
    return lambda: np.asarray(jitted(image))


def main() -> None:
    image = np.random.default_rng(0).standard_normal(VIT_BASE_INPUT, dtype=np.float32)
    runners = {
        "jaxport": onnx_runner(SCRATCH / "vit.jaxport.onnx", image),
        "jax2onnx": onnx_runner(SCRATCH / "vit.jax2onnx.onnx", image),
        "jit": jit_runner(image),
    }
    expected = runners["jit"]()
    errors = {name: float(np.abs(run() - expected).max()) for name, run in runners.items()}

    timings = in_turns(runners, ROUNDS)
    ratios = {
        f"{statistic}_to_{other}": timings["jaxport"][statistic] / timings[other][statistic]
        for other in ("jax2onnx", "jit")
        for statistic in ("best", "median")
    }
    save_result("latency", {"seconds": timings, "ratios": ratios, "largest_error": errors})
    for name, timing in timings.items():
        print(f"{name}: best {timing['best'] * 1e3:.0f} ms, median {timing['median'] * 1e3:.0f} ms")


if __name__ == "__main__":
    main()

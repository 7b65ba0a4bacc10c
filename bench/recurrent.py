# SPDX-License-Identifier: Apache-2.0
"""Latency of recurrent networks of 100 steps in ONNX Runtime, exported from scan.

Each cell runs as jaxport and as jax2onnx export it, as ONNX's own op built by hand, and in jax.jit.
One core, one thread each; the candidates take turns, and each turn times the second of two runs.
"""

import os

# XLA reads this when JAX starts.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

from collections.abc import Callable  # noqa: E402
from typing import Any  # noqa: E402

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import jax2onnx  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from measure import in_turns, onnx_runner, save_result  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

import jaxport  # noqa: E402

STEPS, ROUNDS = 100, 40
SIZES = ((1, 64, 128), (4, 64, 256))  # batch, features, units
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}  # in the order of ONNX

Weights = tuple[np.ndarray, np.ndarray, np.ndarray]


def weights(op: str, features: int, units: int) -> Weights:
    rng = np.random.default_rng(0)
    rows = GATES[op] * units
    shapes = ((rows, features), (rows, units), (rows,))
    return tuple(rng.standard_normal(shape, dtype=np.float32) / 8 for shape in shapes)


def network(op: str, values: Weights) -> Callable[[jax.Array], jax.Array]:
    """The formula of the op, as one would write it with scan."""
    w, r, b = values
    sigmoid, tanh = jax.nn.sigmoid, jnp.tanh

    def lstm(state, x):
        c, h = state
        i, o, f, g = jnp.split(x @ w.T + h @ r.T + b, 4, axis=-1)
        c = sigmoid(f) * c + sigmoid(i) * tanh(g)
        h = sigmoid(o) * tanh(c)
        return (c, h), h

    def gru(h, x):
        x_z, x_r, x_n = jnp.split(x @ w.T + b, 3, axis=-1)
        h_z, h_r, h_n = jnp.split(h @ r.T, 3, axis=-1)
        z = sigmoid(x_z + h_z)
        h = z * h + (1 - z) * tanh(x_n + sigmoid(x_r + h_r) * h_n)
        return h, h

    def rnn(h, x):
        h = tanh(x @ w.T + h @ r.T + b)
        return h, h

    def run(x: jax.Array) -> jax.Array:
        zero = jnp.zeros((x.shape[1], r.shape[1]))
        if op == "LSTM":
            return jax.lax.scan(lstm, (zero, zero), x)[1]
        return jax.lax.scan(gru if op == "GRU" else rnn, zero, x)[1]

    return run


def by_hand(op: str, values: Weights, shape: tuple[int, ...]) -> onnx.ModelProto:
    """The op, and a Squeeze of its dim for directions."""
    w, r, b = values
    units = r.shape[1]
    tensors = {"W": w[None], "R": r[None], "B": np.concatenate([b, 0 * b])[None]}
    attributes = {"linear_before_reset": 1} if op == "GRU" else {}
    graph = helper.make_graph(
        [
            helper.make_node(op, ["x", *tensors], ["y"], hidden_size=units, **attributes),
            helper.make_node("Squeeze", ["y", "axes"], ["out"]),
        ],
        op,
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("out", onnx.TensorProto.FLOAT, (*shape[:2], units))],
        [numpy_helper.from_array(value, name) for name, value in tensors.items()]
        + [numpy_helper.from_array(np.array([1]), "axes")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def measured(op: str, batch: int, features: int, units: int) -> dict[str, Any]:
    values = weights(op, features, units)
    fn, shape = network(op, values), (STEPS, batch, features)
    x = np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
    jitted = jax.jit(fn)
    runners = {
        "jaxport": onnx_runner(jaxport.to_onnx(fn, [shape]), x),
        "op": onnx_runner(by_hand(op, values, shape), x),
        "jax2onnx": onnx_runner(jax2onnx.to_onnx(fn, [shape]), x),
        "jit": lambda: np.asarray(jitted(x)),
    }
    expected = runners["jit"]()
    errors = {name: float(np.abs(run() - expected).max()) for name, run in runners.items()}
    timings = in_turns(runners, ROUNDS)
    ratios = {
        f"to_{other}": timings["jaxport"]["best"] / timings[other]["best"]
        for other in ("op", "jax2onnx", "jit")
    }
    return {
        "op": op,
        "batch": batch,
        "features": features,
        "units": units,
        "seconds": timings,
        "ratios": ratios,
        "largest_error": errors,
    }


def main() -> None:
    networks = [measured(op, *sizes) for op in GATES for sizes in SIZES]
    save_result("recurrent", {"steps": STEPS, "networks": networks})
    for result in networks:
        best = {name: f"{1e3 * taken['best']:.2f}" for name, taken in result["seconds"].items()}
        print(result["op"], result["batch"], result["features"], result["units"], best)


if __name__ == "__main__":
    main()

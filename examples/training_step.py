# SPDX-License-Identifier: Apache-2.0
"""A whole training step in one model: loss, gradients and Adam, trained by ONNX Runtime alone.

Parameters and the state of the optimizer go in and out; JAX is needed to make the model, not to run
it. The loss falls as it does in JAX.

    python -m examples.training_step
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnxruntime

import jaxport

Params = dict[str, jax.Array]
STEPS, RATE, BETA1, BETA2 = 50, 0.01, 0.9, 0.999


def initial_params(seed: int = 0, widths: tuple[int, ...] = (2, 32, 32, 1)) -> Params:
    keys = jax.random.split(jax.random.key(seed), len(widths) - 1)
    params: Params = {}
    for i, (key, n, m) in enumerate(zip(keys, widths[:-1], widths[1:], strict=True)):
        params[f"weight{i}"] = jax.random.normal(key, (n, m)) * (2 / n) ** 0.5
        params[f"bias{i}"] = jnp.zeros(m)
    return params


def network(params: Params, x: jax.Array) -> jax.Array:
    count = len(params) // 2
    for i in range(count):
        x = x @ params[f"weight{i}"] + params[f"bias{i}"]
        x = jax.nn.gelu(x) if i + 1 < count else x
    return x[:, 0]


def loss_of(params: Params, x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.mean((network(params, x) - y) ** 2)


def training_step(
    params: Params, mean: Params, square: Params, step: jax.Array, x: jax.Array, y: jax.Array
) -> tuple[Params, Params, Params, jax.Array, jax.Array]:
    """One step of Adam."""
    loss, gradients = jax.value_and_grad(loss_of)(params, x, y)
    step = step + 1
    mean = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, mean, gradients)
    square = jax.tree.map(lambda s, g: BETA2 * s + (1 - BETA2) * g * g, square, gradients)

    def moved(p: jax.Array, m: jax.Array, s: jax.Array) -> jax.Array:
        return p - RATE * (m / (1 - BETA1**step)) / (jnp.sqrt(s / (1 - BETA2**step)) + 1e-8)

    return jax.tree.map(moved, params, mean, square), mean, square, step, loss


def batch(seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Points of the plane and a function of them that is to be learnt."""
    x = np.random.default_rng(seed).uniform(-2, 2, (64, 2)).astype(np.float32)
    return x, np.sin(x[:, 0] * 2) * x[:, 1]


def train(step: Any, state: list[Any]) -> list[float]:
    """`step` takes and gives arrays in the order of the leaves; the loss comes last."""
    losses = []
    for i in range(STEPS):
        *state, loss = step(*state, *batch(i))
        losses.append(float(loss))
    return losses


def main() -> dict[str, Any]:
    params = initial_params()
    zeros = jax.tree.map(jnp.zeros_like, params)
    arguments = (params, zeros, zeros, jnp.float32(0), *batch(0))
    structs = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), arguments)
    model = jaxport.to_onnx(training_step, list(structs), return_mode="model")
    session = onnxruntime.InferenceSession(model.to_bytes(), providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    structure = jax.tree.structure(arguments)

    def in_onnxruntime(*leaves: Any) -> Any:
        return session.run(None, dict(zip(names, map(np.asarray, leaves), strict=True)))

    def in_jax(*leaves: Any) -> Any:
        return jax.tree.leaves(jax.jit(training_step)(*jax.tree.unflatten(structure, leaves)))

    state = jax.tree.leaves(arguments[:-2])
    have, want = train(in_onnxruntime, state), train(in_jax, state)
    print("step   ONNX Runtime   JAX")
    for i in range(0, STEPS, 7):
        print(f"{i:4}   {have[i]:12.6f}   {want[i]:.6f}")
    return {"have": have, "want": want, "model": model}


if __name__ == "__main__":
    main()

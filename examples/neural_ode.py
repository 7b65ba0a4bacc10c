# SPDX-License-Identifier: Apache-2.0
"""A neural ODE: the adaptive solver runs inside of the model, and its step size with it.

The right-hand side is a small network that is fitted to a predator-prey system here; the export
takes an initial state and the times at which the solution is wanted.

    python -m examples.neural_ode
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnxruntime
from jax.experimental.ode import odeint

import jaxport

from .training_step import Params, initial_params, network


def predators_and_prey(state: jax.Array) -> jax.Array:
    x, y = state[..., 0], state[..., 1]
    return jnp.stack([1.1 * x - 0.4 * x * y, 0.1 * x * y - 0.4 * y], axis=-1)


def speed(params: list[Params], state: jax.Array) -> jax.Array:
    return jnp.stack([network(p, state[None])[0] for p in params])


def fitted(steps: int = 600) -> list[Params]:
    """Both networks by gradient descent on the derivatives at random states."""
    params = [initial_params(seed, (2, 32, 1)) for seed in range(2)]

    def loss_of(params: list[Params], key: jax.Array) -> jax.Array:
        states = jax.random.uniform(key, (128, 2), minval=0.5, maxval=6.0)
        return jnp.mean(
            (jax.vmap(lambda s: speed(params, s))(states) - predators_and_prey(states)) ** 2
        )

    def step(params: list[Params], key: jax.Array) -> tuple[list[Params], None]:
        gradients = jax.grad(loss_of)(params, key)
        return jax.tree.map(lambda p, g: p - 0.005 * g, params, gradients), None

    keys = jax.random.split(jax.random.key(1), steps)
    return jax.jit(lambda p: jax.lax.scan(step, p, keys)[0])(params)


def main() -> dict[str, Any]:
    params = fitted()

    def solution(start: jax.Array, times: jax.Array) -> jax.Array:
        return odeint(lambda state, _: speed(params, state), start, times, rtol=1e-5, atol=1e-5)

    model = jaxport.to_onnx(solution, [(2,), ("T",)], return_mode="model")
    session = onnxruntime.InferenceSession(model.to_bytes(), providers=["CPUExecutionProvider"])
    start, times = np.asarray([3.0, 2.0], np.float32), np.linspace(0, 4, 9, dtype=np.float32)
    names = [value.name for value in session.get_inputs()]
    [have] = session.run(None, dict(zip(names, (start, times), strict=True)))
    want = np.asarray(solution(jnp.asarray(start), jnp.asarray(times)))
    print("time   ONNX Runtime        JAX")
    for time, a, b in zip(times, have, want, strict=True):
        print(f"{time:4.1f}   {a[0]:8.5f} {a[1]:8.5f}   {b[0]:8.5f} {b[1]:8.5f}")
    return {"have": have, "want": want, "model": model}


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""A diffusion sampler with its loop in the model: from noise to points on a spiral in one call.

The denoiser is trained here for a few seconds; sampling (DDIM, 20 steps, under `lax.scan`) is
what is exported. The batch is symbolic.

    python -m examples.diffusion
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnxruntime

import jaxport

from .training_step import Params, initial_params, network

TIMES = jnp.linspace(1.0, 0.02, 20)


def signal_and_noise(time: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jnp.cos(time * jnp.pi / 2), jnp.sin(time * jnp.pi / 2)


def predicted_noise(params: list[Params], x: jax.Array, time: jax.Array) -> jax.Array:
    """One small network for each coordinate."""
    features = jnp.concatenate([x, jnp.broadcast_to(time, x[:, :1].shape)], axis=1)
    return jnp.stack([network(p, features) for p in params], axis=1)


def sample(params: list[Params], noise: jax.Array) -> jax.Array:
    def denoised(x: jax.Array, times: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        time, following = times
        noise = predicted_noise(params, x, time)
        signal, spread = signal_and_noise(time)
        clean = jnp.clip((x - spread * noise) / jnp.maximum(signal, 0.05), -1.5, 1.5)
        signal, spread = signal_and_noise(following)
        return signal * clean + spread * noise, None

    following = jnp.append(TIMES[1:], 0.0)
    return jax.lax.scan(denoised, noise, (TIMES, following))[0]


def spiral(key: jax.Array, count: int) -> jax.Array:
    angle = 3 * jnp.pi * jnp.sqrt(jax.random.uniform(key, (count,)))
    return jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1) * angle[:, None] / (3 * jnp.pi)


def trained(steps: int = 400) -> list[Params]:
    """Gradient descent with momentum on the error of the predicted noise."""
    params = [initial_params(seed, (3, 64, 64, 1)) for seed in range(2)]

    def loss_of(params: list[Params], key: jax.Array) -> jax.Array:
        keys = jax.random.split(key, 3)
        x, noise = spiral(keys[0], 256), jax.random.normal(keys[1], (256, 2))
        time = jax.random.uniform(keys[2], (256, 1))
        signal, spread = signal_and_noise(time)
        return jnp.mean((predicted_noise(params, signal * x + spread * noise, time) - noise) ** 2)

    def step(state: Any, key: jax.Array) -> tuple[Any, jax.Array]:
        params, speed = state
        loss, gradients = jax.value_and_grad(loss_of)(params, key)
        speed = jax.tree.map(lambda v, g: 0.9 * v - 0.01 * g, speed, gradients)
        return (jax.tree.map(jnp.add, params, speed), speed), loss

    start = (params, jax.tree.map(jnp.zeros_like, params))
    keys = jax.random.split(jax.random.key(7), steps)
    (params, _), _ = jax.jit(lambda s: jax.lax.scan(step, s, keys))(start)
    return params


def main() -> dict[str, Any]:
    params = trained()
    model = jaxport.to_onnx(lambda noise: sample(params, noise), [("B", 2)], return_mode="model")
    session = onnxruntime.InferenceSession(model.to_bytes(), providers=["CPUExecutionProvider"])
    noise = np.random.default_rng(0).normal(size=(500, 2)).astype(np.float32)
    [have] = session.run(None, {session.get_inputs()[0].name: noise})
    want = np.asarray(sample(params, jnp.asarray(noise)))
    print(f"500 points in one call, {np.abs(have - want).max():.1e} from JAX")
    print(picture(have))
    return {"have": have, "want": want, "model": model}


def picture(points: np.ndarray[Any, Any], size: int = 21) -> str:
    """Points of the square from -1 to 1 as text."""
    counts, _, _ = np.histogram2d(points[:, 1], points[:, 0], size, [[-1.2, 1.2], [-1.2, 1.2]])
    return "\n".join("".join(" .:*#"[min(int(n), 4)] * 2 for n in row) for row in counts[::-1])


if __name__ == "__main__":
    main()

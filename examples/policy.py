# SPDX-License-Identifier: Apache-2.0
"""A policy for a world of gymnax: trained in JAX, played by ONNX Runtime, with the same return.

Evolution strategies train it in a few seconds. What is exported is observation -> action; the world
stays where it is.

    pip install gymnax
    python -m examples.policy
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnax
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import onnxruntime

import jaxport

from .training_step import Params, initial_params

WORLD, RULES = gymnax.make("CartPole-v1")
LONGEST = 300  # steps of an episode in training


def policy(params: Params, observation: jax.Array) -> jax.Array:
    """1 pushes the cart to the right, 0 to the left."""
    hidden = jnp.tanh(observation @ params["weight0"] + params["bias0"])
    return ((hidden @ params["weight1"] + params["bias1"])[0] > 0).astype(jnp.int32)


def return_of_episode(params: Params, key: jax.Array) -> jax.Array:
    observation, state = WORLD.reset_env(key, RULES)

    def step(carry: Any, _: None) -> tuple[Any, jax.Array]:
        observation, state, lives = carry
        action = policy(params, observation)
        observation, state, _, ended, _ = WORLD.step_env(key, state, action, RULES)
        lives &= ~ended
        return (observation, state, lives), lives

    start = (observation, jax.tree.map(jnp.asarray, state), jnp.bool_(True))
    return jax.lax.scan(step, start, None, LONGEST)[1].sum()


def trained(generations: int = 25, crowd: int = 64) -> Params:
    """Evolution strategies: towards the random changes with which the pole stands longer."""
    flat, unflatten = jax.flatten_util.ravel_pytree(initial_params(0, (4, 16, 1)))

    def score(flat: jax.Array, keys: jax.Array) -> jax.Array:
        return jax.vmap(lambda key: return_of_episode(unflatten(flat), key))(keys).mean()

    def generation(flat: jax.Array, key: jax.Array) -> tuple[jax.Array, None]:
        changes = jax.random.normal(key, (crowd, flat.size)) * 0.3
        keys = jax.random.split(key, 4)
        scores = jax.vmap(lambda c: score(flat + c, keys))(jnp.concatenate([changes, -changes]))
        ranks = jnp.argsort(jnp.argsort(scores)) / scores.size - 0.5
        gain = ranks[:crowd] - ranks[crowd:]
        return flat + (gain @ changes) / crowd * 6, None

    keys = jax.random.split(jax.random.key(3), generations)
    return unflatten(jax.jit(lambda f: jax.lax.scan(generation, f, keys)[0])(flat))


def play(act: Callable[[Any], Any], key: jax.Array) -> float:
    """The return of one episode, until the world ends it."""
    observation, state = WORLD.reset(key, RULES)
    total, is_over = 0.0, False
    while not is_over:
        observation, state, reward, ended, truncated, _ = WORLD.step(
            key, state, act(observation), RULES
        )
        total, is_over = total + float(reward), bool(ended | truncated)
    return total


def main() -> dict[str, Any]:
    params = trained()
    model = jaxport.to_onnx(lambda obs: policy(params, obs), [(4,)], return_mode="model")
    session = onnxruntime.InferenceSession(model.to_bytes(), providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name

    def in_onnxruntime(observation: Any) -> Any:
        return session.run(None, {name: np.asarray(observation)})[0]

    keys = jax.random.split(jax.random.key(0), 3)
    have = [play(in_onnxruntime, key) for key in keys]
    want = [play(jax.jit(lambda obs: policy(params, obs)), key) for key in keys]
    print(f"returns of three episodes: {have} in ONNX Runtime, {want} in JAX")
    return {"have": have, "want": want, "model": model}


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""A policy and the physics it acts in, both as models: a pole is balanced without JAX.

The policy is trained here by evolution strategies, a few seconds. Then two models are exported,
observation -> action and (state, action) -> state, and ONNX Runtime plays an episode with them; it
lasts as long as in JAX.

    python -m examples.policy
"""

from __future__ import annotations

from typing import Any

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import onnxruntime

import jaxport

from .training_step import Params, initial_params

GRAVITY, CART, POLE, HALF_LENGTH, FORCE, STEP = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
LONGEST = 300  # steps of an episode


def physics(state: jax.Array, action: jax.Array) -> jax.Array:
    """One step of the cart with its pole; state is position, speed, angle and angular speed."""
    _, speed, angle, turn = state
    force = jnp.where(action == 1, FORCE, -FORCE)
    pushed = (force + POLE * HALF_LENGTH * turn**2 * jnp.sin(angle)) / (CART + POLE)
    turn_change = (GRAVITY * jnp.sin(angle) - jnp.cos(angle) * pushed) / (
        HALF_LENGTH * (4 / 3 - POLE * jnp.cos(angle) ** 2 / (CART + POLE))
    )
    speed_change = pushed - POLE * HALF_LENGTH * turn_change * jnp.cos(angle) / (CART + POLE)
    return state + STEP * jnp.stack([speed, speed_change, turn, turn_change])


def policy(params: Params, state: jax.Array) -> jax.Array:
    hidden = jnp.tanh(state @ params["weight0"] + params["bias0"])
    return (hidden @ params["weight1"] + params["bias1"])[0] > 0


def is_up(state: Any) -> Any:
    return (abs(state[0]) < 2.4) & (abs(state[2]) < 0.21)


def length_of_episode(params: Params, start: jax.Array) -> jax.Array:
    def step(carry: tuple[jax.Array, jax.Array], _: None) -> tuple[Any, jax.Array]:
        state, lives = carry
        state = physics(state, policy(params, state))
        lives &= is_up(state)
        return (state, lives), lives

    return jax.lax.scan(step, (start, jnp.bool_(True)), None, LONGEST)[1].sum()


def trained(generations: int = 25, crowd: int = 64) -> Params:
    """Evolution strategies: towards the random changes with which the pole stands longer."""
    params = initial_params(0, (4, 16, 1))
    flat, unflatten = jax.flatten_util.ravel_pytree(params)

    def score(flat: jax.Array, starts: jax.Array) -> jax.Array:
        return jax.vmap(lambda s: length_of_episode(unflatten(flat), s))(starts).mean()

    def generation(flat: jax.Array, key: jax.Array) -> tuple[jax.Array, None]:
        changes = jax.random.normal(key, (crowd, flat.size)) * 0.3
        starts = jax.random.uniform(key, (4, 4), minval=-0.05, maxval=0.05)
        scores = jax.vmap(lambda c: score(flat + c, starts))(jnp.concatenate([changes, -changes]))
        ranks = jnp.argsort(jnp.argsort(scores)) / scores.size - 0.5
        gain = ranks[:crowd] - ranks[crowd:]
        return flat + (gain @ changes) / crowd * 6, None

    keys = jax.random.split(jax.random.key(3), generations)
    return unflatten(jax.jit(lambda f: jax.lax.scan(generation, f, keys)[0])(flat))


def main() -> dict[str, Any]:
    params = trained()
    acts = jaxport.to_onnx(lambda s: policy(params, s), [(4,)], return_mode="model")
    moves = jaxport.to_onnx(
        physics,
        [(4,), jax.ShapeDtypeStruct((), bool)],
        return_mode="model",
    )
    start = np.asarray([0.02, -0.01, 0.03, 0.01], np.float32)
    have = play(*map(_session, (acts, moves)), start)
    want = int(length_of_episode(params, jnp.asarray(start)))
    print(f"the pole stands for {have} steps in ONNX Runtime, {want} in JAX (of {LONGEST})")
    return {"have": have, "want": want, "model": acts}


def play(acts: Any, moves: Any, state: np.ndarray[Any, Any]) -> int:
    """How many steps the pole stands."""
    for step in range(LONGEST):
        [action] = acts(state)
        [state] = moves(state, action)
        if not is_up(state):
            return step
    return LONGEST


def _session(model: Any) -> Any:
    session = onnxruntime.InferenceSession(model.to_bytes(), providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    return lambda *values: session.run(None, dict(zip(names, values, strict=True)))


if __name__ == "__main__":
    main()

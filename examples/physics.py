# SPDX-License-Identifier: Apache-2.0
"""A step of physics as a model: a chain of masses falls over a ball, moved by ONNX Runtime alone.

Position-based dynamics: every step predicts where the masses go, then a loop pulls neighbours back
to their distance and pushes masses out of the ball and the floor. State goes in and out.

    python -m examples.physics
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnxruntime

import jaxport

MASSES, LINK, STEP, ROUNDS = 24, 0.1, 1 / 60, 20
GRAVITY, FRICTION = np.asarray([0, -9.8], np.float32), 0.02
BALL, RADIUS = np.asarray([0.1, 0.5], np.float32), 0.35


def linked(places: jax.Array) -> jax.Array:
    """Neighbours are moved half of the way to the length of their link, each."""
    apart = places[1:] - places[:-1]
    length = jnp.linalg.norm(apart, axis=-1, keepdims=True)
    pull = 0.25 * (length - LINK) / jnp.maximum(length, 1e-6) * apart
    return places.at[:-1].add(pull).at[1:].add(-pull)


def outside(places: jax.Array) -> jax.Array:
    """No mass is inside of the ball or below the floor."""
    from_ball = places - BALL
    far = jnp.maximum(jnp.linalg.norm(from_ball, axis=-1, keepdims=True), 1e-6)
    places = jnp.where(far < RADIUS, BALL + from_ball * RADIUS / far, places)
    return places.at[:, 1].max(0.0)


def step(places: jax.Array, speeds: jax.Array, wind: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The next places and speeds, [masses, 2] both; the wind is an acceleration."""
    speeds = (speeds + STEP * (GRAVITY + wind)) * (1 - FRICTION)
    moved = jax.lax.fori_loop(
        0, ROUNDS, lambda _, p: outside(linked(p)), outside(places + STEP * speeds)
    )
    return moved, (moved - places) / STEP


def simulated(step: Any, steps: int = 90) -> np.ndarray[Any, Any]:
    """All places [steps, masses, 2] of a chain that starts above the ball, in a rising wind."""
    across = LINK * (np.arange(MASSES) - MASSES / 2)
    places = np.stack([across, np.full(MASSES, 1.2)], 1).astype(np.float32)
    speeds, seen = np.zeros_like(places), []
    for i in range(steps):
        wind = np.asarray([0.02 * i, 0], np.float32)
        places, speeds = step(places, speeds, wind)
        seen.append(np.asarray(places))
    return np.stack(seen)


def main() -> dict[str, Any]:
    model = jaxport.to_onnx(step, [(MASSES, 2), (MASSES, 2), (2,)], return_mode="model")
    session = onnxruntime.InferenceSession(model.to_bytes(), providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]

    def in_onnxruntime(*values: Any) -> Any:
        return session.run(None, dict(zip(names, map(np.asarray, values), strict=True)))

    have, want = simulated(in_onnxruntime), simulated(jax.jit(step))
    print(picture(have[-1]))
    print(f"90 steps in ONNX Runtime, at most {np.abs(have - want).max():.1e} from JAX")
    return {"have": have, "want": want, "model": model}


def picture(places: np.ndarray[Any, Any], size: int = 24) -> str:
    """The chain (o) and the ball (.) as text."""
    rows = []
    for y in np.linspace(1.3, 0, size):
        at = np.stack([np.linspace(-1.4, 1.4, 2 * size), np.full(2 * size, y)], 1)
        is_ball = np.linalg.norm(at - BALL, axis=-1) < RADIUS
        is_mass = (np.abs(at[:, None] - places[None]) < 0.03).all(-1).any(-1)
        rows.append("".join(np.where(is_mass, "o", np.where(is_ball, ".", " "))))
    return "\n".join(rows)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Control flow: scans, loops, maps, branches."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from operations.operation import family, normal, uniform

RECURRENT = normal(64, 64) / np.float32(8)
MATRIX = normal(32, 32, seed=1) / np.float32(6)


def decay(x):
    """A scan of small steps: a leaky integrator with a reduction as its output."""

    def step(h, a):
        h = 0.9 * h + a
        return h, h.sum()

    return lax.scan(step, jnp.zeros(64), x)


def counter(x):
    """A scan of small steps without inputs: Euler's method for a pendulum."""

    def step(state, _):
        angle, speed = state
        return (angle + 0.01 * speed, speed - 0.01 * jnp.sin(angle)), angle

    return lax.scan(step, (x, jnp.zeros_like(x)), None, length=200)


def gated(a, b):
    def step(h, ab):
        h = ab[0] * h + ab[1]
        return h, h

    return lax.scan(step, jnp.zeros(128), (a, b))[1]


def tanh_cell(x):
    def step(h, a):
        h = jnp.tanh(a + h @ RECURRENT)
        return h, h

    return lax.scan(step, jnp.zeros(64), x)[1]


def trips(x):
    def step(state):
        i, y = state
        return i + 1, jnp.tanh(y @ MATRIX)

    return lax.while_loop(lambda state: state[0] < 30, step, (0, x))[1]


def converges(x):
    """Newton's method until the step is small: the number of trips depends on the numbers."""

    def step(state):
        y, _ = state
        new = 0.5 * (y + x / y)
        return new, jnp.abs(new - y).max()

    return lax.while_loop(lambda state: state[1] > 1e-3, step, (x, jnp.float32(1)))[0]


def euler(x):
    return lax.fori_loop(0, 100, lambda _, y: y + 0.01 * (jnp.sin(y) - y), x)


def rows(x):
    return lax.map(lambda row: jnp.tanh(MATRIX @ row).sum(), x)


def branch(x):
    return lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x)


def linear(x, y):
    return x[0] * y[0], y[0] * x[1] + y[1]


OPERATIONS = (
    *family(
        "control flow",
        ("scan, 200 steps of 64", decay, (normal(200, 64),)),
        ("scan without inputs, 200 steps", counter, (normal(64),)),
        ("gated scan, 256x128", gated, (uniform(256, 128), normal(256, 128))),
        ("tanh cell, 100 steps of 64", tanh_cell, (normal(100, 64),)),
        ("while, 30 trips", trips, (normal(4, 32),)),
        ("while until it converges", converges, (uniform(64, lo=1, hi=9),)),
        ("fori, 100 steps of 64", euler, (normal(64),)),
        ("lax.map, 64 rows", rows, (normal(64, 32),)),
        ("cond, 64x64", branch, (normal(64, 64),)),
        (
            "associative_scan, 256x128",
            lambda a, b: lax.associative_scan(linear, (a, b)),
            (uniform(256, 128), normal(256, 128)),
        ),
        ("cumulative products, 256x128", lambda x: jnp.cumprod(x, 0), (uniform(256, 128, hi=2),)),
    ),
)

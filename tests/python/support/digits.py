# SPDX-License-Identifier: Apache-2.0
"""How many digits functions of one variable keep: the table "Digits" of docs/trust.md.

`python -m support.digits` prints it. JAX in 64 bits is the judge; results that are not normal in
32 bits do not count.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxport
from jaxport import _jax, runtime
from support.cases import load, run_jax


def grid() -> np.ndarray:
    """Numbers of both signs: each decade from 1e-37 on, and evenly from 0.1 to 87."""
    sizes = np.concatenate([10.0 ** np.linspace(-37, -1, 400), np.linspace(0.1, 87, 4000)])
    return np.concatenate([-sizes[::-1], sizes]).astype(np.float32)


@dataclasses.dataclass(frozen=True)
class Digits:
    """A function and the largest errors that its model may have.

    relative: over all of the grid where the result is normal; 1 where no digit is right.
    absolute: divided by max(1, |x|).
    note: what the model does, and where the relative error is.
    """

    name: str
    fn: Callable[[Any], Any]
    relative: float
    absolute: float
    note: str


@dataclasses.dataclass(frozen=True)
class Measured:
    relative: float
    where: float
    absolute: float


def measure(fn: Callable[[Any], Any], have: np.ndarray, x: np.ndarray) -> Measured:
    with _jax.double_precision(True):
        (want,) = run_jax(fn, [x.astype(np.float64)])
    info = np.finfo(np.float32)
    is_normal = (np.abs(want) >= info.tiny) & (np.abs(want) <= info.max)
    error = np.where(is_normal, np.abs(have.astype(np.float64) - want), 0)
    relative = error / np.where(is_normal, np.abs(want), 1)
    worst = int(np.argmax(relative))
    scaled = error / np.maximum(1, np.abs(x))
    return Measured(float(relative[worst]), float(x[worst]), float(scaled.max()))


def measure_model(fn: Callable[[Any], Any]) -> Measured:
    x = grid()
    session = load(jaxport.to_onnx(fn, [x.shape]), 23)
    (have,) = runtime.run(session, [x]).values()
    return measure(fn, have, x)


def measure_jax(fn: Callable[[Any], Any]) -> Measured:
    x = grid()
    return measure(fn, run_jax(fn, [x])[0], x)


def rows_of(fn: Callable[..., Any]) -> Callable[[Any], Any]:
    """A function of rows, at rows of x, x / 2 and 1."""
    return lambda x: fn(jnp.stack([x, x / 2, jnp.ones_like(x)], -1), -1)


GOOD = "few units in the last place"
DIGITS = [
    Digits("exp", lambda x: jnp.exp(jnp.minimum(x, 2)), 5e-7, 1e-6, GOOD),
    Digits("expm1", lambda x: jnp.expm1(jnp.minimum(x, 2)), 5e-6, 2e-6, GOOD),
    Digits("log", lambda x: jnp.log(jnp.abs(x)), 1e-6, 1e-5, GOOD),
    Digits("log1p", lambda x: jnp.log1p(jnp.abs(x)), 1e-6, 1e-6, GOOD),
    Digits("tanh", jnp.tanh, 5e-6, 5e-7, GOOD),
    Digits("erf", jax.scipy.special.erf, 5e-7, 5e-7, GOOD),
    Digits("softplus", jax.nn.softplus, 1e-6, 5e-7, GOOD),
    Digits("log_sigmoid", jax.nn.log_sigmoid, 1e-6, 5e-7, GOOD),
    Digits("mish", jax.nn.mish, 1e-6, 5e-7, GOOD),
    Digits("elu", jax.nn.elu, 5e-6, 5e-7, "composed with `Tanh`; the op `Elu` is 0 above -6e-8"),
    Digits("celu", lambda x: jax.nn.celu(x, 2.0), 2e-5, 1e-6, "composed with `Tanh`, as `elu`"),
    Digits("selu", jax.nn.selu, 5e-6, 1e-6, "composed with `Tanh`, as `elu`"),
    Digits("sigmoid", jax.nn.sigmoid, 4.0, 2e-7, "`Sigmoid`: x below -6; 0 below -18"),
    Digits(
        "log(sigmoid)",
        lambda x: jnp.log(jax.nn.sigmoid(jnp.minimum(x, 8))),
        1e-3,
        5e-7,
        "1 / (1 + exp(-x)); the result itself cancels near 0",
    ),
    Digits("silu", jax.nn.silu, 4.0, 2e-7, "`Sigmoid` and `Mul`, as `sigmoid`"),
    Digits(
        "gelu",
        lambda x: jax.nn.gelu(x, approximate=False),
        1.0,
        5e-7,
        "`Gelu` adds 1 and erf: x below -3",
    ),
    Digits("gelu, tanh", jax.nn.gelu, 4.0, 5e-7, "`Gelu`: x below -2.5, as in JAX"),
    Digits("logsumexp", rows_of(jax.nn.logsumexp), 1e-6, 5e-7, GOOD),
    Digits("log_softmax", lambda x: rows_of(jax.nn.log_softmax)(x)[..., 1], 1e-5, 1e-6, GOOD),
]


def main() -> None:
    print("| function | relative | at x | absolute | JAX, relative | the model |")
    print("|---|---|---|---|---|---|")
    for row in DIGITS:
        ours, jax_s = measure_model(row.fn), measure_jax(row.fn)
        print(
            f"| `{row.name}` | {ours.relative:.0e} | {ours.where:.2g} | {ours.absolute:.0e} "
            f"| {jax_s.relative:.0e} | {row.note} |"
        )


if __name__ == "__main__":
    main()

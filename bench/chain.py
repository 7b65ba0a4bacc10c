# SPDX-License-Identifier: Apache-2.0
"""How the time grows with the number of equations, on chains in which each needs the one before.

The command `jaxport convert` reads, compiles and writes programs of up to 100,000 equations; its
processor time counts, which other processes disturb least. The time of a program of one block is
taken off, because starting a process is no part of the growth. Of functions traced by JAX only the
compile time counts.
"""

import math
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from measure import SCRATCH, save_result

import jaxport

ROUNDS = 3
TOOL = Path(sys.executable).with_name("jaxport")


def pointwise_block(x: str, y: str) -> Iterator[str]:
    yield f"%{y}.t: f32[8,64] = tanh %{x}"
    yield f"%{y}.m: f32[8,64] = mul %{y}.t %scale"
    yield f"%{y}.s: f32[8,64] = sin %{y}.m"
    yield f"%{y}: f32[8,64] = add %{y}.s %scale"


def softmax_block(x: str, y: str) -> Iterator[str]:
    """x + softmax(x), as JAX spells it: rules have something to raise."""
    yield f"%{y}.max: f32[8] = reduce_max %{x} {{axes = (1)}}"
    yield f"%{y}.b: f32[8,64] = broadcast_in_dim %{y}.max {BROADCAST}"
    yield f"%{y}.d: f32[8,64] = sub %{x} %{y}.b"
    yield f"%{y}.e: f32[8,64] = exp %{y}.d"
    yield f"%{y}.sum: f32[8] = reduce_sum %{y}.e {{axes = (1)}}"
    yield f"%{y}.n: f32[8,64] = broadcast_in_dim %{y}.sum {BROADCAST}"
    yield f"%{y}.q: f32[8,64] = div %{y}.e %{y}.n"
    yield f"%{y}: f32[8,64] = add %{y}.q %{x}"


BROADCAST = "{shape = (8, 64), broadcast_dimensions = (0)}"
Block = Callable[[str, str], Iterator[str]]


def program(block: Block, equations: int) -> str:
    """A .jir program of whole blocks, with at least that many equations."""
    per_block = len(list(block("x", "y")))
    names = ["x", *(f"v{i}" for i in range(math.ceil(equations / per_block)))]
    lines = ["func @chain(%x: f32[8,64], %scale: f32[8,64]) {"]
    for x, y in pairwise(names):
        lines += (f"  {line}" for line in block(x, y))
    return "\n".join([*lines, f"  return %{names[-1]}", "}\n"])


def processor_seconds(*command: str | Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def convert_seconds(block: Block, equations: int) -> float:
    source, target = SCRATCH / "chain.jir", SCRATCH / "chain.onnx"
    source.write_text(program(block, equations))
    best = min(processor_seconds(TOOL, "convert", source, "-o", target) for _ in range(ROUNDS))
    source.unlink()
    target.unlink()
    return best


def blocks_of_mlp(equations: int) -> Callable[[jax.Array], jax.Array]:
    """A function with about that many equations: norm, matrix product, activation, residual."""
    per_block = len(jax.make_jaxpr(mlp_block)(jnp.zeros((8, 64))).eqns)

    def fn(x: jax.Array) -> jax.Array:
        for _ in range(equations // per_block):
            x = mlp_block(x)
        return x

    return fn


def mlp_block(x: jax.Array) -> jax.Array:
    mean = x.mean(axis=-1, keepdims=True)
    centred = x - mean
    scaled = centred * jax.lax.rsqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-6)
    return x + (scaled.T @ jnp.tanh(scaled)).sum(axis=0) * 0.01


def compile_seconds(equations: int) -> float:
    models = (
        jaxport.to_onnx(blocks_of_mlp(equations), [(8, 64)], return_mode="model")
        for _ in range(ROUNDS)
    )
    return min(model.times["compile"] for model in models)


def exponent(points: list[dict[str, Any]]) -> float:
    """Slope of the least-squares line through log time over log equations."""
    xs = [math.log(point["equations"]) for point in points]
    ys = [math.log(point["seconds"]) for point in points]
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    covariance = sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True))
    return covariance / sum((x - x_mean) ** 2 for x in xs)


def series(name: str, sizes: tuple[int, ...], time_of: Callable[[int], float]) -> dict[str, Any]:
    points = [{"equations": size, "seconds": time_of(size)} for size in sizes]
    result = {"name": name, "points": points, "exponent": exponent(points)}
    times = ", ".join(f"{point['seconds']:.3f} s" for point in points)
    print(f"{name}: {times}, exponent {result['exponent']:.2f}", flush=True)
    return result


def converted(block: Block) -> Callable[[int], float]:
    start_up = convert_seconds(block, 1)
    return lambda equations: convert_seconds(block, equations) - start_up


def main() -> None:
    SCRATCH.mkdir(parents=True, exist_ok=True)
    up_to_100k = (1_000, 10_000, 100_000)
    result = [
        series("`jaxport convert`, pointwise", up_to_100k, converted(pointwise_block)),
        series("`jaxport convert`, softmax", up_to_100k, converted(softmax_block)),
        series("traced, norm and product", up_to_100k, compile_seconds),
    ]
    save_result("chain", {"series": result})


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""How the time grows with the number of equations: chains in which each needs the one before, wide
graphs, many regions and regions in regions. In all, and by stage.

The command `jaxport convert` reads, compiles and writes programs of up to 100,000 equations; its
processor time counts, which other processes disturb least. The time of a program of one block is
taken off, because starting a process is no part of the growth. Of functions traced by JAX only the
compile time counts.
"""

import math
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from measure import SCRATCH, save_result

import jaxport

ROUNDS = 3
STAGES = ("import", "axis", "raise", "lower", "target", "passes")
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


def wide_program(equations: int) -> str:
    """Many branches of one input, summed in a tree."""
    leaves = max(1, equations // 4)
    lines = ["func @wide(%x: f32[8,64]) {"]
    names = [f"v{i}" for i in range(leaves)]
    for i, name in enumerate(names):
        lines += [
            f"  %{name}.c: f32[] = constant {0.001 * (i + 1):.3f}",
            f"  %{name}.b: f32[8,64] = broadcast_in_dim %{name}.c {WIDE_BROADCAST}",
            f"  %{name}.a: f32[8,64] = add %x %{name}.b",
            f"  %{name}: f32[8,64] = sin %{name}.a",
        ]
    level = 0
    while len(names) > 1:
        sums = [f"s{level}.{i}" for i in range(len(names) // 2)]
        pairs = zip(sums, names[::2], names[1::2], strict=False)
        lines += [f"  %{out}: f32[8,64] = add %{a} %{b}" for out, a, b in pairs]
        names = [*sums, *names[2 * len(sums) :]]
        level += 1
    return "\n".join([*lines, f"  return %{names[0]}", "}\n"])


def cond(result: str, x: str, branches: tuple[list[str], list[str]]) -> list[str]:
    """Lines of a cond whose branches have the value %x, and %i for conds of their own."""
    texts = [" { (%i: i32[], %x: f32[8,64])\n" + "\n".join(lines) + "\n}" for lines in branches]
    return [f"%{result}: f32[8,64] = cond %i %i %{x} {{branches = ({', '.join(texts)})}}"]


def short_body(op: str) -> list[str]:
    return [f"%y: f32[8,64] = {op} %x", "%z: f32[8,64] = mul %y %x", "return %z"]


def regions_program(equations: int) -> str:
    """One cond after the other; each has two branches of two equations."""
    count = max(1, equations // 5)
    lines = ["func @regions(%i: i32[], %x: f32[8,64]) {"]
    names = ["x", *(f"v{i}" for i in range(count))]
    for x, y in pairwise(names):
        lines += cond(y, x, (short_body("sin"), short_body("tanh")))
    return "\n".join([*lines, f"return %{names[-1]}", "}\n"])


def nested_program(equations: int) -> str:
    """Conds in conds, as deep as the number of equations says."""
    lines = ["%e: f32[8,64] = exp %x", "return %e"]
    for level in range(max(1, equations // EQUATIONS_OF_LEVEL)):
        names = ["x", *(f"n{level}.{i}" for i in range(EQUATIONS_OF_LEVEL - 4))]
        chain = [f"%{y}: f32[8,64] = sin %{x}" for x, y in pairwise(names)]
        inner = cond("r", names[-1], (lines, short_body("tanh")))
        lines = [*chain, *inner, "return %r"]
    return "\n".join(["func @nested(%i: i32[], %x: f32[8,64]) {", *lines, "}\n"])


EQUATIONS_OF_LEVEL = 100
WIDE_BROADCAST = "{shape = (8, 64), broadcast_dimensions = ()}"
Program = Callable[[int], str]
Stages = dict[str, float]


def convert(source: Path, target: Path) -> tuple[float, Stages]:
    """Processor seconds of `jaxport convert`, and those of its stages by the clock."""
    environ = {**os.environ, "JAXPORT_LOG": "time"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run(
        [TOOL, "convert", source, "-o", target],
        check=True,
        capture_output=True,
        text=True,
        env=environ,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    stages = {
        stage: float(taken)
        for stage, taken in re.findall(r"^jaxport time: (\w+): (\S+) s$", run.stderr, re.MULTILINE)
    }
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, stages


def convert_seconds(program_of: Program, equations: int) -> tuple[float, Stages]:
    """The best of some rounds, of each stage apart."""
    source, target = SCRATCH / "chain.jir", SCRATCH / "chain.onnx"
    source.write_text(program_of(equations))
    rounds = [convert(source, target) for _ in range(ROUNDS)]
    source.unlink()
    target.unlink()
    return min(total for total, _ in rounds), fastest([stages for _, stages in rounds])


def fastest(rounds: list[Stages]) -> Stages:
    return {stage: min(stages[stage] for stages in rounds) for stage in rounds[0]}


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


def compile_seconds(equations: int) -> tuple[float, Stages]:
    models = [
        jaxport.to_onnx(blocks_of_mlp(equations), [(8, 64)], return_mode="model")
        for _ in range(ROUNDS)
    ]
    return min(m.times["compile"] for m in models), fastest([m.stage_times for m in models])


def exponent(sizes: tuple[int, ...], seconds: list[float]) -> float:
    """Slope of the least-squares line through log time over log equations."""
    xs, ys = [math.log(size) for size in sizes], [math.log(taken) for taken in seconds]
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    covariance = sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True))
    return covariance / sum((x - x_mean) ** 2 for x in xs)


def series(
    name: str, sizes: tuple[int, ...], measured: Callable[[int], tuple[float, Stages]]
) -> dict[str, Any]:
    totals, stages = zip(*map(measured, sizes), strict=True)
    result = {
        "name": name,
        "points": [
            {"equations": size, "seconds": total, "stages": by_stage}
            for size, total, by_stage in zip(sizes, totals, stages, strict=True)
        ],
        "exponent": exponent(sizes, list(totals)),
        "stage_exponents": {
            stage: exponent(sizes, [found[stage] for found in stages])
            for stage in STAGES
            if all(found.get(stage, 0) > 0 for found in stages)
        },
    }
    times = ", ".join(f"{total:.3f} s" for total in totals)
    powers = ", ".join(f"{stage} {power:.2f}" for stage, power in result["stage_exponents"].items())
    print(f"{name}: {times}, exponent {result['exponent']:.2f}: {powers}", flush=True)
    return result


def converted(program_of: Program) -> Callable[[int], tuple[float, Stages]]:
    """Less what starting the process takes, which is no part of the growth."""
    start_up, _ = convert_seconds(program_of, 1)

    def measured(equations: int) -> tuple[float, Stages]:
        total, stages = convert_seconds(program_of, equations)
        return total - start_up, stages

    return measured


def main() -> None:
    SCRATCH.mkdir(parents=True, exist_ok=True)
    up_to_100k = (1_000, 10_000, 100_000)
    nested = (800, 1_600, 3_000)  # readers of protobuf follow 32 graphs inside each other
    result = [
        series("chain, pointwise", up_to_100k, converted(partial(program, pointwise_block))),
        series("chain, softmax", up_to_100k, converted(partial(program, softmax_block))),
        series("wide graph", up_to_100k, converted(wide_program)),
        series("many regions", up_to_100k, converted(regions_program)),
        series("regions in regions", nested, converted(nested_program)),
        series("traced chain, norm and product", up_to_100k, compile_seconds),
    ]
    save_result("chain", {"series": result})


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Ways to write and to convert one function that may not change what its model computes.

    make metamorphic              # the table of tests/python/test_metamorphic.py, and 100 programs
    make metamorphic PROGRAMS=1000 SEED=5

A relation takes a function and gives another that computes the same. A setting is a choice of
to_onnx. Each program is judged once for each of them: the model of what the relation gives has to
agree with what JAX computes for the function itself.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from fuzz.programs.generate import generate
from fuzz.programs.judge import Outcome, judge
from fuzz.programs.program import Program

Function = Callable[..., Any]


def _twins(arrays: tuple[Any, ...]) -> Any:
    return jax.tree.map(lambda a: jnp.stack([a, a]), arrays)


def _second(results: Any) -> Any:
    return jax.tree.map(lambda a: a[1], results)


def _depends_on(arrays: tuple[Any, ...]) -> Any:
    """A truth that is known only when the model runs."""
    first = jax.tree.leaves(arrays)[0]
    return jnp.any(first if first.dtype == bool else jnp.real(first) > 0)


def _negated_twice(results: Any) -> Any:
    def twice(a: Any) -> Any:
        return jnp.logical_not(jnp.logical_not(a)) if a.dtype == bool else 0 - (0 - a)

    return jax.tree.map(twice, results)


def under_jit(f: Function) -> Function:
    return jax.jit(f)


def under_vmap(f: Function) -> Function:
    return lambda *arrays: _second(jax.vmap(f)(*_twins(arrays)))


def in_scan(f: Function) -> Function:
    def both_steps(*arrays: Any) -> Any:
        _, results = lax.scan(lambda carry, step: (carry, f(*step)), 0, _twins(arrays))
        return _second(results)

    return both_steps


def in_cond(f: Function) -> Function:
    def either_way(*arrays: Any) -> Any:
        return lax.cond(_depends_on(arrays), f, lambda *a: _negated_twice(f(*a)), *arrays)

    return either_way


def twice(f: Function) -> Function:
    def of_both(*arrays: Any) -> Any:
        chosen = _depends_on(arrays)
        return jax.tree.map(lambda a, b: jnp.where(chosen, a, b), f(*arrays), f(*arrays))

    return of_both


RELATIONS: Mapping[str, Callable[[Function], Function]] = {
    "jit": under_jit,
    "vmap": under_vmap,
    "scan": in_scan,
    "cond": in_cond,
    "twice": twice,
}
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "no raising": {"raise_": False},
    "functions": {"functions": "auto"},
    "onnxruntime>=1.28": {"target": "onnxruntime>=1.28"},
    "onnxruntime==1.20": {"target": "onnxruntime==1.20", "opset": 21},
    "onnxruntime-web": {"target": "onnxruntime-web"},
    "onnx": {"target": "onnx"},
    **{f"opset {opset}": {"opset": opset} for opset in range(16, 27)},
}
WAYS = (*RELATIONS, *SETTINGS)


def judged(program: Program, way: str) -> Outcome:
    """What becomes of a program that is written or converted in one of these ways."""
    if way in RELATIONS:
        return judge(program, alter=RELATIONS[way]) if program.inputs else Outcome("not run")
    changes = {"raising" if k == "raise_" else k: v for k, v in SETTINGS[way].items()}
    return judge(
        dataclasses.replace(program, options=dataclasses.replace(program.options, **changes))
    )


def finds(seeds: range, ways: tuple[str, ...] = WAYS) -> Iterator[tuple[int, str, Outcome]]:
    """Each outcome that is not as it should be, and None at the end of a program."""
    for seed in seeds:
        program = generate(seed)
        # The target of a random program has an opset of its own, which another may not know.
        plain = dataclasses.replace(program.options, target="onnxruntime", opset=23, raising=True)
        program = dataclasses.replace(program, options=plain)
        for way in ways:
            yield seed, way, judged(program, way)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    kinds: collections.Counter[str] = collections.Counter()
    found = 0
    for seed, way, outcome in finds(range(given.seed, given.seed + given.programs)):
        kinds[outcome.kind] += 1
        if outcome.is_find:
            found += 1
            print(f"seed {seed}, {way}: {outcome.kind} {outcome.detail}", flush=True)
    counts = ", ".join(f"{n} {kind}" for kind, n in kinds.most_common())
    print(f"{given.programs} programs in {len(WAYS)} ways: {counts}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

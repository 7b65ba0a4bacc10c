# SPDX-License-Identifier: Apache-2.0
"""A program for each seed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import jax
import numpy as np

from fuzz.programs import contraction, elementwise, fragment, movement, region
from fuzz.programs.builder import (
    FLOATS,
    INTEGERS,
    SIZES,
    WIDE_FLOATS,
    WIDE_INTEGERS,
    Builder,
    RejectError,
    Value,
)
from fuzz.programs.program import Body, Input, Options, Program, Step, cleaned
from fuzz.programs.values import KINDS
from jaxport import _jax

PLAIN = [*elementwise.FAMILIES, *movement.FAMILIES, *contraction.FAMILIES, *fragment.FAMILIES]
PLAIN_WEIGHTS = [weight for weight, _ in PLAIN]
REGION_SHARE = 0.1
SYMBOLIC_PERIOD = 4  # every fourth program has symbolic sizes
DOUBLE_PERIOD = 13  # every 13th program has 64-bit types
MOST_DEPTH = 2


def grow(b: Builder, count: int) -> None:
    """Adds about `count` ideas, each of one or more steps; what JAX refuses leaves nothing."""
    for _ in range(count):
        for _ in range(6):
            steps, before = len(b.steps), {v.name for v in b.values}
            try:
                if b.depth < MOST_DEPTH and b.chance(REGION_SHARE):
                    weights = [weight for weight, _ in region.FAMILIES]
                    _, family = b.random.choices(region.FAMILIES, weights)[0]
                    family(b, grow)
                else:
                    b.random.choices(PLAIN, PLAIN_WEIGHTS)[0][1](b)
                break
            except RejectError:  # inputs that the idea made stay
                before |= {given.name for given in b.root.inputs}
                del b.steps[steps:]
                b.values[:] = [v for v in b.values if v.name in before]


def _first_inputs(b: Builder) -> None:
    dtypes, shares = [*FLOATS, *INTEGERS, "boolean", "c64"], [60, 12, 9, *[2] * 6, 1, 1.5]
    if b.root.double:
        dtypes, shares = [*WIDE_FLOATS, *WIDE_INTEGERS, "f32"], [5, 3, 1, 1]
    dtype = b.random.choices(dtypes, shares)[0]
    rank = b.random.choices([0, 1, 2, 3, 4], [3, 10, 35, 35, 17])[0]
    shape = [b.choice(SIZES) for _ in range(rank)]
    for name, symbol in b.root.symbols.items():
        if rank and (name == "B" or b.chance(0.3)):
            shape[0 if name == "B" else b.random.randrange(rank)] = symbol
    b.input(dtype, shape)
    if b.chance(0.5):
        other = [size for size in shape if b.chance(0.8)]
        b.input(dtype if b.chance(0.7) else b.choice((*FLOATS, "i32", "boolean")), other)


def generate(seed: int) -> Program:
    """The program of a seed; every seed has one."""
    with _jax.double_precision(seed % DOUBLE_PERIOD == 0):
        for attempt in range(20):
            program = _attempt(seed, attempt)
            if program:
                return program
    raise RuntimeError(f"seed {seed} gives no program")


def _attempt(seed: int, attempt: int) -> Program | None:
    symbolic = (seed + attempt) % SYMBOLIC_PERIOD == 0
    b = Builder(seed * 31 + attempt, symbolic, double=seed % DOUBLE_PERIOD == 0)
    _first_inputs(b)
    grow(b, b.random.choices([1, 2, 3, 4, 5, 7], [10, 20, 25, 20, 15, 10])[0])
    made = [v for v in b.values if any(v.name in s.names for s in b.steps)]
    if not made:
        return None
    outputs = [made[-1]]
    if len(made) > 1 and b.chance(0.35):
        outputs.append(b.choice(made[:-1]))
    return _finished(b, seed, outputs)


def _finished(b: Builder, seed: int, outputs: list[Value]) -> Program:
    options = dataclasses.replace(_options(b), double=b.double)
    program = cleaned(
        Program(tuple(b.inputs), tuple(b.steps), tuple(v.name for v in outputs), options, seed=seed)
    )
    sizes = _sizes(b, program)
    kinds = [b.choice(("normal", "normal", "normal", "ties", "zeros", "small", "large"))]
    kinds += [b.choice(("normal", "ties")) for _ in sizes[1:]]
    if b.chance(0.5):
        kinds.append(b.choice(KINDS[3:]))
        sizes.append(sizes[0])
    program = dataclasses.replace(program, sizes=tuple(sizes), values=tuple(kinds))
    way = b.random.random()
    for share, wrap in ((0.03, _jitted), (0.08, _vmapped), (0.12, _scanned)):
        if way < share and program.inputs and program.steps:
            return wrap(program)
    return program


def _options(b: Builder) -> Options:
    way = b.random.random()
    if way < 0.55:
        return Options()
    if way < 0.80:
        return Options(opset=b.random.randint(17, 26))
    if way < 0.92:
        return Options(raising=False)
    return Options(opset=b.choice((18, 21, 23, 24, 26)), target="onnx")


def _sizes(b: Builder, program: Program) -> list[Mapping[str, int]]:
    names = list(program.symbols)
    if not names:
        return [{}]
    rounds = [{name: b.choice((2, 3, 5)) for name in names}, dict.fromkeys(names, 1)]
    if b.chance(0.4):
        rounds.append({name: b.choice((0, 2)) if i else 0 for i, name in enumerate(names)})
    return rounds


# --- the same program inside a transformation


def _whole(program: Program) -> Body:
    """The program as a function; sizes are taken from its inputs as at the top."""
    params = tuple(f"{given.name}_" for given in program.inputs)
    rename = dict(zip((given.name for given in program.inputs), params, strict=True))

    def renamed(step: Step) -> Step:
        bodies = tuple(
            Body(b.params, tuple(map(renamed, b.steps)), tuple(rename.get(n, n) for n in b.results))
            for b in step.bodies
        )
        return Step(step.names, step.text, tuple(rename.get(n, n) for n in step.args), bodies)

    results = tuple(rename.get(name, name) for name in program.outputs)
    return Body(params, tuple(map(renamed, program.steps)), results)


def _wrapped(program: Program, text: str, axis: bool) -> Program:
    names = tuple(f"w{i}" for i in range(len(program.outputs)))
    inputs = tuple(
        Input(g.name, g.dtype, (2, *g.shape) if axis else g.shape) for g in program.inputs
    )
    step = Step(names, text, tuple(g.name for g in inputs), (_whole(program),))
    return dataclasses.replace(program, inputs=inputs, steps=(step,), outputs=names)


def _arguments(program: Program) -> str:
    return ", ".join(f"${i}" for i in range(len(program.inputs)))


def _jitted(program: Program) -> Program:
    return _wrapped(program, f"jax.jit($f0)({_arguments(program)})", axis=False)


def _vmapped(program: Program) -> Program:
    return _wrapped(program, f"jax.vmap($f0)({_arguments(program)})", axis=True)


def _scanned(program: Program) -> Program:
    """Two steps of a scan that hands nothing on."""
    text = f"lax.scan(lambda c, a: (c, $f0(*a)), 0, ({_arguments(program)},))[1]"
    return _wrapped(program, text, axis=True)


def input_structs(program: Program) -> list[jax.ShapeDtypeStruct]:
    """The inputs as to_onnx takes them."""
    from fuzz.programs.program import namespace

    names, scope = namespace(), jax.export.SymbolicScope()
    symbols = {n: jax.export.symbolic_shape(n, scope=scope)[0] for n in program.symbols}
    return [
        jax.ShapeDtypeStruct(
            tuple(symbols.get(size, size) for size in g.shape), np.dtype(names[g.dtype])
        )
        for g in program.inputs
    ]

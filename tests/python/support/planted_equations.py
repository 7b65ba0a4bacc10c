# SPDX-License-Identifier: Apache-2.0
"""Plants one fault before the compiler: into an equation of a traced program, or as a lowering.

The fault goes through raising, lowering, the target and all passes, as one of the compiler would.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import jaxport
from jaxport import _core, lowering
from support.plants import Plant

EQUATION = re.compile(
    r"^(?P<indent> *)(?P<result>%\w+): (?P<type>\S+) = (?P<primitive>[\w-]+)"
    r"(?P<operands>(?: %\w+)+)(?P<rest>[^@]*)$"
)
CONSTANT = re.compile(
    r"^(?P<indent> *)(?P<result>%\w+): (?:f32|bf16)\[.*\] = constant (?P<data>.*)$"
)
LOCATION = re.compile(r'loc\("([^"]*)":(\d+) "([^"]*)"')

# Primitives of one signature: any may stand for any other.
FAMILIES = (
    ("abs", "cos", "exp", "log1p", "logistic", "neg", "sin", "sqrt", "tanh"),
    ("add", "div", "max", "min", "mul", "sub"),
    ("ge", "gt", "le", "lt"),
    ("cummax", "cumprod", "cumsum"),
    ("reduce_max", "reduce_min", "reduce_sum"),
)

# Those that often take another axis, so that the program is still one.
WITH_AXES = ("cumsum", "dot_general", "integer_pow", "reduce_max", "reduce_sum", "rev", "sort")


def indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def source(lines: list[str], at: int) -> str:
    """The place of an equation: its own, or that of the call around it."""
    depth = indent(lines[at]) + 1
    for line in lines[at:]:
        if indent(line) < depth and (found := LOCATION.search(line)):
            return f"{found[1]}:{found[2]} in {found[3]}"
        depth = min(depth, indent(line) + 1)
    return ""


def block(lines: list[str], at: int) -> range:
    """The lines of the function that a line is in."""
    first = last = at
    while first > 0 and indent(lines[first - 1]) >= indent(lines[at]):
        first -= 1
    while last + 1 < len(lines) and indent(lines[last + 1]) >= indent(lines[at]):
        last += 1
    return range(first, last + 1)


# --- changes to one line; None where there is nothing to change


def choose(random: np.random.Generator, among: list[Any]) -> Any:
    return among[int(random.integers(len(among)))] if among else None


def _other_primitive(
    lines: list[str], at: int, random: np.random.Generator
) -> dict[int, str] | None:
    name = EQUATION.match(lines[at])["primitive"]  # type: ignore[index]
    family = next((f for f in FAMILIES if name in f), ())
    other = choose(random, [primitive for primitive in family if primitive != name])
    return {at: lines[at].replace(f" = {name} ", f" = {other} ", 1)} if other else None


def _other_axis(lines: list[str], at: int, random: np.random.Generator) -> dict[int, str] | None:
    """Another number in a parameter, or another order; what does not fit is refused."""
    start = lines[at].find("{")
    end = lines[at].find("} loc(") if "} loc(" in lines[at] else lines[at].rfind("}")
    params = lines[at][start:end]
    if start < 0:
        return None
    if "reverse = " in params and random.integers(2):
        other = params.replace("reverse = false", "reverse = ~").replace("= true", "= false")
        other = other.replace("~", "true")
    else:
        number = choose(random, list(re.finditer(r"(?<=[( ])\d+(?=[,)}]|$)", params)))
        if number is None:
            return None
        changed = str(int(number[0]) + int(random.choice([-1, 1])))
        other = params[: number.start()] + changed + params[number.end() :]
        pair = re.search(r"\((\d+), (\d+)\)", params)
        if pair and random.integers(2):
            other = params.replace(pair[0], f"({pair[2]}, {pair[1]})", 1)
    return {at: lines[at][:start] + other + lines[at][end:]} if other != params else None


def _other_operand(lines: list[str], at: int, random: np.random.Generator) -> dict[int, str] | None:
    """The operands in another order, or another value of the same type."""
    found = EQUATION.match(lines[at])
    operands = found["operands"].split()  # type: ignore[index]
    if len(set(operands)) == 2 and random.integers(2):
        changed = operands[::-1]
    else:
        known = {
            line["result"]: line["type"]
            for i in block(lines, at)
            if i < at
            and indent(lines[i]) == indent(lines[at])
            and (line := EQUATION.match(lines[i]))
        }
        place = int(random.integers(len(operands)))
        others = [
            v for v, t in known.items() if v != operands[place] and t == known.get(operands[place])
        ]
        other = choose(random, others)
        if other is None:
            return None
        changed = [*operands[:place], other, *operands[place + 1 :]]
    return {at: lines[at].replace(found["operands"], " " + " ".join(changed), 1)}  # type: ignore[index]


def _other_dtype(lines: list[str], at: int, random: np.random.Generator) -> dict[int, str] | None:
    """The result is rounded to 8 bits on the way."""
    found = EQUATION.match(lines[at])
    if not found or not found["type"].startswith("f32"):
        return None
    result, kind = found["result"], found["type"]
    half = kind.replace("f32", "bf16", 1)
    where = lines[at][lines[at].index(" loc(") :] if " loc(" in lines[at] else ""
    wide = lines[at].replace(f"{result}: ", f"{result}_wide: ", 1)
    convert = "convert_element_type"
    narrow = (
        f"{found['indent']}{result}_half: {half} = {convert} {result}_wide {{new_dtype = bf16}}"
    )
    back = f"{found['indent']}{result}: {kind} = {convert} {result}_half {{new_dtype = f32}}"
    return {at: "\n".join([wide, narrow + where, back + where])}


WAYS: dict[str, Callable[..., dict[int, str] | None]] = {
    "primitive": _other_primitive,
    "axis": _other_axis,
    "operand of an equation": _other_operand,
    "dtype of an equation": _other_dtype,
}


def _other_literal(lines: list[str], at: int, random: np.random.Generator) -> tuple[str, set[str]]:
    """A constant with another number, and the places of the equations that read it."""
    found = CONSTANT.match(lines[at])
    number = choose(random, list(re.finditer(r"-?\d+\.\d+", lines[at][:10_000])))
    if found is None or number is None:
        return "", set()
    other = repr(float(number[0]) * 1.25 + 0.5)
    line = lines[at][: number.start()] + other + lines[at][number.end() :]
    reads = re.compile(rf"{found['result']}(?!\w)")
    users = [i for i in block(lines, at) if i != at and indent(lines[i]) == indent(lines[at])]
    return line, {source(lines, i) for i in users if reads.search(lines[i])} - {""}


def edited(text: str, random: np.random.Generator) -> tuple[str, Plant] | None:
    """A program with one equation or literal changed; None when this try found nothing to do."""
    lines = text.splitlines()
    if random.integers(6) == 0:
        at = choose(random, [i for i, line in enumerate(lines) if CONSTANT.match(line)])
        line, users = _other_literal(lines, at, random) if at is not None else ("", set())
        if not users:
            return None
        lines[at] = line
        return "\n".join(lines), Plant("literal", "constant", frozenset(users))
    kind = choose(random, list(WAYS))
    only = WITH_AXES if kind == "axis" else ()
    places = [
        i
        for i, line in enumerate(lines)
        if (equation := EQUATION.match(line)) and (not only or equation["primitive"] in only)
    ]
    if not places:
        return None
    at = choose(random, places)
    changed = WAYS[kind](lines, at, random)
    where = source(lines, at)
    if not changed or not where:
        return None
    primitive = EQUATION.match(lines[at])["primitive"]  # type: ignore[index]
    for i, line in changed.items():
        lines[i] = line
    return "\n".join(lines), Plant(kind, primitive, frozenset([where]))


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    kept = [os.dup(1), os.dup(2)]
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        for target, saved in zip((1, 2), kept, strict=True):
            os.dup2(saved, target)
            os.close(saved)


def converted(text: str, folder: Path) -> onnx.ModelProto | None:
    """The model of a program as text; None where it is refused."""
    program, model = folder / "planted.jir", folder / "planted.onnx"
    program.write_text(text)
    with _silent():
        code = _core.run_command(["convert", str(program), "-o", str(model)], {})
    return onnx.load(model) if code == 0 else None


# --- lowerings that are wrong

LOWERINGS: dict[str, Callable[..., Any]] = {
    "cos": lambda c, x, **_: c.op.Sin(x),
    "cumsum": lambda c, x, **_: c.op.Identity(x),
    "exp": lambda c, x, **_: c.op.Softplus(x),
    "logistic": lambda c, x, **_: c.op.HardSigmoid(x),
    "reduce_max": lambda c, x, *, axes, **_: c.op.ReduceMean(
        x, np.asarray(axes, np.int64), keepdims=0
    ),
    "sin": lambda c, x, **_: c.op.Cos(x),
    "sqrt": lambda c, x, **_: c.op.Abs(x),
    "tanh": lambda c, x, **_: c.op.Softsign(x),
}


@contextlib.contextmanager
def wrong_lowering(primitive: str) -> Iterator[None]:
    kept = dict(lowering._registered)
    jaxport.register_lowering(primitive, LOWERINGS[primitive])
    try:
        yield
    finally:
        lowering._registered.clear()
        lowering._registered.update(kept)


def lines_of(text: str, primitive: str) -> frozenset[str]:
    """The places of all equations of a primitive."""
    lines = text.splitlines()
    found = {
        source(lines, i)
        for i, line in enumerate(lines)
        if (equation := EQUATION.match(line)) and equation["primitive"] == primitive
    }
    return frozenset(found - {""})

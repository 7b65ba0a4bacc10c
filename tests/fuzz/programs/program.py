# SPDX-License-Identifier: Apache-2.0
"""A program as data, and as source that runs by itself."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

DTYPES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "c64": "complex64",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "boolean": "bool_",
}
# What stands in for each name in the run that judges; integers keep their width.
WIDE = {"f16": "float64", "bf16": "float64", "f32": "float64", "c64": "complex128"}
SHORT = {long: short for short, long in DTYPES.items()} | {"bool": "boolean"}

HEADER = """\
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
"""
ALIASES = "".join(f"{short} = jnp.{long}\n" for short, long in DTYPES.items())


@dataclasses.dataclass(frozen=True)
class Input:
    """An argument of the program; names in its shape are symbols."""

    name: str
    dtype: str  # a key of DTYPES
    shape: tuple[int | str, ...]


@dataclasses.dataclass(frozen=True)
class Body:
    """A function inside the program: a branch, a step of a loop, what grad takes."""

    params: tuple[str, ...]
    steps: tuple[Step, ...]
    results: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Step:
    """One assignment: `text` has $0, $1, … where `args` stand, and $f0, … where bodies stand."""

    names: tuple[str, ...]
    text: str
    args: tuple[str, ...] = ()
    bodies: tuple[Body, ...] = ()


@dataclasses.dataclass(frozen=True)
class Options:
    """How the program is converted."""

    opset: int = 23
    raising: bool = True
    target: str = "onnxruntime"
    double: bool = False  # with 64-bit types
    functions: str = "marked"


@dataclasses.dataclass(frozen=True)
class Program:
    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]
    outputs: tuple[str, ...]
    options: Options = Options()
    sizes: tuple[Mapping[str, int], ...] = ({},)  # of the symbols, for one run each
    values: tuple[str, ...] = ("normal",)  # a kind of values for each run, see values.py
    seed: int = 0

    @property
    def symbols(self) -> dict[str, str]:
        """Each symbol, with an expression for its size."""
        found: dict[str, str] = {}
        for given in self.inputs:
            for axis, size in enumerate(given.shape):
                if isinstance(size, str):
                    found.setdefault(size, f"{given.name}.shape[{axis}]")
        return found


def uses(step: Step) -> Iterator[str]:
    """The names that a step reads, also those that its bodies see around them."""
    yield from step.args
    for body in step.bodies:
        inside = {*body.params, *(name for s in body.steps for name in s.names)}
        for name in (*(n for s in body.steps for n in uses(s)), *body.results):
            if name not in inside:
                yield name


def without_dead_steps(steps: tuple[Step, ...], results: tuple[str, ...]) -> tuple[Step, ...]:
    needed, kept = set(results), []
    for step in reversed(steps):
        if needed & set(step.names):
            bodies = tuple(
                dataclasses.replace(b, steps=without_dead_steps(b.steps, b.results))
                for b in step.bodies
            )
            step = dataclasses.replace(step, bodies=bodies)
            kept.append(step)
            needed.update(uses(step))
    return tuple(reversed(kept))


def cleaned(program: Program) -> Program:
    """Without steps and inputs that no output needs."""
    steps = without_dead_steps(program.steps, program.outputs)
    needed = {*program.outputs, *(name for step in steps for name in uses(step))}
    text = " ".join(_texts(steps))
    words = set(re.findall(r"\b[A-Z]\b", text))
    kept, bound = [], set()
    for given in program.inputs:
        symbols = {size for size in given.shape if isinstance(size, str)}
        if given.name in needed or symbols & words - bound:
            kept.append(given)
            bound |= symbols
    return dataclasses.replace(program, steps=steps, inputs=tuple(kept))


def _texts(steps: tuple[Step, ...]) -> Iterator[str]:
    for step in steps:
        yield step.text
        for body in step.bodies:
            yield from _texts(body.steps)


def filled(step: Step, functions: tuple[str, ...]) -> str:
    """The right side of a step with names for its arguments and bodies."""

    def name(match: re.Match[str]) -> str:
        return functions[int(match[2])] if match[1] else step.args[int(match[2])]

    return re.sub(r"\$(f?)(\d+)", name, step.text)


def function_source(program: Program, name: str = "f") -> str:
    """`def f(…)` of a program."""
    lines = [f"def {name}({', '.join(given.name for given in program.inputs)}):"]
    lines += [f"    {symbol} = {where}" for symbol, where in program.symbols.items()]
    _write(lines, program.steps, program.outputs, "    ", [0])
    return "\n".join(lines) + "\n"


def _write(
    lines: list[str],
    steps: tuple[Step, ...],
    results: tuple[str, ...],
    indent: str,
    counter: list[int],
) -> None:
    for step in steps:
        functions = []
        for body in step.bodies:
            functions.append(f"f{counter[0]}")
            counter[0] += 1
            lines.append(f"{indent}def {functions[-1]}({', '.join(body.params)}):")
            _write(lines, body.steps, body.results, indent + "    ", counter)
        left = ", ".join(step.names) + (
            "," if len(step.names) == 1 and step.text[:1] == "*" else ""
        )
        lines.append(f"{indent}{left} = {filled(step, tuple(functions))}")
    lines.append(f"{indent}return {', '.join(results)}")


def module_source(program: Program) -> str:
    return f"{HEADER}\n{ALIASES}\n\n{function_source(program)}"


class _WideLax:
    """jax.lax where a number has more digits than its type: its bits are those of the type."""

    def __getattr__(self, name: str) -> Any:
        from jax import lax

        return getattr(lax, name)

    def bitcast_convert_type(self, x: Any, dtype: Any) -> Any:
        import jax.numpy as jnp
        from jax import lax

        narrow = x.astype(jnp.float32) if x.dtype == jnp.float64 else x
        wanted = jnp.float32 if dtype == jnp.float64 else dtype
        return lax.bitcast_convert_type(narrow, wanted).astype(dtype)


def namespace(wide: bool = False) -> dict[str, Any]:
    """What a program's source sees; `wide` for the run in 64 bits."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import lax

    names: dict[str, Any] = {"jax": jax, "jnp": jnp, "np": np, "lax": _WideLax() if wide else lax}
    for short, long in DTYPES.items():
        names[short] = getattr(jnp, WIDE.get(short, long) if wide else long)
    return names


def function_of(program: Program, wide: bool = False) -> Any:
    names = namespace(wide)
    exec(compile(function_source(program), f"<program {program.seed}>", "exec"), names)
    return names["f"]

# SPDX-License-Identifier: Apache-2.0
"""Builds a program step by step; JAX itself gives every value its type."""

from __future__ import annotations

import functools
import random
import re
import types
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.export
import numpy as np

from fuzz.programs.program import SHORT, Body, Input, Step, namespace, uses

FLOATS = ("f32", "f16", "bf16")
INTEGERS = ("i32", "i8", "i16", "u8", "u16", "u32")
WIDE_FLOATS = ("f64",)  # for programs with 64-bit types
WIDE_INTEGERS = ("i64", "u64")
NUMBERS = (0.5, 2.0, -1.0, 0.1, 1.5, 3.0, 1e-5, -0.5, 0.0, 1.0, 0.25, 1.702, 0.044715, 7.0, -2.5)
SIZES = (1, 1, 2, 3, 4, 5, 6, 8)
EXAMPLE = {"B": 3, "N": 4}  # sizes of symbols when a bound on the number of elements is needed
MOST_ELEMENTS = 3000


class RejectError(Exception):
    """A step that cannot be: no value fits, or JAX refuses it."""


@functools.cache
def _code(text: str) -> types.CodeType:
    return compile(text, "<step>", "eval")


class Value:
    """A name with its type; sizes are integers or JAX's symbolic expressions."""

    def __init__(self, name: str, aval: Any, varies: bool = True) -> None:
        self.name = name
        self.varies = varies  # whether it depends on an input
        self.aval = aval
        self.shape: tuple[Any, ...] = tuple(aval.shape)
        self.dtype = SHORT.get(np.dtype(aval.dtype).name, "other")
        self.rank = len(self.shape)

    @property
    def elements(self) -> int:
        total = 1
        for size in self.shape:
            total *= size if isinstance(size, int) else int(size._evaluate(EXAMPLE))
        return total

    def static(self, axis: int) -> bool:
        return isinstance(self.shape[axis], int)


Fits = Callable[[Value], bool]


def is_float(v: Value) -> bool:
    return v.dtype in FLOATS or v.dtype in WIDE_FLOATS


def is_integer(v: Value) -> bool:
    return v.dtype in INTEGERS or v.dtype in WIDE_INTEGERS


def is_number(v: Value) -> bool:
    return is_float(v) or is_integer(v)


def has_axes(v: Value) -> bool:
    return v.rank > 0


class Builder:
    """The steps of one function so far, and the values it can use."""

    def __init__(
        self, seed: int, symbolic: bool, double: bool = False, parent: Builder | None = None
    ) -> None:
        self.random = parent.random if parent else random.Random(seed)
        self.root: Builder = parent.root if parent else self
        self.parent = parent
        self.values: list[Value] = []
        self.steps: list[Step] = []
        if not parent:
            self.inputs: list[Input] = []
            self.count = 0
            self.double = double
            scope = jax.export.SymbolicScope()
            self.symbols = (
                {n: jax.export.symbolic_shape(n, scope=scope)[0] for n in EXAMPLE}
                if symbolic
                else {}
            )
            self.namespace = namespace()
        self.depth: int = parent.depth + 1 if parent else 0

    # --- choices

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def choice(self, options: Sequence[Any]) -> Any:
        return self.random.choice(options)

    def number(self) -> str:
        return repr(self.choice(NUMBERS))

    def axis(self, v: Value) -> int:
        """An axis, counted from either side."""
        if v.rank == 0:
            raise RejectError("no axis")
        return self.random.randrange(-v.rank, v.rank)

    def axes(self, v: Value) -> tuple[int, ...]:
        """Some axes, at least one."""
        if v.rank == 0:
            raise RejectError("no axis")
        return tuple(sorted(self.random.sample(range(v.rank), self.random.randint(1, v.rank))))

    def visible(self) -> list[Value]:
        """Values of this function and, less likely, of those around it."""
        around = self.parent.visible() if self.parent and self.chance(0.3) else []
        return around + self.values

    def pick(self, *fits: Fits) -> Value:
        """A value that fits; recent ones are more likely."""
        varies = self.chance(0.9)
        found = [v for v in self.visible() if v.varies >= varies and all(fit(v) for fit in fits)]
        if not found:
            raise RejectError("no value fits")
        recent = len(found) - 1 - min(int(self.random.expovariate(0.6)), len(found) - 1)
        return found[recent]

    # --- making values

    def fresh(self) -> str:
        self.root.count += 1
        return f"v{self.root.count}"

    def input(self, dtype: str, shape: Sequence[Any]) -> Value:
        """A new argument of the program, visible from everywhere."""
        root = self.root
        if len(root.inputs) >= 5:
            raise RejectError("enough inputs")
        names = tuple(size if isinstance(size, int) else str(size) for size in shape)
        if any(isinstance(n, str) and n not in root.symbols for n in names):
            raise RejectError("only symbols are sizes of inputs")
        name = "xyzuvw"[len(root.inputs)]
        root.inputs.append(Input(name, dtype, names))
        aval = jax.ShapeDtypeStruct(tuple(shape), np.dtype(root.namespace[dtype]))
        value = Value(name, aval)
        root.values.insert(0, value)
        return value

    def emit(self, text: str, *args: Value, bodies: Sequence[Body] = ()) -> Value:
        """A step with one result."""
        return self.emit_all(text, *args, bodies=bodies, results=1)[0]

    def emit_all(
        self, text: str, *args: Value, bodies: Sequence[Body] = (), results: int
    ) -> list[Value]:
        """A step with several results; the last ones are values for what follows."""
        names = tuple(self.fresh() for _ in range(results))
        step = Step(names, text, tuple(a.name for a in args), tuple(bodies))
        avals = self._types(step)
        if len(avals) != results:
            raise RejectError("another number of results")
        varies = bool(bodies) or any(a.varies for a in args)
        made = [Value(name, aval, varies) for name, aval in zip(names, avals, strict=True)]
        if any(v.dtype == "other" or v.elements > MOST_ELEMENTS or v.rank > 5 for v in made):
            raise RejectError("too large")
        self.steps.append(step)
        self.values += made
        return made

    def typed(self, text: str, *args: Value, bodies: Sequence[Body] = ()) -> Value:
        """What a step would give, without the step."""
        step = Step(("",), text, tuple(a.name for a in args), tuple(bodies))
        return Value("", self._types(step)[0])

    def _types(self, step: Step) -> list[Any]:
        known = self._all_visible()
        names = sorted(set(uses(step)))
        structs = [known[name].aval for name in names]

        def call(*arrays: Any) -> Any:
            return evaluate(step, dict(zip(names, arrays, strict=True)), self.root)

        try:
            return list(jax.tree.leaves(jax.eval_shape(call, *structs)))
        except RejectError:
            raise
        except Exception as error:  # whatever JAX has against it
            raise RejectError(str(error)) from None

    def _all_visible(self) -> dict[str, Value]:
        around = self.parent._all_visible() if self.parent else {}
        return around | {v.name: v for v in self.values}

    def body(self, params: Sequence[Any], build: Callable[[Builder], Sequence[Value]]) -> Body:
        """A function of arguments of the given types; `build` adds its steps."""
        inner = Builder(0, False, parent=self)
        for aval in params:
            name = self.fresh()
            inner.values.append(Value(name, jax.ShapeDtypeStruct(aval.shape, aval.dtype)))
        names = tuple(v.name for v in inner.values)
        results = build(inner)
        return Body(names, tuple(inner.steps), tuple(v.name for v in results))

    # --- texts

    def dim(self, size: Any) -> str:
        """A size in source: a number, or an expression over the names of symbols."""
        text = str(size)
        if not re.fullmatch(r"[BN0-9+* -]+", text):
            raise RejectError("a size without a simple text")
        return text

    def dims(self, shape: Sequence[Any]) -> str:
        parts = [self.dim(size) for size in shape]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"

    def constant(self, dtype: str, shape: Sequence[int]) -> str:
        """A text of an array that is not random but looks like it."""
        if not all(isinstance(size, int) for size in shape):
            raise RejectError("constants have static sizes")
        count = int(np.prod(shape, dtype=int))
        a, b = self.choice((1.7, 2.3, 0.9)), self.choice((0.3, 1.1, 2.0))
        base = f"np.sin(np.arange({count}.0) * {a} + {b}).reshape({tuple(shape)})"
        if dtype == "boolean":
            return f"jnp.asarray({base} > 0)"
        if dtype in (*INTEGERS, *WIDE_INTEGERS):
            shift = 3 if dtype[0] == "u" else 0
            return f"jnp.asarray(np.round({base} * 3 + {shift}).astype({dtype}))"
        return f"jnp.asarray({base}.astype({dtype}))"


def evaluate(step: Step, env: dict[str, Any], root: Builder) -> Any:
    """The results of a step where `env` gives values to names."""
    text = re.sub(r"\$(f?)(\d+)", lambda m: f"_{m[1]}{m[2]}", step.text)
    names = {f"_{i}": env[arg] for i, arg in enumerate(step.args)}
    names |= {f"_f{i}": _callable(body, env, root) for i, body in enumerate(step.bodies)}
    return eval(_code(text), {**root.namespace, **root.symbols, **names})


def _callable(body: Body, env: dict[str, Any], root: Builder) -> Callable[..., Any]:
    def call(*arrays: Any) -> Any:
        inner = env | dict(zip(body.params, arrays, strict=True))
        for step in body.steps:
            made = evaluate(step, inner, root)
            inner |= zip(step.names, made if len(step.names) > 1 else [made], strict=True)
        results = tuple(inner[name] for name in body.results)
        return results if len(results) != 1 else results[0]

    return call

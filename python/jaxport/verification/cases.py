# SPDX-License-Identifier: Apache-2.0
"""What a model is compared on: inputs, sizes, and what JAX gives for them."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np

from .. import _jax, agreement
from ..call import TO_NCHW, Images
from ..errors import ConversionError, first_line
from ..frameworks import Program, program_of
from ..inputs import Arguments, Inputs, is_array, is_input, read_inputs, spec_leaves
from ..record import bound, record

Array = np.ndarray[Any, Any]
# What users give for sizes: one size or several for each symbol, or a list of whole choices.
Sizes = Mapping[str, int | Sequence[int]] | Sequence[Mapping[str, int]]


@dataclasses.dataclass(frozen=True)
class Case:
    """A run that is to be compared.

    Attributes:
        jaxpr, arrays: the program at these sizes and what it is called with.
        feeds: what the inputs of the model get, by name.
    """

    sizes: dict[str, int]
    kind: str
    jaxpr: Any
    arrays: list[Any]
    feeds: dict[str, Array]

    def jax_results(self) -> list[Array]:
        """Runs JAX, compiled as under jit."""
        results = jax.jit(jax.extend.core.jaxpr_as_fun(self.jaxpr))(*self.arrays)
        return [_jax.host_array(value) for value in results]

    @property
    def sha256(self) -> str:
        """Of the inputs of the model: names, types and numbers."""
        state = hashlib.sha256()
        for name, array in self.feeds.items():
            state.update(f"{name}:{array.dtype.name}{list(array.shape)};".encode())
            state.update(np.ascontiguousarray(array).tobytes())
        return state.hexdigest()


@dataclasses.dataclass(frozen=True)
class Question:
    """What is to be verified, whatever the sizes are."""

    program: Program
    inputs: Inputs
    params: Mapping[str, Any]
    images: Images
    default_dtype: Any

    def symbols(self) -> list[str]:
        """The names of symbolic sizes, in the order in which they are met."""
        found: dict[str, None] = {}

        def note(name: str) -> int:
            found.setdefault(name)
            return 2

        arguments = read_inputs(self.inputs, self.default_dtype)
        for leaf in filter(is_input, jax.tree.leaves((arguments.positional, arguments.named))):
            for size in leaf.shape:
                if _jax.is_symbolic(size):
                    _jax.dim_value(size, note)
        return list(found)

    def case(self, sizes: Mapping[str, int], session: Any) -> Case:
        """Raises ConversionError when JAX refuses these sizes, or the model has other inputs."""
        values = agreement.example_arguments(
            self.inputs, dict(self.params), self.default_dtype, sizes
        )
        values = bound(self.program.function, values)
        outputs = [value.name for value in session.get_outputs()]
        exports_state = bool(self.program.state) and any(n.endswith("_out") for n in outputs)
        specs, leaves = _described(values)
        recorded = record(self.program, specs, images=self.images, exports_state=exports_state)
        for i in self.images[0]:
            leaves[i] = jnp.transpose(leaves[i], TO_NCHW)
        arrays = [*leaves, *(jnp.asarray(self.program.state[name]) for name in recorded.read)]
        held = agreement.held_by(self.program)
        feeds = agreement.model_feeds(session, values, self.images[0], held)
        if isinstance(feeds, str):
            raise ConversionError(
                "E093", f"the model: {feeds}", help="give the function that the model was made from"
            )
        names = [value.name for value in session.get_inputs()]
        kind = "given" if any(map(is_array, _all_leaves(self.inputs))) else "generated"
        named = dict(zip(names, feeds, strict=True))
        return Case(dict(sizes), kind, recorded.jaxpr, arrays, named)


def question_of(
    fn: Callable[..., Any],
    inputs: Inputs,
    params: Mapping[str, Any] | None,
    images: Images,
    double_precision: bool,
) -> Question:
    """What to_onnx was asked."""
    dtype = jnp.float64 if double_precision else jnp.float32
    return Question(program_of(fn), inputs, params or {}, images, dtype)


def choices(symbols: Sequence[str], sizes: Sizes | None) -> list[dict[str, int]]:
    """The sizes that are run, one dict for each run. Raises ConversionError E071."""
    if not symbols:
        return [{}]
    if sizes is None:
        small = agreement.SYMBOL_SIZES
        distinct = {name: small[i % len(small)] for i, name in enumerate(symbols)}
        return [distinct, dict.fromkeys(symbols, 1)]
    if isinstance(sizes, Mapping):
        columns = {k: [int(n) for n in np.atleast_1d(v)] for k, v in sizes.items()}
        count = max(map(len, columns.values()), default=0) if all(columns.values()) else 0
        sizes = [{k: v[i % len(v)] for k, v in columns.items()} for i in range(count)]
    if not sizes:
        raise ConversionError("E071", "sizes has no size", help="give some to each symbol")
    for choice in sizes:
        _check(choice, symbols)
    return [dict(choice) for choice in sizes]


def _check(choice: Mapping[str, int], symbols: Sequence[str]) -> None:
    unknown, missing = sorted(set(choice) - set(symbols)), sorted(set(symbols) - set(choice))
    if unknown or missing:
        what = f"names {unknown[0]!r}, which" if unknown else f"lacks {missing[0]!r}, which"
        state = "no input has" if unknown else "inputs have"
        raise ConversionError(
            "E071",
            f"sizes {what} {state}",
            help=f"give a size to each of {', '.join(map(repr, symbols))}",
        )


def inputs_of(session: Any, numpy_dtype: Callable[[str], Any]) -> list[Any]:
    """The inputs that a model itself declares, as to_onnx takes them."""
    return [
        jax.ShapeDtypeStruct(tuple(value.shape), numpy_dtype(value.type))  # type: ignore[no-untyped-call]
        for value in session.get_inputs()
    ]


def why_skipped(error: Exception) -> str:
    return error.message if isinstance(error, ConversionError) else first_line(error)


def _all_leaves(inputs: Inputs) -> list[Any]:
    entries = inputs.values() if isinstance(inputs, Mapping) else inputs
    return [leaf for entry in entries for leaf in spec_leaves(entry)]


def _described(arguments: Arguments) -> tuple[Arguments, list[Any]]:
    """The arguments with a description in place of each array, and these arrays in order."""

    def spec(leaf: Any) -> Any:
        if not is_array(leaf):
            return leaf
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)  # type: ignore[no-untyped-call]

    specs = dataclasses.replace(
        arguments,
        positional=jax.tree.map(spec, arguments.positional),
        named=jax.tree.map(spec, arguments.named),
    )
    given = jax.tree.leaves((arguments.positional, arguments.named))
    return specs, [leaf for leaf in given if is_array(leaf)]

# SPDX-License-Identifier: Apache-2.0
"""What a source of cases provides: names, and for each name a program with its judge."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx


@dataclasses.dataclass(frozen=True)
class Program:
    """A function that is converted, and how its model is judged.

    `inputs` and `options` are what to_onnx gets; an option takes the place of the runner's own.
    `arguments` are values for the inputs of the model, in order, except for those that `named`
    gives by name. `expected` runs JAX; None means that the model need only load. `difference` says
    what is wrong with the results of a model, `objection` what is wrong with the model itself, and
    `facts` is what the report tells of it.

    To look for inputs at which models differ: `values` are the inputs of `fn`, `at` is the program
    at others, whose results JAX is asked for in any case, and `sized` are values with another size
    in the place of each symbol.
    """

    fn: Callable[..., Any]
    inputs: Sequence[Any]
    arguments: Sequence[np.ndarray]
    expected: Callable[[], list[np.ndarray] | None]
    difference: Callable[[list[np.ndarray], list[np.ndarray]], str | None]
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    named: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    objection: Callable[[onnx.ModelProto], str | None] = lambda model: None
    facts: Callable[[onnx.ModelProto], dict[str, Any]] = lambda model: {}
    values: Sequence[np.ndarray] = ()
    at: Callable[[Sequence[np.ndarray]], Program] | None = None
    sized: Callable[[int], Sequence[np.ndarray]] | None = None  # None: the sizes are known


@dataclasses.dataclass(frozen=True)
class Case:
    """A program that is made when it is needed. `name` is unique and the same in every process."""

    name: str
    group: str
    dtype: str
    program: Callable[[], Program]
    is_double_variant: bool = False  # of a case that there is with 32-bit types too
    without_jax: str = "not run by jax"  # the outcome when JAX itself fails
    compares_refusals: bool = False  # whether our error must be JAX's then


def unpacked(want: np.ndarray, have: np.ndarray) -> np.ndarray:
    """Complex numbers cross the border of a model as a last axis of two parts."""
    is_packed = np.iscomplexobj(want) and have.dtype == want.real.dtype and have.shape[-1:] == (2,)
    return np.ascontiguousarray(have).view(want.dtype)[..., 0] if is_packed else have


def nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """All nodes: those of the graph, of functions, and of the bodies of control flow."""
    waiting = [*model.graph.node]
    for function in model.functions:
        waiting.extend(function.node)
    while waiting:
        node = waiting.pop()
        yield node
        for attribute in node.attribute:
            for nested in (attribute.g, *attribute.graphs):
                waiting.extend(nested.node)

# SPDX-License-Identifier: Apache-2.0
"""What a module of any framework looks like to the rest of jaxport."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from ..errors import ConversionError
from ..names import join, path_text


@dataclasses.dataclass(frozen=True)
class Program:
    """A function of arrays and of state, whatever form `fn` of to_onnx has.

    Attributes:
        function: has the parameters of the program and their names; only `call` is called.
        call: call(state, *arguments) gives the result and the new values of what changed, by name.
            `state` has the values of state that are not the module's own; None says that nobody
            asks for changes, so that the call is just what the user would write.
        holders: what the paths of weights start at.
        name: of the program.
        state: the arrays that a call may change, by name.
        random: names in `state` of random keys, which a call reads and does not change.
        input_names, output_names: the framework's own names, None where it has none.
    """

    function: Callable[..., Any]
    call: Callable[..., tuple[Any, dict[str, Any]]]
    holders: tuple[Any, ...]
    name: str = ""
    state: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    random: frozenset[str] = frozenset()
    input_names: Sequence[str] | None = None
    output_names: Sequence[str] | None = None


def loaded(module: str) -> Any:
    """A module that somebody has imported, else None: nobody has objects of the others."""
    return sys.modules.get(module)


def named_leaves(tree: Any, prefix: str = "") -> dict[str, Any]:
    """The leaves of a pytree by their paths."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {join(prefix, path_text(path)): leaf for path, leaf in leaves}


def with_leaves(tree: Any, values: Mapping[str, Any], prefix: str = "") -> Any:
    """The pytree with the values that are given for some of its paths."""
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: values.get(join(prefix, path_text(path)), leaf), tree
    )


def changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """What is another object than before: JAX never changes an array in place."""
    return {name: value for name, value in after.items() if value is not before.get(name)}


def has_no_variables(what: str, help: str) -> ConversionError:
    return ConversionError("E085", f"{what} has no variables", help=help)

# SPDX-License-Identifier: Apache-2.0
"""Names a person can read: of arguments, of results and of weights."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax

from .errors import ConversionError
from .inputs import Arguments, is_input


def path_text(path: Sequence[Any]) -> str:
    """A pytree path as "blocks.3.attn.query.kernel"."""
    return ".".join(map(key_text, path))


def key_text(key: Any) -> str:
    for field in ("name", "key", "idx"):
        if hasattr(key, field):
            return str(getattr(key, field))
    return str(key)


def join(*parts: str) -> str:
    return ".".join(part for part in parts if part)


def function_name(fn: Any) -> str:
    """The name of a function, or of the class of another object that can be called."""
    name = getattr(fn, "__name__", None)
    return name if isinstance(name, str) else type(fn).__name__


def parameter_names(fn: Callable[..., Any], count: int) -> list[str]:
    """Names of the first `count` positional parameters; "args_2" where *args takes them."""
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):  # builtins without a signature
        parameters = []
    names: list[str] = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}_{i}" for i in range(count - len(names))]
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    names += [f"input_{i}" for i in range(len(names), count)]
    return names[:count]


def input_names(
    fn: Callable[..., Any], arguments: Arguments, given: Sequence[str] | None
) -> list[str]:
    """One name for each input of the model. Raises ConversionError E072.

    Names that are given are those of the entries of `inputs`; input_params have their own.
    """
    positional = zip(
        parameter_names(fn, len(arguments.positional)), arguments.positional, strict=True
    )
    names = _input_leaf_names([*positional, *arguments.named.items()])
    names = _checked("input_names", given, len(names)) or names
    return distinct(names + _input_leaf_names(arguments.params.items()))


def _input_leaf_names(entries: Iterable[tuple[str, Any]]) -> list[str]:
    leaves = [leaf for entry in entries for leaf in named_leaves(*entry)]
    return [name for name, leaf in leaves if is_input(leaf)]


def named_leaves(name: str, value: Any) -> list[tuple[str, Any]]:
    """The leaves of an argument with the names of the inputs that they would be."""
    leaves = jax.tree_util.tree_flatten_with_path(value)[0]
    return [(join(name, path_text(path)), leaf) for path, leaf in leaves]


def output_names(result: Any, given: Sequence[str] | None, inputs: Sequence[str]) -> list[str]:
    """One name for each leaf of the result: "output", "output_0" or the result's own keys.

    Raises ConversionError E072 for given names that do not fit.
    """
    paths = [path for path, _ in jax.tree_util.tree_flatten_with_path(result)[0]]
    names = _checked("output_names", given, len(paths))
    if names is None:
        return distinct([_output_name(path) for path in paths], inputs)
    for name in names:
        if name in inputs:
            raise ConversionError(
                "E072",
                f"output_names holds {name!r}, the name of an input",
                help="give the output another name",
            )
    return names


def _output_name(path: Sequence[Any]) -> str:
    if not path:
        return "output"
    if isinstance(path[0], jax.tree_util.SequenceKey | jax.tree_util.FlattenedIndexKey):
        return f"output_{path_text(path)}"
    return path_text(path)


def _checked(argument: str, given: Sequence[str] | None, count: int) -> list[str] | None:
    if given is None:
        return None
    names = [str(name) for name in given]
    if len(names) != count:
        raise ConversionError(
            "E072",
            f"{argument} has {len(names)} names, {count} are needed",
            help="give one name for each array that goes in or out",
        )
    for name in names:
        if not name or names.count(name) > 1:
            what = "an empty name" if not name else f"{name!r} more than once"
            raise ConversionError(
                "E072", f"{argument} holds {what}", help="give each array a name of its own"
            )
    return names


def distinct(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """The names, with a number at the end of those that are taken."""
    used = set(taken)
    result = []
    for name in names:
        free, number = name, 0
        while free in used:
            free, number = f"{name}_{number}", number + 1
        used.add(free)
        result.append(free)
    return result

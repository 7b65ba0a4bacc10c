# SPDX-License-Identifier: Apache-2.0
"""What a user writes for inputs, as abstract arguments that JAX can trace."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, cast

import jax
import jax.export
import numpy as np

from . import _jax
from .errors import ConversionError, first_line


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Positional arguments: pytrees with jax.ShapeDtypeStruct leaves, and their symbolic scope."""

    values: tuple[Any, ...]
    scope: jax.export.SymbolicScope


def is_shape(entry: Any) -> bool:
    """Whether an entry is a shape such as ("B", 28, 28, 3): sizes, names and expressions."""
    return (
        isinstance(entry, tuple | list)
        and not hasattr(entry, "_fields")
        and all(
            isinstance(size, int | np.integer | str) or _jax.is_symbolic(size) for size in entry
        )
    )


def is_spec(entry: Any) -> bool:
    """Whether an entry describes one array: a shape, a ShapeDtypeStruct or an array."""
    return is_shape(entry) or (hasattr(entry, "shape") and hasattr(entry, "dtype"))


def is_array(entry: Any) -> bool:
    return isinstance(entry, np.ndarray | np.generic | jax.Array)


def read_inputs(inputs: Sequence[Any], default_dtype: Any) -> Arguments:
    """Reads `inputs` of to_onnx. Raises ConversionError E070 or E071."""
    if not isinstance(inputs, tuple | list):
        raise ConversionError(
            "E070",
            f"inputs is a {type(inputs).__name__}, not a list",
            help='write one entry for each argument, such as inputs=[("B", 3), (4,)]',
        )
    leaves = [leaf for entry in inputs for leaf in jax.tree.leaves(entry, is_leaf=is_spec)]
    scope = _scope_of(leaves)
    values = [
        jax.tree.map(
            lambda leaf, index=index: _read_spec(leaf, index, scope, default_dtype),
            entry,
            is_leaf=is_spec,
        )
        for index, entry in enumerate(inputs)
    ]
    return Arguments(tuple(values), scope)


def describe(value: Any) -> str:
    """ "float32[B,3]", or the tree of such types for a nested argument."""
    if isinstance(value, jax.ShapeDtypeStruct):
        return f"{value.dtype.name}[{','.join(map(str, value.shape))}]"
    leaves, tree = jax.tree.flatten(value)
    return str(jax.tree.unflatten(tree, [describe(leaf) for leaf in leaves])).replace("'", "")


def _scope_of(leaves: Sequence[Any]) -> jax.export.SymbolicScope:
    """The scope of the symbolic sizes the user brought along, or a fresh one."""
    for leaf in leaves:
        for size in leaf if is_shape(leaf) else getattr(leaf, "shape", ()):
            if _jax.is_symbolic(size):
                return cast(jax.export.SymbolicScope, size.scope)
    return jax.export.SymbolicScope()


def _read_spec(
    leaf: Any, index: int, scope: jax.export.SymbolicScope, default_dtype: Any
) -> jax.ShapeDtypeStruct:
    if is_shape(leaf):
        shape, dtype = leaf, default_dtype
    elif is_spec(leaf):
        shape, dtype = leaf.shape, leaf.dtype
        if is_array(leaf) and not isinstance(
            leaf, jax.Array
        ):  # JAX narrows these without 64-bit types
            dtype = jax.dtypes.canonicalize_dtype(dtype)
    else:
        raise ConversionError(
            "E070",
            f"entry {index} of inputs holds {leaf!r}, which describes no array",
            help='use a shape such as ("B", 3), a jax.ShapeDtypeStruct or an array; '
            "one shape alone is written inputs=[(3, 4)], and a dataclass is registered with "
            "jax.tree_util.register_dataclass",
        )
    sizes = tuple(_read_size(size, index, scope) for size in shape)
    return jax.ShapeDtypeStruct(sizes, dtype)  # type: ignore[no-untyped-call]


def _read_size(size: Any, index: int, scope: jax.export.SymbolicScope) -> Any:
    if not isinstance(size, str):
        if not _jax.is_symbolic(size) and size < 0:
            raise _bad_size(size, index, "sizes are not negative")
        return size
    try:
        dims = jax.export.symbolic_shape(size, scope=scope)
    except Exception as error:
        raise _bad_size(size, index, first_line(error)) from error
    if len(dims) != 1:
        raise _bad_size(size, index, f"it holds {len(dims)} sizes")
    return dims[0]


def _bad_size(size: Any, index: int, why: str) -> ConversionError:
    return ConversionError(
        "E071",
        f"size {size!r} in entry {index} of inputs cannot be used: {why}",
        help='sizes are integers, names such as "B" and expressions such as "2*T + 1" '
        'or "floordiv(T, 2)"',
    )

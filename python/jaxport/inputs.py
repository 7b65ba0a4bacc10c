# SPDX-License-Identifier: Apache-2.0
"""What a user writes for inputs, as abstract arguments that JAX can trace."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, cast

import jax
import jax.export
import jax.numpy as jnp
import numpy as np

from . import _jax
from .errors import ConversionError, first_line

# One entry for each argument, by position or by name
Inputs = Sequence[Any] | Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Arguments:
    """What a function is called with while it is traced: pytrees, whose leaves are inputs of the
    model where they are a jax.ShapeDtypeStruct, and values that are known otherwise.

    Attributes:
        positional, named: the entries of to_onnx(inputs=), by position and by name.
        params: the entries of to_onnx(input_params=).
        scope: of the symbolic sizes.
    """

    positional: tuple[Any, ...]
    named: dict[str, Any]
    params: dict[str, Any]
    scope: jax.export.SymbolicScope

    @property
    def keywords(self) -> dict[str, Any]:
        return {**self.named, **self.params}


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


def is_number(entry: Any) -> bool:
    return is_array(entry) or isinstance(entry, bool | int | float | complex)


def read_inputs(inputs: Inputs, default_dtype: Any) -> Arguments:
    """Reads `inputs` of to_onnx. Raises ConversionError E070 or E071."""
    if not isinstance(inputs, tuple | list | Mapping):
        raise ConversionError(
            "E070",
            f"inputs is a {type(inputs).__name__}, not a list",
            help='write one entry for each argument, such as inputs=[("B", 3), (4,)] or '
            'inputs={"x": ("B", 3), "y": (4,)}',
        )
    entries = dict(inputs) if isinstance(inputs, Mapping) else dict(enumerate(inputs))
    leaves = [leaf for entry in entries.values() for leaf in spec_leaves(entry)]
    scope = _scope_of(leaves)

    def read(key: int | str, entry: Any) -> Any:
        if isinstance(entry, bool | str) or callable(entry):  # a static argument
            return entry
        return jax.tree.map(
            lambda leaf: _read_spec(leaf, key, scope, default_dtype), entry, is_leaf=is_spec
        )

    values = {key: read(key, entry) for key, entry in entries.items()}
    if isinstance(inputs, Mapping):
        return Arguments((), {str(key): value for key, value in values.items()}, {}, scope)
    return Arguments(tuple(values.values()), {}, {}, scope)


def spec_leaves(entry: Any) -> list[Any]:
    """The leaves of an entry of inputs: what describes an array is one, though it is a tuple."""
    return jax.tree.leaves(entry, is_leaf=is_spec)


def is_input(leaf: Any) -> bool:
    """Whether a leaf of the arguments is an input of the model; all others are known values."""
    return isinstance(leaf, jax.ShapeDtypeStruct)


def param_spec(value: Any) -> Any:
    """A value of input_params as inputs of the model, of the dtypes that JAX gives such values.

    A text or another object that is no number stays as it is.
    """

    def spec(leaf: Any) -> Any:
        if not is_number(leaf):
            return leaf
        array = jnp.asarray(leaf)
        return jax.ShapeDtypeStruct(array.shape, array.dtype, weak_type=array.weak_type)  # type: ignore[no-untyped-call]

    return jax.tree.map(spec, value)


def describe(value: Any) -> str:
    """ "float32[B,3]", or the tree of such types for a nested argument."""
    if is_input(value):
        return f"{value.dtype.name}[{','.join(map(str, value.shape))}]"
    if jax.tree_util.all_leaves([value]):
        return repr(value)
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
    leaf: Any, key: int | str, scope: jax.export.SymbolicScope, default_dtype: Any
) -> Any:
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
            f"entry {key!r} of inputs holds {leaf!r}, which describes no array",
            help='use a shape such as ("B", 3), a jax.ShapeDtypeStruct or an array; one shape '
            "alone is written inputs=[(3, 4)], a number goes to input_params, and a dataclass is "
            "registered with jax.tree_util.register_dataclass",
        )
    sizes = tuple(_read_size(size, key, scope) for size in shape)
    return jax.ShapeDtypeStruct(sizes, dtype)  # type: ignore[no-untyped-call]


def _read_size(size: Any, key: int | str, scope: jax.export.SymbolicScope) -> Any:
    if not isinstance(size, str):
        if not _jax.is_symbolic(size) and size < 0:
            raise _bad_size(size, key, "sizes are not negative")
        return size
    try:
        dims = jax.export.symbolic_shape(size, scope=scope)
    except Exception as error:
        raise _bad_size(size, key, first_line(error)) from error
    if len(dims) != 1:
        raise _bad_size(size, key, f"it holds {len(dims)} sizes")
    return dims[0]


def _bad_size(size: Any, key: int | str, why: str) -> ConversionError:
    return ConversionError(
        "E071",
        f"size {size!r} in entry {key!r} of inputs cannot be used: {why}",
        help='sizes are integers, names such as "B" and expressions such as "2*T + 1" '
        'or "floordiv(T, 2)"',
    )

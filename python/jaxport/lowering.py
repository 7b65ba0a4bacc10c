# SPDX-License-Identifier: Apache-2.0
"""jaxport.register_lowering: ONNX nodes for a primitive of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from . import _core
from .registry import register

_registered: dict[str, Callable[..., Any]] = {}


def register_lowering(primitive: Any, fn: Callable[..., Any] | None = None) -> Any:
    """Says which ONNX nodes a primitive becomes, for conversions from now on.

    Args:
        primitive: a primitive or its name.
        fn: called as fn(c, *operands, **params) with a Context, the operands as values of the
            model and the parameters of the equation. Gives the result, or a sequence of results,
            with the shapes and dtypes that the primitive declares.

    Returns:
        fn, or a decorator when fn is left out.

    A lowering goes before what jaxport does with the primitive by itself.
    """
    return register(_registered, primitive, fn)


def is_registered(primitive: str) -> bool:
    return primitive in _registered


class Context:
    """What a lowering builds nodes with.

    Attributes:
        op: one method for each ONNX op: c.op.Clip(x, 0.0, 1.0), c.op.Concat(x, y, axis=0).
            Operands are values, numpy arrays, numbers (in the dtype of the first value) or None;
            keywords are attributes.
        opset: the opset of the model.
    """

    def __init__(self, lowering: _core.Lowering) -> None:
        self.op = _Ops(lowering)
        self.opset = lowering.opset


class _Ops:
    def __init__(self, lowering: _core.Lowering) -> None:
        self._lowering = lowering

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*operands: Any, outputs: int = 1, **attributes: Any) -> Any:
            values = self._values(operands)
            results = self._lowering.call(name, values, attributes, outputs)
            return results[0] if outputs == 1 else results

        return call

    def _values(self, operands: tuple[Any, ...]) -> list[_core.Value | None]:
        dtypes = [_numpy_dtype(x.dtype) for x in operands if isinstance(x, _core.Value)]
        return [
            x if x is None or isinstance(x, _core.Value) else self._constant(x, dtypes)
            for x in operands
        ]

    def _constant(self, number: Any, dtypes: list[np.dtype[Any]]) -> _core.Value:
        is_plain = isinstance(number, bool | int | float) and dtypes
        array = np.asarray(number, dtypes[0] if is_plain else None)
        return self._lowering.constant(np.ascontiguousarray(array).reshape(array.shape))


def _numpy_dtype(name: str) -> np.dtype[Any]:
    """The numpy dtype for a name such as f32, i64, bool, bf16."""
    kinds = {"f": "float", "i": "int", "u": "uint"}
    plain = name if name in ("bool", "bf16") else f"{kinds[name[0]]}{name[1:]}"
    dtype: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16 if name == "bf16" else plain)
    return dtype


def functions() -> dict[str, Callable[[_core.Lowering], list[_core.Value]]]:
    """What the compiler calls, by primitive."""

    def adapted(fn: Callable[..., Any]) -> Callable[[_core.Lowering], list[_core.Value]]:
        def lower(lowering: _core.Lowering) -> list[_core.Value]:
            result = fn(Context(lowering), *lowering.operands, **lowering.params)
            return list(result) if isinstance(result, tuple | list) else [result]

        return lower

    return {name: adapted(fn) for name, fn in _registered.items()}

# SPDX-License-Identifier: Apache-2.0
"""keras.Model.export(format="onnx") on the JAX backend, through jaxport.

Keras calls to_onnx of a module that it looks up as jax2onnx when it needs it. enable() puts jaxport
in its place, for Keras alone: `import jax2onnx` gives what it gave before.
"""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable, Sequence
from typing import Any

from ..api import to_onnx

_previous: list[Any] = []  # what Keras had in place of jaxport, while it is enabled


def enable() -> None:
    """From now on, Model.export(format="onnx") converts with jaxport. Needs Keras 3.15 or newer."""
    if not _previous:
        found = _found_by_keras()
        _previous.append(found.module)
        found.module = types.SimpleNamespace(to_onnx=_to_onnx)


def disable() -> None:
    """Keras converts with what it used before."""
    if _previous:
        _found_by_keras().module = _previous.pop()


def _found_by_keras() -> Any:
    """Keras' own handle of the converter, whose `module` it fills in at the first use."""
    modules = importlib.import_module("keras.src.utils.module_utils")
    try:
        return modules.jax2onnx
    except AttributeError:
        raise ImportError("this Keras has no export to ONNX on the JAX backend; 3.15 has") from None


def _to_onnx(fn: Callable[..., Any], inputs: Sequence[Any], **options: Any) -> Any:
    keras = importlib.import_module("keras")

    def stateless(*arguments: Any) -> Any:
        with keras.StatelessScope():  # what a call assigns to variables is forgotten
            return fn(*arguments)

    return to_onnx(stateless, inputs, **options)

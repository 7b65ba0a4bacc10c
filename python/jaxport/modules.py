# SPDX-License-Identifier: Apache-2.0
"""Modules of Flax NNX that change their own state while they are called.

A counter of random keys or running statistics may only change in the trace that made them. Such a
module is called as a copy that is made inside of the trace; what it changes is forgotten, as ONNX
has no state.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def is_change_of_state(error: Exception) -> bool:
    """Whether tracing failed because a module changed its own state."""
    errors = sys.modules.get("flax.errors")
    return errors is not None and isinstance(error, errors.TraceContextError)


def copied_inside(fn: Callable[..., Any]) -> Callable[..., Any] | None:
    """Calls a fresh copy of the module that `fn` is, or is a method of; None when there is none."""
    nnx = sys.modules.get("flax.nnx")
    owner = getattr(fn, "__self__", fn)
    if nnx is None or not isinstance(owner, nnx.Module):
        return None
    method = "__call__" if owner is fn else fn.__name__
    return lambda *args, **kwargs: getattr(nnx.clone(owner), method)(*args, **kwargs)

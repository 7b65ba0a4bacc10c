# SPDX-License-Identifier: Apache-2.0
"""Tables of what users say about primitives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_Fn = TypeVar("_Fn", bound=Callable[..., Any])


def register(table: dict[str, Callable[..., Any]], primitive: Any, fn: _Fn | None) -> Any:
    """Enters fn for a primitive or its name; a decorator that does so when fn is None."""
    name = str(getattr(primitive, "name", primitive))

    def enter(function: _Fn) -> _Fn:
        table[name] = function
        return function

    return enter if fn is None else enter(fn)

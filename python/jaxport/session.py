# SPDX-License-Identifier: Apache-2.0
"""Who watches a conversion: the limits it keeps, its messages, and how far it is."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
from collections.abc import Iterator

from . import _core
from .errors import ConversionError


@dataclasses.dataclass(frozen=True)
class Limits:
    """What a conversion may take; beyond it ConversionError E110 ends it.

    Attributes:
        nodes: equations of the program, those of calls and unrolled loops as often as they are
            inlined, and nodes of each graph of the model.
        bytes: of an array that the compiler computes, and of the model.
        depth: functions and lists inside of each other.
        seconds: of importing and compiling together, and again of writing; None is no limit.
    """

    nodes: int = 1_000_000
    bytes: int = 2**40
    depth: int = 200
    seconds: float | None = None


@contextlib.contextmanager
def watched(limits: Limits | None = None) -> Iterator[_core.Session]:
    """A session for one conversion; nobody is called and nothing is shown after it.

    JAXPORT_DUMP and JAXPORT_LOG say what is kept and printed: docs/debugging.md.
    """
    limits = Limits() if limits is None else limits
    if not isinstance(limits, Limits):
        raise ConversionError(
            "E075", f"limits {limits!r} is no choice", help="give jaxport.Limits(nodes=…)"
        )
    session = _core.Session(
        nodes=limits.nodes,
        bytes=limits.bytes,
        depth=limits.depth,
        seconds=limits.seconds,
        dump=os.environ.get("JAXPORT_DUMP", ""),
        log=os.environ.get("JAXPORT_LOG", ""),
        shows_progress=sys.stderr is not None and sys.stderr.isatty(),
        print=_print,
    )
    try:
        yield session
    finally:
        session.close()


def _print(line: str) -> None:
    print(line, file=sys.stderr)

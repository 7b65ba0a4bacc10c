# SPDX-License-Identifier: Apache-2.0
"""A line that counts while somebody waits."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def progress(what: str, items: Iterable[T], count: int) -> Iterator[T]:
    """Hands items on and counts them for whoever waits, in one line of a terminal."""
    start, is_terminal = time.monotonic(), sys.stderr.isatty()
    for number, item in enumerate(items, 1):
        if number == count or number % (20 if is_terminal else 1000) == 0:
            line = f"{what} {number} of {count}, {time.monotonic() - start:.0f} s"
            end = "\r" if is_terminal and number < count else "\n"
            print(line, end=end, file=sys.stderr, flush=True)
        yield item

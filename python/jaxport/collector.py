# SPDX-License-Identifier: Apache-2.0
"""Python's garbage collector, which looks at every object of a large program each time it runs."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def paused_collector() -> Iterator[None]:
    """No collection inside: reading and compiling a program makes no garbage that has cycles.

    The setting belongs to the process. Whoever found the collector running starts it again, so a
    second thread at most collects a little earlier.
    """
    was_running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_running:
            gc.enable()

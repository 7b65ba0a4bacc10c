# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os

import pytest

import quick_xla

# One device and no accelerator probing; must be set before JAX starts. Most programs here run once,
# so that compiling them well takes longer than it gains.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", quick_xla.FLAGS)
os.environ.setdefault("JAXPORT_CHECK", "1")  # what every stage and pass makes is verified


@pytest.fixture(autouse=True)
def _registrations_end_with_the_test(monkeypatch):
    """What a test, or the code of a page, registers for a primitive would decide about others."""
    from jaxport import decompose, lowering

    for table in (decompose, lowering):
        monkeypatch.setattr(table, "_registered", dict(table._registered))

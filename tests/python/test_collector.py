# SPDX-License-Identifier: Apache-2.0
"""Python's garbage collector does not run while a program is read and compiled."""

import gc

import jax.numpy as jnp
import pytest

import jaxport
from jaxport import _core
from jaxport.collector import paused_collector


@pytest.fixture
def running(monkeypatch):
    """Whether the collector ran, for each call of the core."""
    states = []
    for name in ("import_jaxpr", "compile"):
        original = getattr(_core, name)

        def watched(*args, original=original, **kwargs):
            states.append(gc.isenabled())
            return original(*args, **kwargs)

        monkeypatch.setattr(_core, name, watched)
    return states


def test_paused_in_conversion(running):
    jaxport.to_onnx(jnp.sin, [("B", 4)])
    assert running == [False, False]
    assert gc.isenabled()


def test_paused_stays_paused_and_an_error_starts_it_again():
    with pytest.raises(ValueError, match="inside"), paused_collector():
        raise ValueError("inside")
    assert gc.isenabled()
    gc.disable()
    try:
        with paused_collector():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()

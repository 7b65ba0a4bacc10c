# SPDX-License-Identifier: Apache-2.0
"""Running models of modules: inputs by name, checked against JAX."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import jaxport
from jaxport import runtime


def keras_on_jax(monkeypatch):
    """Keras with JAX as its backend."""
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    return pytest.importorskip("keras", reason="the oldest environment has no Keras")


def haiku():
    return pytest.importorskip("haiku", reason="the oldest environment has no Haiku")


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def inputs_of(model):
    return [value.name for value in runtime.open_session(model).get_inputs()]


def outputs_of(model):
    return [value.name for value in runtime.open_session(model).get_outputs()]


def run(model, **feeds):
    """Results by name; inputs that are not given have the values that the model came with."""
    return run_on(model, feeds)


def run_on(model, feeds):
    session = runtime.open_session(model)
    known = {**model.parameters, **model.state, **feeds}
    return runtime.run(session, [np.asarray(known[name]) for name in inputs_of(model)])


def check(fn, inputs, **options):
    """Converts, compares with JAX through jaxport.allclose, and gives the model."""
    model = jaxport.to_onnx(fn, inputs, return_mode="model", **options)
    good, message = jaxport.allclose(fn, model, inputs, rtol=1e-5, atol=1e-5)
    assert good, message
    return model


def assert_close(have, want):
    np.testing.assert_allclose(have, jax.device_get(want), rtol=1e-5, atol=1e-5)


def weights_of(model):
    return {tensor.name for tensor in model.to_proto().graph.initializer}

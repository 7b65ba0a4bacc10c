# SPDX-License-Identifier: Apache-2.0
"""keras.Model.export(format="onnx") through jaxport, when it is asked to."""

from __future__ import annotations

import sys

import numpy as np
import onnx
import pytest

from jaxport import runtime
from support.modules import keras_on_jax, numbers


@pytest.fixture
def keras(monkeypatch):
    found = keras_on_jax(monkeypatch)
    pytest.importorskip("keras.src.export.onnx", reason="this Keras has no export to ONNX")
    from jaxport.integrations import keras as integration

    integration.enable()
    yield found
    integration.disable()


def exported(net, path, **options):
    net.export(path, format="onnx", verbose=False, **options)
    return onnx.load(path)


def two_inputs(keras):
    left, right = keras.Input((4,), name="left"), keras.Input((4,), name="right")
    dense = keras.layers.Dense(3, name="dense")
    net = keras.Model([left, right], dense(left) + dense(right), name="two")
    net([numbers(1, 4), numbers(1, 4)])  # Keras wants a call before an export
    return net


def test_a_model_is_exported_by_jaxport(keras, tmp_path):
    net = two_inputs(keras)
    model = exported(net, tmp_path / "m.onnx")
    assert model.producer_name == "jaxport"
    assert [value.name for value in model.graph.input] == ["left", "right"]
    left, right = numbers(5, 4), numbers(5, 4, seed=1)
    session = runtime.open_session(tmp_path / "m.onnx")
    (result,) = runtime.run(session, [left, right]).values()
    np.testing.assert_allclose(result, net([left, right]), rtol=1e-5, atol=1e-6)


def test_the_opset_is_kept(keras, tmp_path):
    model = exported(two_inputs(keras), tmp_path / "m.onnx", opset_version=21)
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", 21)]


def test_a_model_that_assigns_variables_stays_as_it_is(keras, tmp_path):
    class Counter(keras.Model):
        def __init__(self):
            super().__init__()
            self.calls = self.add_weight(shape=(), initializer="zeros", trainable=False)

        def call(self, x):
            self.calls.assign_add(1.0)
            return x + self.calls

    net = Counter()
    net(np.zeros((1, 2), np.float32))
    exported(net, tmp_path / "m.onnx")
    assert float(net.calls.value) == 1.0


def test_disable_gives_keras_back_what_it_had(keras):
    from keras.src.utils.module_utils import jax2onnx

    from jaxport.integrations import keras as integration

    integration.enable()  # a second time changes nothing
    assert jax2onnx.module.to_onnx.__module__ == "jaxport.integrations.keras"
    assert getattr(sys.modules.get("jax2onnx"), "__name__", "jax2onnx") == "jax2onnx"
    integration.disable()
    integration.disable()
    assert getattr(jax2onnx.module, "__name__", "jax2onnx") == "jax2onnx"

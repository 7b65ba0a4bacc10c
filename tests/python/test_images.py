# SPDX-License-Identifier: Apache-2.0
"""Networks of images whose models take NCHW: a ResNet-50 written in NHWC has no Transpose."""

from __future__ import annotations

import collections
import functools

import numpy as np
import pytest
from flax import nnx

import jaxport
from jaxport import runtime
from support.modules import keras_on_jax

STAGES, WIDTH, CLASSES = (3, 4, 6, 3), 4, 10  # the blocks of ResNet-50, of fewer channels


def strides():
    """Channels and stride of each block."""
    for stage, count in enumerate(STAGES):
        for block in range(count):
            yield WIDTH * 2**stage, 2 if stage and not block else 1


class Bottleneck(nnx.Module):
    def __init__(self, width_in, width, stride, rngs):
        conv = functools.partial(nnx.Conv, use_bias=False, rngs=rngs)
        norm = functools.partial(nnx.BatchNorm, use_running_average=True, rngs=rngs)
        self.squeeze, self.norm0 = conv(width_in, width, (1, 1)), norm(width)
        self.conv, self.norm1 = conv(width, width, (3, 3), strides=stride), norm(width)
        self.expand, self.norm2 = conv(width, 4 * width, (1, 1)), norm(4 * width)
        is_same = width_in == 4 * width and stride == 1
        projection = (
            () if is_same else (conv(width_in, 4 * width, (1, 1), strides=stride), norm(4 * width))
        )
        self.shortcut = nnx.Sequential(*projection)

    def __call__(self, x):
        y = nnx.relu(self.norm0(self.squeeze(x)))
        y = nnx.relu(self.norm1(self.conv(y)))
        return nnx.relu(self.shortcut(x) + self.norm2(self.expand(y)))


class ResNet(nnx.Module):
    def __init__(self, rngs):
        self.stem = nnx.Conv(3, WIDTH, (7, 7), strides=2, use_bias=False, rngs=rngs)
        self.norm = nnx.BatchNorm(WIDTH, use_running_average=True, rngs=rngs)
        blocks, width_in = [], WIDTH
        for width, stride in strides():
            blocks.append(Bottleneck(width_in, width, stride, rngs))
            width_in = 4 * width
        self.blocks = nnx.Sequential(*blocks)
        self.head = nnx.Linear(width_in, CLASSES, rngs=rngs)

    def __call__(self, x):
        x = nnx.relu(self.norm(self.stem(x)))
        x = self.blocks(nnx.max_pool(x, (3, 3), strides=(2, 2), padding="SAME"))
        return self.head(x.mean((1, 2)))


def keras_resnet(keras):
    layers = keras.layers

    def unit(x, width, size, stride=1):
        x = layers.Conv2D(width, size, stride, padding="same", use_bias=False)(x)
        return layers.BatchNormalization()(x)

    image = keras.Input((64, 64, 3), name="image")
    x = layers.ReLU()(unit(image, WIDTH, 7, 2))
    x = layers.MaxPooling2D(3, 2, padding="same")(x)
    for width, stride in strides():
        y = layers.ReLU()(unit(x, width, 1))
        y = unit(layers.ReLU()(unit(y, width, 3, stride)), 4 * width, 1)
        is_same = stride == 1 and x.shape[-1] == 4 * width
        x = layers.ReLU()(layers.Add()([x if is_same else unit(x, 4 * width, 1, stride), y]))
    return keras.Model(image, layers.Dense(CLASSES)(layers.GlobalAveragePooling2D()(x)))


def ops_of(model):
    return collections.Counter(node.op_type for node in model.graph.node)


def assert_same_values(model, net):
    x = np.random.default_rng(0).uniform(-1, 1, (2, 64, 64, 3)).astype(np.float32)
    (have,) = runtime.run(runtime.open_session(model), [x.transpose(0, 3, 1, 2)]).values()
    np.testing.assert_allclose(have, np.asarray(net(x)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [("B", 64, 64, 3), ("B", "32*H", "32*W", 3)], ids=str)
def test_a_resnet_of_nnx_has_no_transpose(shape):
    net = ResNet(nnx.Rngs(0))
    model = jaxport.to_onnx(net, [shape], inputs_as_nchw=[0])
    assert ops_of(model)["Conv"] == 53
    assert ops_of(model)["Transpose"] == 0
    assert_same_values(model, net)
    assert ops_of(jaxport.to_onnx(net, [shape]))["Transpose"] == 1  # the image itself


def test_a_resnet_of_keras_has_no_transpose(monkeypatch):
    net = keras_resnet(keras_on_jax(monkeypatch))
    model = jaxport.to_onnx(net, [("B", 64, 64, 3)], inputs_as_nchw=[0])
    assert ops_of(model)["Conv"] == 53
    assert ops_of(model)["Transpose"] == 0
    assert_same_values(model, net)

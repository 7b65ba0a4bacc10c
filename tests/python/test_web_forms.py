# SPDX-License-Identifier: Apache-2.0
"""Models for browsers: WebGPU may run them, and has other kernels than WebAssembly."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import jaxport
from jaxport import runtime

IMAGES = np.random.default_rng(0).standard_normal((2, 4, 6, 3), dtype=np.float32)


def resize_nodes(shape, method, target):
    def resized(x):
        return jax.image.resize(x, shape, method)

    model = jaxport.to_onnx(resized, [IMAGES], return_mode="model", target=target)
    (have,) = runtime.run(runtime.open_session(model.to_proto()), [IMAGES]).values()
    np.testing.assert_allclose(have, resized(IMAGES), rtol=1e-5, atol=1e-5)
    nodes = [node for node in model.to_proto().graph.node if node.op_type == "Resize"]
    return [{a.name: list(a.ints) or a.i for a in node.attribute} for node in nodes]


@pytest.mark.parametrize("method", ["bilinear", "bicubic"])
@pytest.mark.parametrize("shape", [(2, 8, 12, 3), (2, 3, 5, 3)])
def test_an_interpolation_is_a_product(method, shape):
    assert resize_nodes(shape, method, "onnxruntime-web") == []


def test_a_cpu_interpolates_with_the_channels_last():
    (node,) = resize_nodes((2, 8, 12, 3), "bilinear", "onnxruntime")
    assert node["axes"] == [1, 2]


def test_the_nearest_pixel_is_a_resize():
    (node,) = resize_nodes((2, 8, 12, 3), "nearest", "onnxruntime-web")
    assert node["axes"] == [1, 2]

# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime inlines functions and then rewrites across their borders: its faults are avoided."""

from __future__ import annotations

import functools
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import onnxruntime
import pytest

import jaxport
from jaxport import onnx_function


@pytest.mark.parametrize("place", ["before", "after", "inside before", "inside after"])
def test_scales_beside_a_function_keep_their_digits(place):
    # ONNX Runtime, which inlines functions, would merge the scale into MatMul as one number of f32.
    product = onnx_function(lambda x, y: x @ y, name="product")
    scaled = onnx_function(lambda x: x * 0.1, name="scaled")

    def fn(x):
        y = jnp.swapaxes(x, 1, 2)
        return {
            "before": lambda: product(x * 0.1, y),
            "after": lambda: product(x, y) * 0.1,
            "inside before": lambda: scaled(x) @ y,
            "inside after": lambda: scaled(x @ y),
        }[place]()

    model = jaxport.to_onnx(fn, [("B", 4, 5)], enable_double_precision=True)
    x = np.random.default_rng(0).normal(size=(2, 4, 5))
    session = onnxruntime.InferenceSession(model.SerializeToString())
    expected = 0.1 * (x @ x.swapaxes(1, 2))
    np.testing.assert_allclose(session.run(None, {"x": x})[0], expected, rtol=1e-12)
    assert len(model.functions) == 1


def test_transposed_operands_that_are_converted_beside_a_function(tmp_path):
    # ONNX Runtime 1.31 crashes while it loads Transpose, Cast, MatMul, wherever functions end.
    def turn(x):
        return jnp.transpose(x, (1, 0, 2))

    def widen(x):
        return x.astype(jnp.float32)

    def product(x):
        return x @ jnp.ones((4, 3))

    def composed(program):
        return lambda x: functools.reduce(lambda y, step: step(y), program, x)

    steps = (turn, widen, product)
    marked = [onnx_function(step) for step in steps]
    whole = onnx_function(lambda x: product(widen(x)), name="last_two")
    programs = [
        *([*steps[:i], marked[i], *steps[i + 1 :]] for i in range(3)),
        [turn, whole],
        [onnx_function(lambda x: widen(turn(x)), name="first_two"), product],
    ]
    for i, program in enumerate(programs):
        x = jax.ShapeDtypeStruct((2, 5, 4), jnp.bfloat16)
        model = jaxport.to_onnx(composed(program), [x])
        assert len(model.functions) == 1
        (tmp_path / f"{i}.onnx").write_bytes(model.SerializeToString())
    run = "import sys, onnxruntime\nfor path in sys.argv[1:]: onnxruntime.InferenceSession(path)"
    paths = sorted(map(str, tmp_path.iterdir()))
    assert subprocess.run([sys.executable, "-c", run, *paths], check=False).returncode == 0


def test_empty_products_beside_a_function():
    # ONNX Runtime 1.31 divides by 0 in MatMul that is merged with a Transpose of no elements.
    heads = onnx_function(lambda x: jnp.transpose(x, (1, 0, 2)), name="heads")
    scores = onnx_function(lambda q, k: q @ jnp.swapaxes(k, 1, 2), name="scores")
    run = (
        "import sys, numpy, onnxruntime\n"
        "session = onnxruntime.InferenceSession(sys.stdin.buffer.read())\n"
        "session.run(None, {'x': numpy.zeros((0, 3, 4), numpy.float32)})"
    )
    for split, score in ((heads, scores.__wrapped__), (heads.__wrapped__, scores)):

        def fn(x, split=split, score=score):
            return score(split(x), split(x))

        model = jaxport.to_onnx(lambda x: fn(x), [("T", 3, 4)]).SerializeToString()
        loaded = subprocess.run([sys.executable, "-c", run], input=model, check=False)
        assert loaded.returncode == 0

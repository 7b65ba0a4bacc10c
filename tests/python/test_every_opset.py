# SPDX-License-Identifier: Apache-2.0
"""One program, with what changed most between opsets, at each of them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest
from jax import lax

import jaxport
from jaxport import runtime
from support.modules import numbers

OPSETS = range(16, 27)


def program(x):
    """Reductions, normalisation, attention, an activation, a resize, a pad, a sort and a loop."""
    mean = x.mean(-1, keepdims=True)
    normal = (x - mean) * lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5)
    attended = jax.nn.dot_product_attention(normal[:, :, None], x[:, :, None], x[:, :, None])
    active = jax.nn.gelu(attended[:, :, 0]) + jax.nn.softmax(x)
    larger = jax.image.resize(active, (2, 6, 16), "bilinear")
    padded = jnp.pad(larger, ((0, 0), (1, 1), (0, 0)), mode="reflect")
    ordered = jnp.sort(padded, axis=1)
    return lax.fori_loop(0, 3, lambda i, y: jnp.cumsum(y, 1) / (i + 1.0), ordered), x.argmax(-1)


@pytest.mark.parametrize("opset", OPSETS)
def test_a_program_at_an_opset(opset):
    model = jaxport.to_onnx(program, [(2, 3, 8)], opset=opset)
    assert {entry.domain: entry.version for entry in model.opset_import}[""] == opset
    onnx.checker.check_model(model, full_check=True)
    x = numbers(2, 3, 8)
    results = runtime.run(runtime.open_session(model), [x]).values()
    for have, want in zip(results, program(x), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("opset", [OPSETS.start - 1, OPSETS.stop])
def test_other_opsets_are_refused(opset):
    with pytest.raises(jaxport.ConversionError) as caught:
        jaxport.to_onnx(program, [(2, 3, 8)], opset=opset)
    assert caught.value.code == "E011"

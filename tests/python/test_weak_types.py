# SPDX-License-Identifier: Apache-2.0
"""Python's numbers have no dtype of their own in JAX; results have those that JAX gives them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxport
from jaxport import _jax, runtime

DTYPES = ("bool", "int8", "uint8", "int32", "uint32", "float16", "bfloat16", "float32")

FUNCTIONS = {
    "times a float": lambda x: x * 2.5,
    "plus an int": lambda x: x + 1,
    "divided": lambda x: x / 3,
    "a choice": lambda x: jnp.where(x > 0, x, 1.5),
    "two numbers only": lambda x: jnp.where(x > 0, 1, 2.5),
    "a weak array": lambda x: jnp.asarray(2.5) * x,
    "a strong array": lambda x: jnp.full((), 2.5, jnp.float32) * x,
    "a maximum": lambda x: jnp.maximum(x, 0.5),
    "a count": lambda x: jnp.sum(x > 0) * 0.5,
    "an index": lambda x: lax.fori_loop(0, 3, lambda i, y: y + i.astype(x.dtype), x) * 1.0,
    "a carry": lambda x: lax.scan(lambda c, r: (c * 0.5, r), 1.0, x)[0] * x,
    "a branch": lambda x: lax.cond(x[0] > 0, lambda: 1.0, lambda: 2.0) + x,
    "a number alone": lambda x: (2, 2.5, True, 1j),
}


@pytest.mark.parametrize("double", [False, True], ids=["32 bits", "64 bits"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fn", FUNCTIONS.values(), ids=FUNCTIONS)
def test_results_have_the_dtypes_of_jax(fn, dtype, double):
    x = np.asarray([1, 0, 3]).astype(jnp.dtype(dtype))
    model = jaxport.to_onnx(
        fn, [jax.ShapeDtypeStruct(x.shape, x.dtype)], enable_double_precision=double
    )
    results = runtime.run(runtime.open_session(model), [x]).values()
    with _jax.double_precision(double):
        wanted = [jnp.asarray(leaf) for leaf in jax.tree.leaves(fn(jnp.asarray(x)))]
    for have, want in zip(results, wanted, strict=True):
        if jnp.iscomplexobj(want):  # two parts, at the border of a model
            assert have.dtype == want.real.dtype
        else:
            assert have.dtype == want.dtype
            np.testing.assert_allclose(
                have.astype(np.float64), np.asarray(want, np.float64), rtol=1e-2
            )

# SPDX-License-Identifier: Apache-2.0
"""Primitives that are replaced by a JAX function."""

from __future__ import annotations

import subprocess
import sys

import jax
import jax.extend.core
import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np
import pytest
from jax import lax
from jax.custom_batching import custom_vmap
from jax.custom_derivatives import linear_call
from jax.experimental import sparse

import jaxport
from jaxport import _jax_private, decompose, runtime
from jaxport.trace import trace
from support.cases import bf16, case, check, f32, i32, parity, u32


@pytest.fixture
def primitive(monkeypatch):
    """A user's primitive: scale * sum of x. Its registration ends with the test."""
    monkeypatch.setattr(decompose, "_registered", {})
    result = jax.extend.core.Primitive("scaled_sum")
    result.def_abstract_eval(lambda x, *, scale: jax.core.ShapedArray(x.shape[:-1], x.dtype))
    return result


def decomposition(x, *, scale):
    return scale * jnp.sum(x, axis=-1)


def test_a_primitive_of_the_user(primitive):
    assert jaxport.register_decomposition(primitive, decomposition) is decomposition
    model = jaxport.to_onnx(lambda x: primitive.bind(x, scale=3.0), [("B", 4)])
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    (have,) = runtime.run(runtime.open_session(model), [x]).values()
    np.testing.assert_array_equal(have, decomposition(x, scale=3.0))


def test_by_name_as_a_decorator(primitive):
    jaxport.register_decomposition("scaled_sum")(decomposition)
    assert jaxport.to_onnx(lambda x: primitive.bind(x, scale=3.0), [(4,)])


def test_a_primitive_without_a_decomposition_is_refused(primitive):
    with pytest.raises(jaxport.ConversionError, match=r"JXP-E012.*scaled_sum"):
        jaxport.to_onnx(lambda x: primitive.bind(x, scale=3.0), [(4,)])


@pytest.mark.parametrize(
    ("fn", "why"),
    [
        (lambda x, scale: x, r"gives float32\[4\] instead of float32\[\]"),
        (lambda x, scale: (x, x), "gives 2 results instead of 1"),
        (lambda x: x, "cannot be traced: TypeError: .*scale"),
    ],
)
def test_a_decomposition_that_does_not_fit(primitive, fn, why):
    jaxport.register_decomposition(primitive, fn)
    with pytest.raises(jaxport.ConversionError, match=why) as caught:
        jaxport.to_onnx(lambda x: primitive.bind(x, scale=3.0), [(4,)])
    assert caught.value.code == "E077"
    assert "test_decompose.py" in caught.value.source


def test_a_decomposition_that_uses_itself(primitive):
    jaxport.register_decomposition(primitive, primitive.bind)
    with pytest.raises(jaxport.ConversionError, match="'scaled_sum' uses itself") as caught:
        jaxport.to_onnx(lambda x: primitive.bind(x, scale=3.0), [(4,)])
    assert caught.value.code == "E077"


def test_a_name_that_jax_lacks(monkeypatch):
    monkeypatch.setitem(_jax_private._NAMES, "threefry2x32", (("jax", "jax.gone"), "_gone"))
    with pytest.raises(jaxport.ConversionError, match=r"'threefry2x32'.*_gone") as caught:
        jaxport.to_onnx(lambda key: jax.random.bits(key, (3,)), [jax.random.key(0)])
    assert caught.value.code == "E078"


def test_nodes_have_the_line_of_the_equation(primitive):
    jaxport.register_decomposition(primitive, decomposition)
    line = sys._getframe().f_lineno + 1
    text = trace(lambda x: primitive.bind(x, scale=3.0), [(4,)]).module.text()
    assert text.count("loc(") == 1
    assert f'loc("test_decompose.py":{line} ' in text


def test_the_platform_is_a_cpu():
    def fn(x):
        return lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: x - 1)

    assert jaxport.to_onnx(fn, [(3,)], return_mode="model").stats()["ops"] == {"Add": 1}


def test_nothing_is_loaded_before_it_is_needed():
    code = (
        "import sys, jax, jaxport; jaxport.to_onnx(lambda x: x + 1, [(3,)], return_mode='model');"
        "print([name for name in sys.modules if name.startswith('jaxport.decompose.')])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def ragged(x, w):
    return lax.ragged_dot(x, w, jnp.array([1, 0, 3], jnp.int32))


def sparse_product(data, x):
    places = jnp.array([[0, 0], [0, 2], [1, 2]])
    return sparse.BCOO((data, places), shape=(2, 3)) @ x


@custom_vmap
def cosine(x):
    return jnp.cos(x)


@cosine.def_vmap
def _(axis_size, in_batched, x):
    return jnp.cos(x), in_batched[0]


COMPUTED_BY_JAX = [
    case("sparse product", sparse_product, [f32(3), f32(3, 4)], tolerance="sum"),
    case(
        "gradient of a sparse product",
        jax.grad(lambda data, x: sparse_product(data, x).sum(), (0, 1)),
        [f32(3), f32(3, 4)],
        tolerance="sum",
    ),
    case(
        "to sparse and back",
        lambda x: sparse.BCOO.fromdense(x, nse=4).T.todense(),
        [f32(2, 2)],
    ),
    case("custom_vmap", cosine, [f32("B")], tolerance="function"),
    case(
        "linear_call",
        lambda x: linear_call(lambda r, y: y * r, lambda r, ct: ct * r, 3.0, x),
        [f32("B")],
    ),
    case(
        "gradient through a matrix exponential",
        jax.grad(lambda a: jax.scipy.linalg.expm(a).sum()),
        [f32(3, 3, lo=-0.5, hi=0.5)],
        tolerance="network",
    ),
    case("ragged product", ragged, [f32(4, 3), f32(3, 3, 2)], tolerance="sum"),
    case(
        "composite",
        lambda x: lax.composite(jnp.sin, name="my.sin")(x) * 2,
        [f32("B")],
        tolerance="function",
    ),
]
if hasattr(lax, "mulhi"):  # jax 0.10
    WORDS = u32(9, hi=2**32 - 1)
    SIGNED = i32(9, lo=-(2**31), hi=2**31 - 1)
    COMPUTED_BY_JAX.append(
        case(
            "scaled product",
            lambda x, y, s, t: lax.scaled_dot(x, y, lhs_scale=s, rhs_scale=t),
            [bf16(1, 4, 32), bf16(1, 32, 5), bf16(1, 4, 1), bf16(1, 1, 5)],
            tolerance="sum",
        )
    )
    COMPUTED_BY_JAX += [
        case("high half of a product", lax.mulhi, [WORDS, WORDS], opsets=[23]),
        case("high half of a product with signs", lax.mulhi, [SIGNED, SIGNED], opsets=[23]),
    ]


@parity(COMPUTED_BY_JAX)
def test_what_jax_decomposes_has_its_numbers(case, capfd):
    check(case, capfd)

# SPDX-License-Identifier: Apache-2.0
"""jaxport.register_lowering: primitives of the user's own."""

from __future__ import annotations

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
import pytest
from jax.interpreters import mlir

import jaxport
from jaxport import lowering


@pytest.fixture(autouse=True)
def _only_these(monkeypatch):
    monkeypatch.setattr(lowering, "_registered", {})


def primitive(name, impl, results=1):
    """A primitive that JAX knows and jaxport does not."""
    made = jax.extend.core.Primitive(name)
    made.multiple_results = results > 1

    def abstract(*operands, **params):
        shapes = jax.eval_shape(lambda *xs: impl(*xs, **params), *operands)
        return jax.tree.map(lambda s: jax.core.ShapedArray(s.shape, s.dtype), shapes)

    made.def_abstract_eval(abstract)
    mlir.register_lowering(made, mlir.lower_fun(impl, made.multiple_results))
    return made


LEAKY = primitive("leaky", lambda x, slope: jnp.where(x < 0, x * slope, x))
SPLIT = primitive("halves", lambda x: list(jnp.split(x, 2, -1)), results=2)


def leaky(x):
    return LEAKY.bind(x * 2, slope=0.25).T + 1


def converted(fn, inputs, **options):
    model = jaxport.to_onnx(fn, inputs, **options)
    fits, message = jaxport.allclose(jax.jit(fn), model, inputs)
    assert fits, message
    return [node.op_type for node in model.graph.node]


def test_a_lowering_makes_one_node():
    @jaxport.register_lowering("leaky")
    def lower(c, x, *, slope):
        assert (x.dtype, x.shape) == ("f32", ["B", 3])
        return c.op.LeakyRelu(x, alpha=slope)

    assert "LeakyRelu" in converted(leaky, [("B", 3)])


OF_JAX = {
    # primitive: (program, inputs, ONNX op that jaxport itself would not take)
    "tan": (lambda x: jnp.tan(x) + 1, [("B", 3)], lambda c, x, **_: c.op.Identity(c.op.Tan(x))),
    "clamp": (
        lambda x: jax.lax.clamp(0.0, x, 1.0),
        [("B", 3)],
        lambda c, low, x, high: c.op.Identity(c.op.Clip(x, low, high)),
    ),
    "exp": (
        lambda x: jax.nn.softmax(x @ x.T) @ x,
        [(4, 3)],
        lambda c, x, **_: c.op.Identity(c.op.Exp(x)),
    ),
    "transpose": (
        lambda x: x.T * 2,
        [("B", 3)],
        lambda c, x, permutation: c.op.Identity(c.op.Transpose(x, perm=list(permutation))),
    ),
    "conv_general_dilated": (
        lambda x: jax.lax.conv(x, jnp.ones((4, 3, 2, 2)), (1, 1), "VALID") + 1,
        [(2, 3, 6, 6)],
        lambda c, x, w, **_: c.op.Identity(c.op.Conv(x, w)),
    ),
}
WAYS = {
    "plain": lambda f: f,
    "jit": jax.jit,
    "checkpoint": jax.checkpoint,
    "cond": lambda f: lambda x: jax.lax.cond(x.sum() > 0, f, f, x),
    "scan": lambda f: lambda x: jax.lax.scan(lambda c, _: (c, f(x)), 0, None, 3)[1],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", OF_JAX)
def test_a_lowering_goes_before_jaxport_s_own(name, way):
    program, inputs, lower = OF_JAX[name]
    calls = []

    @jaxport.register_lowering(name)
    def counted(c, *operands, **params):
        calls.append(operands)
        return lower(c, *operands, **params)

    converted(WAYS[way](program), inputs)
    assert calls


def test_numbers_and_arrays_are_operands():
    @jaxport.register_lowering(LEAKY)
    def lower(c, x, *, slope):
        is_negative = c.op.Less(x, np.zeros(1, np.float32))
        return c.op.Where(is_negative, c.op.Mul(x, slope), x)

    assert converted(leaky, [(2, 3)]).count("Where") == 1


def test_several_results_and_attributes():
    @jaxport.register_lowering("halves")
    def lower(c, x):
        return c.op.Split(x, outputs=2, axis=len(x.shape) - 1, num_outputs=2)

    assert "Split" in converted(lambda x: SPLIT.bind(x + 1), [("B", 6)])


@pytest.mark.parametrize(
    ("lower", "why"),
    [
        (lambda c, x, slope: c.op.Shape(x), r"gives i64\[2\] instead of f32\[2,3\]"),
        (lambda c, x, slope: [x, x], "gives 2 results instead of 1"),
        (lambda c, x, slope: None, "gives an absent result"),
        (lambda c, x, slope: slope, r"gives \[0.25\], which is no value of the model"),
        (lambda c, x, slope: c.op.Concat(x, axis=2**70), "which 64 bits do not hold"),
        (lambda c, x, slope: c.op.NoSuchOp(x), "NoSuchOp"),
        (lambda c, x, slope: c.op.Elu(x, alpha=object()), "attribute 'alpha' is a object"),
    ],
)
def test_a_lowering_that_does_not_fit(lower, why):
    jaxport.register_lowering("leaky", lower)
    with pytest.raises(jaxport.ConversionError, match=why) as caught:
        jaxport.to_onnx(leaky, [(2, 3)])
    assert caught.value.code == "E014"
    assert "test_lowering.py" in caught.value.source


def test_an_exception_of_the_lowering_reaches_the_user():
    @jaxport.register_lowering("leaky")
    def lower(c, x, *, slope):
        raise KeyError("my own")

    with pytest.raises(KeyError, match="my own"):
        jaxport.to_onnx(leaky, [(2, 3)])


def test_without_a_lowering_the_error_names_the_two_ways_out():
    unknown = jax.extend.core.Primitive("unknown")
    unknown.def_abstract_eval(lambda x: jax.core.ShapedArray(x.shape, x.dtype))
    with pytest.raises(jaxport.ConversionError, match="register_lowering") as caught:
        jaxport.to_onnx(unknown.bind, [(2, 3)])
    assert caught.value.code == "E012"


def test_an_error_of_a_later_try_is_seen():
    """The search for layouts emits a program several times; only a layout may fail silently."""
    calls = []

    @jaxport.register_lowering("leaky")
    def lower(c, x, *, slope):
        calls.append(x.shape)
        return c.op.LeakyRelu(x, **({"alpha": slope} if len(calls) == 1 else {"beta": slope}))

    def network(x):
        y = jnp.sin(x).T @ jnp.ones((4, 4))
        return LEAKY.bind(y, slope=0.25) + jnp.cos(x), y.T * 2

    with pytest.raises(jaxport.ConversionError, match="beta"):
        jaxport.to_onnx(network, [(4, 4)])
    assert len(calls) > 1


def test_a_lowering_of_a_sum_leaves_what_a_reduction_combines():
    jaxport.register_lowering("add", lambda c, x, y, **_: c.op.Identity(c.op.Add(x, y)))

    def sums(x):
        rows = jax.lax.reduce(x, np.float32(0), lambda a, b: a + b, (1,))
        windows = (2, 2), (1, 1), "SAME"
        return rows, jax.lax.reduce_window(x, np.float32(0), lambda a, b: a + b, *windows)

    assert "ReduceSum" in converted(sums, [(3, 4)])

# SPDX-License-Identifier: Apache-2.0
"""Primitives of other libraries: the function that their library computes them with is traced."""

from __future__ import annotations

import functools

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.extend.core
import jax.numpy as jnp
import pytest
from jax.interpreters import batching, mlir

import jaxport
from jaxport import _jax_private
from support.cases import c64, case, check, f32, i32, parity


def primitive(name, fn, *, results=1, lowering=True, impl=None):
    """A primitive of some library: with a lowering made from fn, an impl, both or none."""
    made = jax.extend.core.Primitive(name)
    made.multiple_results = results > 1

    def abstract(*operands, **params):
        shapes = jax.eval_shape(functools.partial(fn, **params), *operands)
        return jax.tree.map(lambda s: jax.core.ShapedArray(s.shape, s.dtype), shapes)

    made.def_abstract_eval(abstract)
    if lowering:
        mlir.register_lowering(made, mlir.lower_fun(fn, made.multiple_results))
    if impl:
        made.def_impl(impl)
    return made


def smooth(x, *, width):
    return jnp.where(x < 0, x * width, jnp.tanh(x))


SMOOTH = primitive("smooth", smooth)
PARTS = primitive("parts", lambda x: [jnp.floor(x), x - jnp.floor(x)], results=2)
NESTED = primitive("nested", lambda x: SMOOTH.bind(PARTS.bind(x)[1], width=0.5))
ROTATED = primitive("rotated", lambda z: z * jnp.exp(1j * jnp.abs(z)))
BY_NUMBER = primitive("by_number", lambda x, n: x * n, lowering=False)
FACTORIAL = primitive("product_down", lambda x, *, n: x if n == 0 else product(x, n))


def product(x, n):
    return n * FACTORIAL.bind(x, n=n - 1)


@BY_NUMBER.def_impl
def _(x, n):
    return x * int(n)  # a number, not a traced value


def _lower_by_number(*operands):  # made with lower_fun, but nobody can see that
    return mlir.lower_fun(lambda x, n: x * n, multiple_results=False)(*operands)


mlir.register_lowering(BY_NUMBER, _lower_by_number)


def _batched(operands, dims, **params):
    return SMOOTH.bind(*operands, **params), dims[0]


batching.primitive_batchers[SMOOTH] = _batched

TRACED = [
    case(
        "of a lowering",
        lambda x: SMOOTH.bind(x, width=0.25),
        [f32(2, 3)],
        also=[[f32("B", 3)]],
        tolerance="function",
    ),
    case("two results", lambda x: PARTS.bind(x), [f32(4)]),
    case("in each other", NESTED.bind, [f32(4)], tolerance="function"),
    case("complex operands", ROTATED.bind, [c64(3)], tolerance="sum"),
    case("of an evaluation, with a literal", lambda x: BY_NUMBER.bind(x, 3), [f32(3)]),
    case("on smaller things", lambda x: FACTORIAL.bind(x, n=4), [f32(3)]),
    case(
        "in a scan, batched",
        jax.vmap(lambda x: jax.lax.scan(lambda c, y: (SMOOTH.bind(c + y, width=2.0), c), 0.0, x)),
        [f32(3, 4)],
        tolerance="function",
    ),
]


@eqxi.noinline
def apart(x, y):
    return jnp.sin(x) + y * x


def while_loop(kind):
    def loop(x):
        return eqxi.while_loop(
            lambda state: jnp.sum(state) < 100, lambda state: state * 2, x, kind=kind, max_steps=12
        )

    return loop


POSITIVE = f32(3, lo=0.5)
EQUINOX = [
    case("unvmap_any", lambda x: eqxi.unvmap_any(x > 1), [f32(3)]),
    case("unvmap_all", jax.vmap(lambda x: eqxi.unvmap_all(x > 1)), [f32(3)]),
    case("unvmap_max", jax.vmap(lambda x: x + eqxi.unvmap_max(x)), [i32(3)]),
    case("noinline", lambda x: apart(x, 2 * x), [f32(3)], tolerance="function"),
    case(
        "gradient of noinline",
        jax.grad(lambda x: apart(x, 2 * x).sum()),
        [f32(3)],
        tolerance="function",
    ),
    case("noinline, batched", jax.vmap(lambda x: apart(x, 2 * x)), [f32(3)], tolerance="function"),
    case("nontraceable", lambda x: eqxi.nontraceable(x) * 2, [f32(3)]),
    case("nonbatchable", lambda x: eqxi.nonbatchable(x) * 2, [f32(3)]),
    case("nondifferentiable", lambda x: eqxi.nondifferentiable(x) * 2, [f32(3)]),
    case("backward", lambda x: eqxi.nondifferentiable_backward(x) * 2, [f32(3)]),
    case("checkpointed loop", while_loop("checkpointed"), [POSITIVE]),
    case("checkpointed loop, batched", jax.vmap(while_loop("checkpointed")), [POSITIVE]),
    case(
        "gradient of a checkpointed loop",
        jax.grad(lambda x: while_loop("checkpointed")(x).sum()),
        [POSITIVE],
    ),
    case("bounded loop: maybe_set, select_if_vmap", while_loop("bounded"), [POSITIVE]),
    case("bounded loop, batched", jax.vmap(while_loop("bounded")), [POSITIVE]),
    case(
        "gradient of a bounded loop",
        jax.grad(lambda x: while_loop("bounded")(x).sum()),
        [POSITIVE],
    ),
]


@parity(TRACED)
def test_numbers_are_jax_s(case, capfd):
    check(case, capfd)


@parity(EQUINOX)
def test_numbers_of_equinox_are_jax_s(case, capfd):
    check(case, capfd)


def test_a_decomposition_of_the_user_goes_first(monkeypatch):
    monkeypatch.setattr(jaxport.decompose, "_registered", {})
    jaxport.register_decomposition("smooth", lambda x, *, width: x + width)
    model = jaxport.to_onnx(lambda x: SMOOTH.bind(x, width=0.5), [(3,)], return_mode="model")
    assert model.stats()["ops"] == {"Add": 1}


def test_a_lowering_of_the_user_goes_first(monkeypatch):
    monkeypatch.setattr(jaxport.lowering, "_registered", {})
    jaxport.register_lowering("smooth", lambda c, x, *, width: c.op.Neg(x))
    model = jaxport.to_onnx(lambda x: SMOOTH.bind(x, width=0.5), [(3,)], return_mode="model")
    assert model.stats()["ops"] == {"Neg": 1}


def refused(fn, *inputs):
    with pytest.raises(jaxport.ConversionError) as caught:
        jaxport.to_onnx(fn, inputs or [(3,)], return_mode="model")
    assert caught.value.code == "E012"
    return str(caught.value)


def test_a_definition_that_fails_is_named():
    def broken(x):
        raise KeyError("its own trouble")

    made = primitive("broken", lambda x: x, lowering=False, impl=broken)
    message = refused(made.bind)
    assert "its own definition cannot be traced: KeyError: 'its own trouble'" in message
    assert "register_decomposition" in message


def test_a_definition_that_is_not_needed_may_fail():
    made = primitive("broken", lambda x: x, lowering=False, impl=lambda x: float(x))
    assert jaxport.to_onnx(lambda x: (made.bind(x), x * 2)[1], [()])


def test_a_definition_of_other_types_is_named():
    made = primitive("halved", lambda x: x, lowering=False, impl=lambda x: x[:1])
    assert "its own definition gives float32[1] instead of float32[3]" in refused(made.bind)


def test_an_evaluation_that_compiles_the_primitive_is_no_definition():
    made = primitive("itself", lambda x: x, lowering=False)
    made.def_impl(lambda x: jax.jit(made.bind)(x))
    assert "its own definition uses itself" in refused(made.bind)


def test_a_jax_without_these_tables(monkeypatch):
    def gone(name):
        raise ImportError(name)

    monkeypatch.setattr(_jax_private.importlib, "import_module", gone)
    refused(lambda x: SMOOTH.bind(x, width=0.5))


def test_nodes_have_the_line_of_the_equation():
    model = jaxport.to_onnx(lambda x: SMOOTH.bind(x, width=0.5), [(3,)])
    origins = {p.value for node in model.graph.node for p in node.metadata_props}
    assert any("test_definitions.py" in origin for origin in origins)


def test_equinox_modules_with_checks_convert():
    def fn(x):
        return eqx.error_if(x, jnp.any(x < 0), "negative") * 2

    model = jaxport.to_onnx(fn, [(3,)], return_mode="model")
    assert model.stats()["ops"] == {"Mul": 1}
    (left_out,) = model.report.left_out
    assert (left_out.rule, left_out.reason) == ("cond", "a branch that only raises an error")
    assert "left out: 1" in str(model.report)

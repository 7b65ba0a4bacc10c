# SPDX-License-Identifier: Apache-2.0
"""Callbacks to the host: what a model can do without is left out, the rest is an error."""

from __future__ import annotations

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import checkify, io_callback

import jaxport
from jaxport._jax_callbacks import never_returns
from support.cases import case, check, f32, parity


def raises(_):
    raise ValueError("negative")


def raises_sometimes(x):
    if x.min() < 0:
        raise ValueError("negative")
    return x


def like(x):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def checked(callback, then=lambda x: x * 2):
    """then(x), or what the callback says where x has a negative element."""

    def fn(x):
        def fail(x):
            return jax.pure_callback(callback, like(x), x)

        return lax.cond(jnp.any(x < 0), fail, then, x)

    return fn


def switched(x):
    def fail(x):
        return jax.pure_callback(raises, like(x), x)

    index = jnp.sum(x > 1).astype(jnp.int32) + 1
    return lax.switch(index, [fail, jnp.sin, jnp.cos, jnp.tanh], x)


def functional(x):
    error, result = checkify.checkify(lambda x: _checked(x))(x)
    return result + jnp.where(error._pred[next(iter(error._pred))], 1.0, 0.0)


def _checked(x):
    checkify.check(jnp.all(x > -100), "too small")
    return x * 2


POSITIVE = f32(3, lo=0.0)
LEFT_OUT = [
    case("pure callback", checked(raises), [POSITIVE]),
    case("a partial", checked(functools.partial(raises)), [POSITIVE]),
    case("in a call", checked(raises, jax.jit(lambda x: x * 3)), [POSITIVE]),
    case("Equinox", lambda x: eqx.error_if(x, x < 0, "negative") * 2, [POSITIVE]),
    case(
        "Equinox, batched",
        jax.vmap(lambda x: eqx.error_if(x, x < 0, "negative") * 2),
        [POSITIVE],
    ),
    case(
        "gradient of Equinox",
        jax.grad(lambda x: jnp.sum(eqx.error_if(x, x < 0, "negative") ** 2)),
        [POSITIVE],
    ),
    case(
        "in a scan",
        lambda x: lax.scan(lambda c, y: (eqx.error_if(c + y, y < 0, "negative"), c), 0.0, x),
        [POSITIVE],
        tolerance="sum",
    ),
    case(
        "through calls and movements",
        lambda x: lax.cond(
            jnp.any(x < 0),
            lambda x: jax.jit(lambda x: jax.pure_callback(raises, like(x), x)[:, None])(x)[:, 0],
            jnp.sin,
            x,
        ),
        [POSITIVE],
        tolerance="function",
    ),
    case("one of many branches", switched, [f32(3)], tolerance="function"),
    case("checkify", functional, [f32(3)]),
]


@parity(LEFT_OUT)
def test_numbers_beside_checks_are_jax_s(case, capfd):
    check(case, capfd)


def left_out(fn):
    report = jaxport.to_onnx(fn, [(3,)], return_mode="model").report
    return [(found.rule, found.reason) for found in report.left_out]


def test_prints_are_left_out_with_a_remark(capfd):
    def fn(x):
        jax.debug.print("x = {}", x)
        return x * 2

    ((name, why),) = left_out(fn)
    assert name.startswith("debug_")
    assert why == "a model has no effects"
    assert "x =" not in capfd.readouterr().out  # nothing runs while a program is converted


def test_effects_in_a_call_are_named():
    def fn(x):
        jax.jit(lambda x: io_callback(lambda _: None, None, x))(x)
        return x * 2

    assert left_out(fn) == [("io_callback", "a model has no effects")]


def test_a_program_without_effects_has_no_remark():
    assert left_out(lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x)) == []


@pytest.mark.parametrize(
    "callback",
    [raises_sometimes, np.sin, lambda x: x],
    ids=["raises sometimes", "numpy", "identity"],
)
def test_what_may_return_stays(callback):
    with pytest.raises(jaxport.ConversionError, match="a model cannot call Python") as caught:
        jaxport.to_onnx(checked(callback), [(3,)])
    assert caught.value.code == "E012"
    assert "EQX_ON_ERROR" in str(caught.value)


def test_a_callback_whose_result_nobody_reads_does_not_raise():
    """JAX does not run it either, so the branch gives its result."""

    def fn(x):
        def branch(x):
            jax.pure_callback(raises, like(x), x)
            return x * 3

        return lax.cond(x[0] > 0, branch, jnp.sin, x)

    model = jaxport.to_onnx(fn, [(3,)], return_mode="model")
    assert "If" in model.stats()["ops"]
    assert not model.report.left_out


def with_branch(result):
    def fn(x):
        def branch(x):
            return result(x, jax.pure_callback(raises, like(x), x))

        return lax.cond(x[0] > 0, branch, jnp.sin, x)

    return fn


def test_a_callback_that_arithmetic_may_do_without_is_no_proof():
    with pytest.raises(jaxport.ConversionError, match="pure_callback") as caught:
        jaxport.to_onnx(with_branch(lambda x, y: jnp.where(x > 2, y, x)), [(3,)])
    assert caught.value.code == "E012"


def test_a_callback_that_a_call_does_not_read_is_no_proof():
    fn = with_branch(lambda x, y: jax.jit(lambda x, _: x)(x, y))
    model = jaxport.to_onnx(fn, [(3,)], return_mode="model")
    assert "If" in model.stats()["ops"]
    assert not model.report.left_out


def generator(x):
    yield x
    raise ValueError


@pytest.mark.parametrize(
    ("function", "only_raises"),
    [
        (raises, True),
        (functools.partial(raises, 1), True),
        (lambda x: x, False),
        (raises_sometimes, False),
        (generator, False),
        (np.sin, False),
        (None, False),
    ],
)
def test_a_function_that_only_raises_is_seen(function, only_raises):
    assert never_returns(function) == only_raises

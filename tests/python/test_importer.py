# SPDX-License-Identifier: Apache-2.0
"""What the importer reads from a jaxpr, seen in the text of front IR."""

from __future__ import annotations

import gc
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxport import ConversionError, _jax
from jaxport.trace import trace


def jir(fn, *inputs, **options):
    return trace(fn, inputs, **options).module.text()


def test_types_and_symbolic_sizes():
    text = jir(lambda x, y: (x.reshape(-1), y), ("B", 3), jax.ShapeDtypeStruct((), jnp.bfloat16))
    assert "(%x: f32[B,3], %y: bf16[])" in text
    assert "f32[3*B] = reshape %x" in text


def test_expressions_are_shared_between_inputs():
    text = jir(lambda x, y: x[1:] + y, ("2*T + 1", 3), ("2*T", 3))
    assert "f32[2*T,3] = add" in text


def test_constraints_reach_the_scope():
    (size,) = jax.export.symbolic_shape("T", constraints=["T >= 4"])
    assert "f32[T - 4]" in jir(lambda x: x[4:] * 2, (size,))


@pytest.mark.parametrize(
    ("fn", "inputs", "parameter"),
    [
        (lambda x: x.sum((np.int64(0),)), [(3, 4)], "axes = (0)"),
        (lambda x: x.astype(jnp.int32), [(3,)], "new_dtype = i32"),
        (lambda x: lax.cumsum(x, 0, reverse=True), [(3,)], "reverse = true"),
        (lambda x: lax.round(x), [(3,)], "rounding_method = #away_from_zero"),
        (lambda x: x.at[jnp.array([1])].get(mode="clip"), [(3,)], "mode = #clip"),
        (lambda x: x.at[jnp.array([1])].get(mode="clip"), [(3,)], "collapsed_slice_dims = (0)"),
        (lambda x: lax.pad(x, 1.0, ((1, 2, 3),)), [(3,)], "padding_config = ((1, 2, 3))"),
        (lambda x: lax.approx_max_k(x, 2, recall_target=0.5), [(8,)], "recall_target = 0.5"),
        (lambda x: x.reshape(3, -1), [("3*B",)], "new_sizes = (3, B)"),
        (lambda x: lax.top_k(x, 2), [(3, 4)], "{axis = 1, k = 2}"),
        (lambda x: jax.jit(jnp.sin)(x), [(3,)], 'name = "sin"'),
    ],
)
def test_parameters_have_types(fn, inputs, parameter):
    assert parameter in jir(fn, *inputs)


def test_parameters_without_effect_are_left_out():
    text = jir(lambda x: jax.jit(jnp.exp)(x).astype(jnp.int32).reshape(1, 3), (3,))
    assert not re.search("sharding|accuracy|donated|weak_type", text)


def test_scan_has_one_spelling():
    def fn(init, scale, xs):
        return lax.scan(lambda carry, x: (carry * scale + x, carry), init, xs)

    text = jir(fn, (), (), (5,))
    assert "num_carry = 1, num_consts = 1" in text
    assert "ft_in" not in text


def test_equal_literals_are_one_constant():
    text = jir(lambda x: (x + 2.0) * 2.0 + x.astype(jnp.int32) * 2, (3,))
    assert text.count("constant 2.0") == 1
    assert len(re.findall(r"constant 2\n", text)) == 1


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), 1e-45, 3.4028235e38, -0.0])
def test_literals_keep_their_bits(value):
    constants = re.findall(r"f32\[\] = constant (\S+)", jir(lambda x: x + np.float32(value), (3,)))
    assert np.float32(float(constants[0])).tobytes() == np.float32(value).tobytes()


def test_large_unsigned_literals_are_kept():
    text = jir(lambda x: x | np.uint32(4294967295), jax.ShapeDtypeStruct((3,), jnp.uint32))
    assert "u32[] = constant 4294967295" in text


def test_gradients_of_integers_are_false():
    def tangent(x):
        return jax.jvp(lambda y: jnp.frexp(y)[0], (x,), (jnp.ones_like(x),))[1]

    assert "exp2" in jir(tangent, (3,))  # newer versions of JAX have such a literal beside it
    zeros = np.zeros(3, jax.dtypes.float0)
    assert not _jax.Reader().array(zeros, zeros.dtype).any()
    assert _jax.Reader().scalar(zeros[0]) is False


def test_a_captured_key_is_its_words():
    key = jax.random.key(7)
    text = jir(lambda x: x + jax.random.bits(key, (3,)).astype(jnp.float32), (3,))
    assert "u32[2] = constant dense<[0, 7]>" in text
    assert "random_wrap" not in text


def test_shared_jaxprs_keep_their_constants():
    table = np.arange(3.0, dtype=np.float32)
    inner = jax.jit(lambda x: x * table)
    assert "dense<[0.0, 1.0, 2.0]>" in jir(lambda x: inner(inner(x)), (3,))


def test_arrays_of_another_dtype_are_narrowed_as_jax_does():
    table = np.arange(3.0)  # float64, which JAX narrows
    assert "f32[3] = constant" in jir(lambda x: x * table, (3,))


def test_constants_are_views():
    weights = np.ones((256, 256), np.float32)
    before = sys.getrefcount(weights)
    traced = trace(lambda x: x @ weights, [("B", 256)])
    gc.collect()
    jax.clear_caches()
    assert sys.getrefcount(weights) > before
    del traced


def test_strided_constants_are_made_dense():
    weights = np.arange(6.0, dtype=np.float32).reshape(2, 3).T
    assert weights.flags.f_contiguous
    text = jir(lambda x: x + weights, (3, 2))
    assert "dense<[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]>" in text


def test_locations_name_the_users_line():
    def fn(x):
        return jnp.tanh(x) + 1.0

    line = fn.__code__.co_firstlineno + 1
    text = jir(fn, (3,))
    assert f'test_importer.py":{line} "test_locations_name_the_users_line.<locals>.fn"' in text


def test_locations_name_the_library():
    from flax import nnx

    text = jir(nnx.Linear(3, 4, rngs=nnx.Rngs(0)), (2, 3))
    assert "flax/nnx/nn/linear.py" in text


def test_name_stacks_become_scopes():
    def fn(x):
        with jax.named_scope("encoder"), jax.named_scope("block"):
            return jnp.tanh(x)

    assert 'scope "encoder/block"' in jir(fn, (3,))


def test_no_folder_of_this_machine_reaches_the_text():
    assert __file__.rsplit("/", 1)[0] not in jir(lambda x: x + 1, (3,))


def test_effects_without_arrays_are_refused():
    def fn(x):
        ref = (
            jax.new_ref(x)
            if hasattr(jax, "new_ref")
            else pytest.skip("an older JAX has no references")
        )
        ref[...] = ref[...] + 1
        return ref[...]

    with pytest.raises(ConversionError, match="E076"):
        jir(fn, (3,))


class Changed:
    """A jaxpr of a JAX that renamed something."""

    def __getattr__(self, name):
        raise AttributeError(f"'Jaxpr' object has no attribute {name!r}")


@pytest.mark.parametrize(
    ("newest", "code", "help"),
    [((0, 1), "E080", 'use "jax<0.2"'), ((99, 0), "BUG", "please report it")],
)
def test_a_jaxpr_that_cannot_be_read_names_the_version(monkeypatch, newest, code, help):
    monkeypatch.setattr(_jax, "NEWEST", newest)
    monkeypatch.setattr(_jax.Reader, "parts", lambda self, jaxpr: Changed().eqns)
    with pytest.raises(ConversionError, match=f"JAX {re.escape(jax.__version__)}.*eqns") as caught:
        trace(jnp.sin, [(3,)])
    assert caught.value.code == code
    assert help in str(caught.value)


def test_a_program_that_jax_cannot_compile_meets_its_error():
    """The second derivative of exp1 has a tracer among its constants, a fault of JAX."""
    second = jax.grad(jax.grad(jax.scipy.special.exp1))
    try:
        jax.jit(second)(jnp.float32(1.5))
    except Exception as refusal:
        expected = f"{type(refusal).__name__}: {refusal}".splitlines()[0]
    else:
        pytest.skip("this version of JAX compiles it")
    with pytest.raises(ConversionError) as caught:
        trace(second, [()])
    assert caught.value.code == "E074"
    if jax.__version_info__ >= (0, 10):  # before, jit fails sooner than the compiler
        assert expected in caught.value.message

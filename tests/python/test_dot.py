# SPDX-License-Identifier: Apache-2.0
"""dot_general in all the forms that matmul, einsum and attention give it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from support.cases import bf16, case, check, f32, f64, i8, i32, parity


def product(name, fn, inputs, also=()):
    return case(name, fn, inputs, also, tolerance="sum")


def einsum(equation, *inputs, also=()):
    return product(f"einsum {equation}", lambda *xs: jnp.einsum(equation, *xs), inputs, also)


def attention(q, k, v):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(jnp.float32(q.shape[-1]))
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)


CASES = [
    product(
        "matmul",
        jnp.matmul,
        [f32(3, 4), f32(4, 5)],
        also=[[f64(3, 4), f64(4, 5)], [f32("B", 4), f32(4, 5)]],
    ),
    product("matmul batched", jnp.matmul, [f32("B", 3, 4), f32("B", 4, 5)]),
    # ONNX Runtime would keep a scale beside a MatMul in f32.
    product(
        "matmul and a scale",
        lambda x, y: (0.1 * x @ (y / 3)) * 0.7,
        [f64(3, 4), f64(4, 5)],
        also=[[f64("B", "T", 4), f64(4, "S")], [f64(3, 4), f64(4, 1)], [f32(3, 4), f32(4, 5)]],
    ),
    product("matmul broadcasts", jnp.matmul, [f32(2, 1, 3, 4), f32(6, 4, 5)]),
    product("matmul of integers", jnp.matmul, [i32(3, 4), i32(4, 5)]),
    product(
        "matmul of bytes into i32",
        lambda x, y: lax.dot(x, y, preferred_element_type=jnp.int32),
        [i8(3, 4), i8(4, 5)],
    ),
    product(
        "matmul of bf16 into f32",
        lambda x, y: lax.dot(x, y, preferred_element_type=jnp.float32),
        [bf16(3, 4), bf16(4, 5)],
    ),
    product(
        "matmul highest precision",
        lambda x, y: jnp.matmul(x, y, precision="highest"),
        [f32(3, 4), f32(4, 5)],
    ),
    product("vector dot", jnp.dot, [f32(4), f32(4)], also=[[f32("B"), f32("B")]]),
    product("matrix times vector", jnp.matmul, [f32("B", 4), f32(4)]),
    product("vector times matrix", jnp.matmul, [f32(4), f32(4, 5)]),
    # ONNX Runtime fuses a Transpose into MatMul, and would misread a vector on its right.
    product("transposed matrix times vector", lambda x, v: x.T @ v, [f32(4, 3), f32(4)]),
    product("transposed twice", lambda x, v: (x.T, x.T @ v, x @ v), [f32(4, 4), f32(4)]),
    product("transposed, scaled", lambda x, v: (0.5 * x.mT) @ v, [f32(2, 4, 3), f32(4)]),
    product("a constant vector times matrix", lambda x: jnp.arange(4.0) @ x, [f32(4, "B")]),
    product("columns times a constant vector", lambda x: x.T @ jnp.arange(4.0), [bf16(4, 3)]),
    product("outer", jnp.outer, [f32(3), f32(4)]),
    product(
        "tensordot",
        lambda x, y: jnp.tensordot(x, y, axes=([1, 2], [0, 1])),
        [f32("B", 3, 4), f32(3, 4, 5)],
    ),
    product(
        "dot_general batch in the middle",
        lambda x, y: lax.dot_general(x, y, (((2,), (0,)), ((1,), (2,)))),
        [f32(3, 2, 4), f32(4, 5, 2)],
    ),
    product("weights on the left", lambda w, x: w @ x.T, [f32(5, 4), f32("B", 4)]),
    product("a constant weight", lambda x: x @ jnp.arange(12.0).reshape(4, 3), [f32("B", 4)]),
    product("contraction of a symbolic size", lambda x, y: x.T @ y, [f32("T", 3), f32("T", 4)]),
    einsum("ij,jk->ik", f32(3, 4), f32(4, 5)),
    einsum("bij,bjk->bik", f32("B", 3, 4), f32("B", 4, 5)),
    einsum("ij,kj->ik", f32(3, 4), f32(5, 4)),
    einsum(
        "bqhd,bkhd->bhqk",
        f32(2, 3, 4, 5),
        f32(2, 6, 4, 5),
        also=[[f32("B", "T", 2, 5), f32("B", "S", 2, 5)]],
    ),
    einsum("bhqk,bkhd->bqhd", f32(2, 4, 3, 6), f32(2, 6, 4, 5)),
    einsum("btd,dhk->bthk", f32("B", 3, 4), f32(4, 2, 5)),
    einsum("bthk,hkd->btd", f32("B", 3, 2, 5), f32(2, 5, 4)),
    einsum("ii->", f32(3, 3)),
    einsum("ij->ji", f32(3, 4)),
    einsum("i,j->ij", f32(3), f32(4)),
    einsum("ij,ij->i", f32("B", 4), f32("B", 4)),
    einsum("ijk,k->ij", f32(2, 3, 4), f32(4)),
    einsum("ij,jk,kl->il", f32(2, 3), f32(3, 4), f32(4, 5)),
    product("attention", attention, [f32(2, 3, 4, 5), f32(2, 6, 4, 5), f32(2, 6, 4, 5)]),
    product(
        "attention of jax.nn",
        lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True),
        [f32("B", 3, 4, 8)] * 3,
    ),
    product("bilinear", lambda x, w, y: x @ w @ y, [f32("B", 3), f32(3, 4), f32(4)]),
    product(
        "vmap of matmul",
        jax.vmap(jnp.matmul, in_axes=(1, None), out_axes=1),
        [f32(3, "B", 4), f32(4, 5)],
    ),
    product(
        "gradient of a product",
        jax.grad(lambda x, y: (x @ y).sum(), argnums=(0, 1)),
        [f32(3, 4), f32(4, 5)],
    ),
]


@parity(CASES)
def test_numbers_are_jax_s(case, capfd):
    check(case, capfd)

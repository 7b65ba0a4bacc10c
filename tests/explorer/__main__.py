# SPDX-License-Identifier: Apache-2.0
"""Writes the pages that web/test drives: python -m explorer FOLDER"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import onnx
from examples.demo import Block, VisionTransformer
from flax import nnx
from onnx import TensorProto, helper

import jaxport


def attention(queries: jax.Array, keys: jax.Array, values: jax.Array) -> jax.Array:
    scale = 1 / jnp.sqrt(jnp.float32(queries.shape[-1]))
    scores = jnp.einsum("bqhd,bkhd->bhqk", queries, keys) * scale
    weights = jax.nn.softmax(scores, axis=-1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, values)


def near_miss(x: jax.Array) -> jax.Array:
    """A softmax whose sum runs over another axis than it divides."""
    e = jnp.exp(x - x.max(axis=1, keepdims=True))
    total = e.sum(axis=0)
    return e / total[:, None]


def largest(x: jax.Array, y: jax.Array) -> jax.Array:
    """In i8, which only newer versions of ONNX Runtime have a kernel for."""
    return jnp.maximum(x, y) + y


def vit(layers: int) -> VisionTransformer:
    return VisionTransformer(width=48, heads=3, layers=layers, rngs=nnx.Rngs(0))


def plain(nodes: int) -> onnx.ModelProto:
    """A model of another tool: no layers, no source lines."""
    middle = [
        helper.make_node(("Relu", "Tanh")[i % 2], [f"v{i}"], [f"v{i + 1}"]) for i in range(nodes)
    ]
    graph = helper.make_graph(
        middle,
        "plain",
        [helper.make_tensor_value_info("v0", TensorProto.FLOAT, ["N", 3])],
        [helper.make_tensor_value_info(f"v{nodes}", TensorProto.FLOAT, ["N", 3])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 10
    return model


def large(x: jax.Array) -> jax.Array:
    """About 5,000 nodes: ten towers of ten layers of five branches, so that many are in view."""
    towers = [x + np.float32(tower) for tower in range(10)]
    for layer in range(10):
        for tower in range(10):
            with jax.named_scope(f"towers/{tower}/layers/{layer}"):
                branches = [jnp.sin(towers[tower] * np.float32(1 + i)) for i in range(5)]
                for step in range(4):
                    branches = [jnp.sin(y) * np.float32(1.1 + step) for y in branches]
                towers[tower] = sum(branches[1:], branches[0])
    return sum(towers[1:], towers[0])


class Loops(nnx.Module):
    """Two equal blocks, which become calls of one function, and a scan over the rows."""

    def __init__(self) -> None:
        self.blocks = nnx.List([Block(16, 2, nnx.Rngs(i)) for i in range(2)])

    def __call__(self, rows: jax.Array) -> jax.Array:
        def step(state: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
            state = jnp.tanh(state + row)
            return state, state

        for block in self.blocks:
            rows = block(rows)
        return jax.lax.scan(step, jnp.zeros(16), rows[0])[1]


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    images = [("B", 224, 224, 3)]
    shape = ("B", 16, 4, 32)
    jaxport.to_onnx(attention, [shape] * 3, report=folder / "attention.html")
    jaxport.to_onnx(near_miss, [(4, 4)], report=folder / "near-miss.html")
    bytes_ = jax.ShapeDtypeStruct((3,), jnp.int8)
    newest = {"opset": 20, "target": "onnxruntime==1.31"}
    jaxport.to_onnx(largest, [bytes_, bytes_], report=folder / "newest.html", **newest)
    jaxport.to_onnx(vit(48), images, report=folder / "vit48.html")
    jaxport.to_onnx(Loops(), [(1, 9, 16)], functions="auto", report=folder / "functions.html")
    jaxport.to_onnx(large, [("B", 8)], report=folder / "large.html")
    small = vit(3)
    model = jaxport.to_onnx(
        small, images, return_mode="model", verify=True, report=folder / "vit.html"
    )
    jaxport.profile(small, images, model, runs=3).save_report(folder / "vit.html")
    onnx.save(plain(20), folder / "plain.onnx")
    jaxport.profile(None, None, folder / "plain.onnx", runs=2).save_report(folder / "plain.html")


if __name__ == "__main__":
    main()

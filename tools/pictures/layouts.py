# SPDX-License-Identifier: Apache-2.0
"""Layouts: layer by layer operands are brought into ONNX's order; a whole network does so once."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from .graphs import Graph, convert, drawn, of_model
from .svg import QUIET, Drawing

SHAPE = ("B", 32, 32, 8)
LINES = {"Transpose": 1, "x": 0}


def layers():
    conv = [nnx.Conv(8, 8, (3, 3), rngs=nnx.Rngs(i)) for i in range(2)]
    scale = jnp.asarray(np.linspace(0.5, 1.5, 8), jnp.float32)
    return [
        lambda x: nnx.relu(conv[0](x)),
        lambda x: x * jax.nn.sigmoid(x.mean((1, 2), keepdims=True) * scale),
        lambda x: nnx.relu(conv[1](x)),
        lambda x: nnx.avg_pool(x, (2, 2), (2, 2)),
    ]


def chained(graphs: list[Graph]) -> Graph:
    """Models of single layers, one behind the other."""
    whole, last = Graph({"x": "x"}), "x"
    for number, graph in enumerate(graphs):
        [entry] = [node for node in graph.labels if not node.startswith("node")]
        names = {node: f"{number} {node}" for node in graph.labels}
        names[entry] = last
        whole.labels.update({names[n]: graph.labels[n] for n in graph.labels if n != entry})
        whole.edges += [(names[a], names[b]) for a, b in graph.edges]
        last = names[list(graph.labels)[-1]]
    return whole


def marked(graph: Graph) -> Drawing:
    """Transposes stand out."""
    graph.lines = {n: LINES.get(label, 2) for n, label in graph.labels.items()}
    return drawn(graph, {1: "yellow", 2: "blue"}, pitch=34)


def count(graph: Graph) -> str:
    transposes = sum(label == "Transpose" for label in graph.labels.values())
    return f"{len(graph.labels) - 1} nodes, {transposes} of them Transpose"


def picture() -> Drawing:
    parts = layers()

    def network(x):
        for part in parts:
            x = part(x)
        return x

    before = chained([of_model(convert(part, [SHAPE])) for part in parts])
    after = of_model(convert(network, [SHAPE]))
    inside = of_model(convert(network, [SHAPE], inputs_as_nchw=[0], outputs_as_nchw=[0]))
    whole, x = Drawing("A network in NHWC: layouts layer by layer, and chosen once"), 0.0
    for title, graph in (
        ("layer by layer", before),
        ("the whole network", after),
        ("images in and out as NCHW", inside),
    ):
        drawing = marked(graph)
        whole.text(x, 14, title, 14, bold=True)
        whole.text(x, 32, count(graph), 12, colour=QUIET)
        whole.place(drawing, x + 10, 48)
        x += max(drawing.width, 230) + 40
    return whole

# SPDX-License-Identifier: Apache-2.0
"""The axis graph of an attention: which axes each node has, and which its operands give it."""

from __future__ import annotations

import re

import jax.numpy as jnp

from .block import heads
from .graphs import Graph, convert, drawn, dump
from .svg import QUIET, Drawing

NODE = re.compile(r"^%(\d+)\[([^\]]*)\] = (\w+)(?:\[[^\]]*\])?\((.*?)\) \w+(.*)$")


def attention(q, k, v):
    scores = heads(q) @ heads(k).mT / 4.0
    p = jnp.exp(scores - scores.max(-1, keepdims=True))
    p = p / p.sum(-1, keepdims=True)
    return (p @ heads(v)).swapaxes(1, 2).reshape(v.shape)


def read(text: str) -> tuple[Graph, dict[tuple[str, str], str]]:
    """Nodes with their axes, and what each edge says about the axes of its operand."""
    graph, patterns = Graph(), {}
    for line in text.splitlines():
        found = NODE.match(line)
        if not found or found[3] == "constant":
            continue
        name = f"%{found[1]}"
        sizes = " ".join(re.findall(r"\b[a-z]=\w+", found[5]))
        title = re.findall(r'"(\w+)"', line)[0] if found[3] == "input" else found[3]
        graph.labels[name] = f"{title}[{found[2]}]  {sizes}"
        for operand, axes in re.findall(r"(%\d+)\[([^\]]*)\]", found[4]):
            if operand in graph.labels:
                graph.edges.append((operand, name))
                patterns[operand, name] = axes
    return graph, patterns


def with_patterns(graph: Graph, patterns: dict[tuple[str, str], str], colour: str) -> Drawing:
    """Edges get a node of their own, with the pattern as its text."""
    whole = Graph(dict(graph.labels), dict.fromkeys(graph.labels, 1), [])
    for (a, b), axes in patterns.items():
        between = f"{a} {b}"
        whole.labels[between] = f"[{axes}]"
        whole.edges += [(a, between), (between, b)]
    return drawn(whole, {1: colour}, pitch=31, gap=14, height=19)


def picture() -> Drawing:
    model = convert(attention, [("B", "T", 64)] * 3)
    whole = Drawing("The axis graph of an attention, before and after raising")
    before = with_patterns(*read(dump(model, "--axis")), "violet")
    after = with_patterns(*read(dump(model, "--raise")), "red")
    whole.text(0, 14, "axis graph", 14, bold=True)
    whole.text(
        0,
        32,
        "grey: which axes of the operand an edge reads; (c d) is a product,",
        12,
        colour=QUIET,
    )
    whole.text(0, 48, "so that splitting into heads is no node", 12, colour=QUIET)
    whole.place(before, 0, 66)
    x = max(before.width, 380) + 60
    whole.text(x, 14, "raised", 14, bold=True)
    whole.place(after, x, 66)
    return whole

# SPDX-License-Identifier: Apache-2.0
"""One function, the graph that JAX hands over, and the graph that jaxport makes of it."""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import numpy as np

from . import block
from .graphs import convert, drawn, of_equations, of_model
from .svg import COLOURS, QUIET, Drawing

SIZE, LEADING = 12.5, 19


def source() -> list[tuple[int, str]]:
    """The numbered lines of the two functions."""
    lines = Path(block.__file__).read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("def "))
    return list(enumerate(lines[first:], first + 1))


def colours() -> dict[int, str]:
    """Which lines belong together, by what is written in them."""
    marks = {
        "blue": ("mean =", "variance =", "(x - mean)"),
        "yellow": ("jnp.split",),
        "red": ("scores =", "jnp.exp", "p.sum", "p @ v", "heads(q)", "reshape(*"),
        "green": ("gelu",),
    }
    return {
        number: colour
        for number, line in source()
        for colour, parts in marks.items()
        if any(part in line for part in parts)
    }


def code(colour_of: dict[int, str]) -> Drawing:
    picture = Drawing("")
    for row, (number, line) in enumerate(source()):
        y = LEADING * row
        if number in colour_of:
            fill, _ = COLOURS[colour_of[number]]
            picture.parts.append(
                f'<rect x="0" y="{y:.1f}" width="436" height="{LEADING}" fill="{fill}"/>'
            )
        picture.text(8, y + 13.5, line, SIZE, mono=True)
    return picture


def picture() -> Drawing:
    weight = jnp.asarray(np.random.default_rng(0).standard_normal((64, 192)), jnp.float32)
    model = convert(lambda x: block.block(x, weight), [("B", "T", 64)])
    before, after = of_equations(model), of_model(model)
    equations, nodes = len(before.labels) - 1, len(after.labels) - 1
    whole = Drawing(f"A JAX function of {equations} equations becomes {nodes} ONNX nodes")
    colour_of = colours()
    left, right = (
        drawn(before, colour_of, height=15, pitch=22, gap=8),
        drawn(after, colour_of, pitch=58),
    )
    whole.text(0, 16, "a JAX function", 15, bold=True)
    whole.place(code(colour_of), 0, 32)
    x = 456
    whole.text(x, 16, f"its {equations} equations", 15, bold=True)
    whole.place(left, x, 32)
    x += left.width + 60
    whole.text(x, 16, f"its {nodes} ONNX nodes", 15, bold=True)
    whole.place(right, x, 32)
    y = 32 + LEADING * len(source()) + 40
    for row in (
        "No layer of a library is named here: jaxport",
        "recognises what is computed, whoever wrote it.",
        "Colours say what became of which line.",
    ):
        whole.text(0, y, row, 13, colour=QUIET)
        y += 20
    return whole

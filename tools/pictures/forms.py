# SPDX-License-Identifier: Apache-2.0
"""One program in all forms that the compiler gives it, as it prints them."""

from __future__ import annotations

import re
from pathlib import Path

from . import scores
from .graphs import convert, dump
from .svg import LETTER, QUIET, Drawing

SIZE, LEADING, LONGEST = 11.5, 17, 66


def shortened(line: str) -> str:
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def panel(title: str, note: str, lines: list[str], colour: str) -> Drawing:
    picture = Drawing("")
    width = max(len(line) for line in [*lines, note]) * SIZE * LETTER + 24
    picture.text(0, 14, title, 14, bold=True)
    picture.text(0, 32, note, 12, colour=QUIET)
    picture.box(0, 42, width, LEADING * len(lines) + 16, colour)
    for row, line in enumerate(lines):
        picture.text(12, 62 + LEADING * row, line, SIZE, mono=True)
    return picture


def equations(text: str) -> list[str]:
    """Without source locations, and without parameters that say nothing here."""
    kept = re.sub(r' loc\("[^)]*\)|, precision = none|, preferred_element_type = f32', "", text)
    return [shortened(line) for line in kept.splitlines() if line]


def nodes_of_onnx(text: str) -> list[str]:
    """The nodes alone, without the sizes behind them."""
    body = text.partition("{\n")[2].rpartition("}")[0]
    return [shortened(line.partition("  #")[0].strip()) for line in body.splitlines() if line]


def picture() -> Drawing:
    model = convert(scores.scores, [("Q", 64), ("K", 64)])
    written = Path(scores.__file__).read_text().partition("def ")
    panels = [
        panel(
            "Python",
            "what the user wrote",
            ["def " + written[2].splitlines()[0], *written[2].splitlines()[1:]],
            "grey",
        ),
        panel(
            "front IR",
            "the jaxpr as data: every equation, every parameter",
            equations(model.jir()),
            "blue",
        ),
        panel(
            "axis graph",
            "no transpose, no broadcast, no reshape: axes have names",
            equations(dump(model, "--axis"))[1:],
            "violet",
        ),
        panel("raised", "what the arithmetic means", equations(dump(model, "--raise"))[1:], "red"),
        panel(
            "ONNX",
            "layouts are chosen, kernels are known",
            nodes_of_onnx(dump(model, "--passes")),
            "green",
        ),
    ]
    whole = Drawing("One program as Python, front IR, axis graph, raised graph and ONNX")
    columns = [panels[:2], panels[2:]]
    x = 0.0
    for column in columns:
        y = 0.0
        for part in column:
            whole.place(part, x, y)
            y += part.height + 26
        x += max(part.width for part in column) + 40
    return whole

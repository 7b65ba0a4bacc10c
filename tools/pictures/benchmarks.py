# SPDX-License-Identifier: Apache-2.0
"""What `make bench` measured, as bars."""

from __future__ import annotations

import json
from typing import Any

from .graphs import ROOT
from .svg import COLOURS, QUIET, Drawing

LONGEST, BAR = 340, 16
CANDIDATES = {"jaxport": "blue", "jax2onnx": "yellow", "jax.jit": "grey"}


def result(name: str) -> dict[str, Any]:
    return json.loads((ROOT / "bench" / "results" / f"{name}.json").read_text())


def bars(title: str, unit: str, rows: list[tuple[str, str, float]]) -> Drawing:
    """Rows are a label, a candidate and a number; bars begin at 0."""
    picture = Drawing("")
    picture.text(0, 14, title, 14, bold=True)
    largest, y = max(value for *_, value in rows), 28.0
    for label, candidate, value in rows:
        fill, stroke = COLOURS[CANDIDATES[candidate]]
        length = LONGEST * value / largest
        picture.text(150, y + 12, label, 11.5, anchor="end")
        picture.parts.append(
            f'<rect x="158" y="{y}" width="{length:.1f}" height="{BAR}" '
            f'fill="{fill}" stroke="{stroke}"/>'
        )
        digits = 0 if value >= 10 else 1 if value >= 1 else 2
        picture.text(166 + length, y + 12, f"{value:,.{digits}f} {unit}", 11.5, colour=QUIET)
        y += BAR + 6
    return picture


def conversion() -> list[Drawing]:
    times, memory = result("conversion"), result("memory")["networks"]["ViT-B/16"]
    pair = ("jaxport", "jax2onnx")
    best = [(n, n, times[n]["compile_seconds"]["best"] * 1e3) for n in pair]
    nodes = [(n, n, times[n]["nodes"]) for n in pair]
    peak = [(n, n, memory[n]["above_bytes"] / 1e6) for n in pair]
    return [
        bars("ViT-B/16: compile time, best", "ms", best),
        bars("ViT-B/16: nodes", "", nodes),
        bars("ViT-B/16: peak memory above the weights", "MB", peak),
    ]


def recurrent() -> Drawing:
    rows = []
    for network in result("recurrent")["networks"]:
        label = f"{network['op']} {network['batch']}x{network['units']}"
        for name, key in (("jaxport", "jaxport"), ("jax2onnx", "jax2onnx"), ("jax.jit", "jit")):
            seconds = network["seconds"][key]["best"]
            rows.append((label if name == "jaxport" else "", name, seconds * 1e3))
    return bars("100 steps of a recurrent network, one thread, best", "ms", rows)


def picture() -> Drawing:
    whole = Drawing("Compile time, nodes and memory of ViT-B/16, and times of recurrent networks")
    x = 0.0
    for name, colour in CANDIDATES.items():
        whole.box(x, 0, 14, 14, colour, 2)
        whole.text(x + 20, 12, name, 12)
        x += 100
    y = 34.0
    for part in conversion():
        whole.place(part, 0, y)
        y += part.height + 26
    whole.place(recurrent(), 640, 34)
    return whole

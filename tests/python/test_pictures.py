# SPDX-License-Identifier: Apache-2.0
"""The pictures of the documentation can be drawn, and say what conversions give today."""

from __future__ import annotations

import importlib
import re
import xml.etree.ElementTree as ElementTree

import pytest
from pictures.__main__ import PICTURES
from pictures.graphs import ROOT

IMAGES = ROOT / "docs" / "images"
has_tools = (ROOT / "build" / "release" / "jaxport-opt").exists()


@pytest.mark.skipif(not has_tools, reason="make build leaves jaxport-opt in build/release")
@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_drawn(name):
    drawn = importlib.import_module(f"pictures.{PICTURES[name]}").picture().render()
    kept = (IMAGES / f"{name}.svg").read_text(encoding="utf-8")
    assert drawn.count("<text") > 5
    assert not re.search(r"href=|url\(|src=", drawn.lower())
    # JAX's versions differ in the number of equations; what becomes of them does not.
    without_equations = re.compile(r"\d+ equations")
    titles = [
        without_equations.sub("", ElementTree.fromstring(text)[0].text) for text in (drawn, kept)
    ]
    assert titles[0] == titles[1], "make pictures"


def test_stages_stand_in_rows_without_touching():
    from pictures.layered import place

    widths = dict.fromkeys("abcd", 30.0)
    edges = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("a", "d")]
    placed = place(widths, edges, height=10, pitch=20, gap=5)
    rows = {name: y for name, (_, y) in placed.centres.items()}
    assert rows == {"a": 5, "b": 25, "c": 25, "d": 45}
    assert abs(placed.centres["b"][0] - placed.centres["c"][0]) >= 35 - 0.1
    assert [len(curve) for curve in placed.curves] == [2, 2, 2, 2, 3]

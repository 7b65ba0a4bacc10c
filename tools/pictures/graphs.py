# SPDX-License-Identifier: Apache-2.0
"""Programs in their forms, read from the texts that the compiler itself prints."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jaxport

from .layered import Edge, place
from .svg import LETTER, Drawing

ROOT = Path(__file__).resolve().parents[2]
STATEMENT = re.compile(r"^\s*(%[^=]*?) = (\S+)(.*)$")
LOCATION = re.compile(r'loc\("[^"]*":(\d+) "(\w+)"')


@dataclass
class Graph:
    labels: dict[str, str] = field(default_factory=dict)  # what stands in the box of a node
    lines: dict[str, int] = field(default_factory=dict)  # the source line that it comes from
    edges: list[Edge] = field(default_factory=list)


def convert(fn: Callable[..., Any], inputs: Any, **options: Any) -> jaxport.Model:
    return jaxport.to_onnx(fn, inputs, return_mode="model", **options)


def of_equations(model: jaxport.Model) -> Graph:
    """The jaxpr, calls inlined, without constants."""
    graph = Graph()
    source: dict[str, str] = {}  # where a name of the text is computed
    for name in re.findall(r"%(\w+): ", model.jir().splitlines()[0]):
        graph.labels[name] = name
        source[f"%{name}"] = name
    _read_equations(iter(model.jir().splitlines()[1:]), graph, source)
    return graph


def _read_equations(text: Any, graph: Graph, source: dict[str, str]) -> tuple[list[str], str]:
    """Until the end of a function; gives the names that it returns, and its last line."""
    returned: list[str] = []
    for line in text:
        if line.strip().startswith("return"):
            returned = re.findall(r"%\w+", line)
        elif line.strip().startswith("}"):
            return returned, line
        elif (found := STATEMENT.match(line)) and found[2] != "constant":
            results = re.findall(r"(%\w+):", found[1])
            if found[2] == "jit":
                _read_call(text, found[3], results, graph, source)
            else:
                _add_equation(graph, source, found, results)
    return returned, ""


def _add_equation(
    graph: Graph, source: dict[str, str], found: re.Match[str], results: list[str]
) -> None:
    node = f"equation {len(graph.labels)}"
    graph.labels[node] = found[2]
    place_ = LOCATION.search(found[3])
    graph.lines[node] = int(place_[1]) if place_ else 0
    for operand in dict.fromkeys(re.findall(r"%\w+", found[3].partition("{")[0])):
        if operand in source:
            graph.edges.append((source[operand], node))
    source.update(dict.fromkeys(results, node))


def _read_call(
    text: Any, rest: str, results: list[str], graph: Graph, source: dict[str, str]
) -> None:
    operands, _, signature = rest.partition("{")
    formal = re.findall(r"(%\w+):", signature)
    inside = {
        name: source[actual]
        for name, actual in zip(formal, re.findall(r"%\w+", operands), strict=True)
        if actual in source
    }
    before = len(graph.labels)
    returned, last = _read_equations(text, graph, inside)
    line = LOCATION.search(last)
    for node in list(graph.labels)[before:]:
        graph.lines[node] = int(line[1]) if line else graph.lines[node]
    source.update({r: inside[name] for r, name in zip(results, returned, strict=True)})


def of_model(model: jaxport.Model) -> Graph:
    """The ONNX graph, without constants."""
    proto, graph = model.to_proto(), Graph()
    source = {value.name: value.name for value in proto.graph.input}
    graph.labels.update({name: name for name in source})
    for number, node in enumerate(proto.graph.node):
        name = f"node {number}"
        graph.labels[name] = node.op_type
        said = {p.key: p.value for p in node.metadata_props}.get("jaxport.source", ":0")
        graph.lines[name] = int(re.search(r":(\d+)", said)[1])
        for operand in dict.fromkeys(node.input):
            if operand in source:
                graph.edges.append((source[operand], name))
        source.update(dict.fromkeys(node.output, name))
    return graph


def dump(model: jaxport.Model, *flags: str) -> str:
    """What jaxport-opt prints."""
    with tempfile.NamedTemporaryFile("w", suffix=".jir") as file:
        file.write(model.jir())
        file.flush()
        command = [ROOT / "build" / "release" / "jaxport-opt", file.name, *flags]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def drawn(graph: Graph, colours: Mapping[int, str], **options: Any) -> Drawing:
    """Boxes from top to bottom, in the colours of their source lines."""
    height = options.setdefault("height", 20)
    size = 0.58 * height
    widths = {node: len(text) * size * LETTER + 14 for node, text in graph.labels.items()}
    placed = place(widths, graph.edges, **options)
    picture = Drawing("")
    for curve in placed.curves:
        picture.curve(curve)
    for node, (x, y) in placed.centres.items():
        colour = colours.get(graph.lines.get(node, 0), "grey")
        picture.labelled(x, y, widths[node], height, graph.labels[node], colour)
    return picture

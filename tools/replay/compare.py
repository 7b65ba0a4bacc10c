# SPDX-License-Identifier: Apache-2.0
"""Converts a trace with two versions of the compiler, and says what differs."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import onnx

from support.prices import price_of

LIMIT = 120  # seconds for one conversion


@dataclasses.dataclass(frozen=True)
class Side:
    """A command `jaxport`, and what the tracing layer that belongs to it made of a program."""

    name: str
    tool: Path
    trace: Path  # .jir, or .error with the reason why there is none


@dataclasses.dataclass(frozen=True)
class Result:
    """A model, or the text of the error."""

    model: bytes = b""
    error: str = ""

    @property
    def ops(self) -> Counter[str]:
        return Counter(_ops(onnx.ModelProto.FromString(self.model).graph))

    @property
    def nodes(self) -> str:
        """The number of nodes, or the code of the error."""
        code = re.search(r"JXP-(\w+)", self.error)
        return (code[1] if code else "error") if self.error else str(self.ops.total())

    @property
    def price(self) -> str:
        return "-" if self.error else str(price_of(self.ops))


@dataclasses.dataclass(frozen=True)
class Difference:
    """A row of the table: (before, after) of nodes and price, and in what the two differ."""

    name: str
    nodes: tuple[str, str]
    price: tuple[str, str]
    what: str


def compare(
    name: str, sides: tuple[Side, Side], options: tuple[str, ...], folder: Path
) -> Difference | None:
    """Converts a program with both versions; None, and no folder, when nothing differs."""
    folder.mkdir(parents=True)
    old, new = (_converted(side, options, folder / f"{side.name}.onnx") for side in sides)
    what = _what_differs(old, new)
    if not what:
        shutil.rmtree(folder)
        return None
    for side, result in zip(sides, (old, new), strict=True):
        shutil.copy(side.trace, folder / f"{side.name}{side.trace.suffix}")
        if result.error:
            (folder / f"{side.name}.error").write_text(result.error, encoding="utf-8")
    if sides[0].trace.read_bytes() != sides[1].trace.read_bytes():
        what += "; so does the trace"
    return Difference(name, (old.nodes, new.nodes), (old.price, new.price), what)


def _converted(side: Side, options: tuple[str, ...], output: Path) -> Result:
    if side.trace.suffix == ".error":
        return Result(error=side.trace.read_text(encoding="utf-8"))
    # In the folder of the trace, so that no error names that folder.
    command = [str(side.tool), "convert", side.trace.name, "-o", str(output), *options]
    try:
        done = subprocess.run(command, cwd=side.trace.parent, capture_output=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return Result(error=f"more than {LIMIT} s")
    if done.returncode == 0:
        return Result(output.read_bytes())
    return Result(error=done.stderr.decode() or f"the process ended with {done.returncode}")


def _what_differs(old: Result, new: Result) -> str:
    """One phrase; "" when a user gets the same, the version that a model names apart."""
    if old == new:
        return ""
    if old.error or new.error:
        return "error" if old.nodes != new.nodes else "text of the error"
    more, fewer = new.ops - old.ops, old.ops - new.ops
    if more or fewer:
        changes = [(op, more[op] - fewer[op]) for op in sorted(more | fewer)]
        return ", ".join(f"{change:+} {op}" for op, change in changes)
    protos = [onnx.ModelProto.FromString(result.model) for result in (old, new)]
    versions = [proto.producer_version for proto in protos]
    for proto in protos:
        proto.producer_version = ""
    if protos[0] != protos[1]:
        return "order, names, attributes or constants"
    return "encoding" if versions[0] == versions[1] else ""


def _ops(graph: onnx.GraphProto) -> Iterator[str]:
    """The ops of a graph and of the graphs inside it."""
    for node in graph.node:
        yield node.op_type
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _ops(inner)

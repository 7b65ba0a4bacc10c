# SPDX-License-Identifier: Apache-2.0
"""The nodes of jax2onnx's own models of its cases, as a file: they change with its version only.

A line is a case with the nodes of its model, such as `primitives.lax/abs/abs: Abs`. A case with
64-bit types has no line where its model has the same nodes as the one with 32-bit types.

Another file has the number of nodes of our models, so that one which grows is noticed.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path

FILE = Path(__file__).parent / "jax2onnx_sizes.txt"
OURS = Path(__file__).parent / "jaxport_nodes.txt"
NONE = "no model"
DOUBLE = "_f64"

Ops = Mapping[str, int]


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Nodes by op of jax2onnx's models, for one version of it and one opset."""

    version: str
    opset: int
    lines: Mapping[str, str]

    def nodes(self, case: str) -> int | None:
        """How many nodes the model of a case has; None where jax2onnx has no model."""
        ops = self.ops(case)
        return None if ops is None else sum(ops.values())

    def ops(self, case: str) -> Ops | None:
        """The nodes of the model of a case; None where jax2onnx has none."""
        line = self.lines.get(case, self.lines.get(case.removesuffix(DOUBLE), NONE))
        return None if line == NONE else parsed(line)


def parsed(line: str) -> Ops:
    parts = [part.rpartition(" ") for part in line.split(", ") if part]
    return {op: int(count or 1) for count, _, op in parts}


def text_of(ops: Ops | None) -> str:
    if ops is None:
        return NONE
    return ", ".join(f"{n} {op}" if n > 1 else op for op, n in sorted(ops.items()))


def read(path: Path = FILE) -> Sizes:
    head, *rows = path.read_text().splitlines()
    _, version, _, opset = head.removeprefix("# ").split()
    pairs = (row.partition(":") for row in rows)
    return Sizes(version, int(opset), {name: line.strip() for name, _, line in pairs})


def of_installed(opset: int) -> Sizes | None:
    """The sizes to compare with; None, and a word about it, where there are none."""
    sizes, installed = read(), metadata.version("jax2onnx")
    if (sizes.version, sizes.opset) == (installed, opset):
        return sizes
    print(
        f"{FILE.name} is of jax2onnx {sizes.version} at opset {sizes.opset}, not of {installed} "
        f"at {opset}: sizes are not compared; `make jax2onnx-sizes` makes the file",
        file=sys.stderr,
    )
    return None


def write(
    found: Iterable[tuple[str, Ops | None]], opset: int, path: Path = FILE, version: str = ""
) -> None:
    """Replaces the file; `version` is that of the installed jax2onnx where none is given."""
    lines = {name: text_of(ops) for name, ops in sorted(found, key=lambda row: row[0])}
    rows = [f"# jax2onnx {version or metadata.version('jax2onnx')} opset {opset}"]
    for name, line in lines.items():
        single = name.removesuffix(DOUBLE)
        if single == name or lines.get(single) != line:
            rows.append(f"{name}: {line}".rstrip())
    path.write_text("\n".join(rows) + "\n")


def our_nodes(path: Path = OURS) -> dict[str, int]:
    """The nodes of our models when the file was written, by case."""
    _, *rows = path.read_text().splitlines()
    pairs = (row.rpartition(": ") for row in rows)
    return {name: int(count) for name, _, count in pairs}


def write_our_nodes(found: Mapping[str, int], opset: int, path: Path = OURS) -> None:
    """Replaces the lines of these cases."""
    nodes = {**(our_nodes(path) if path.exists() else {}), **found}
    rows = [f"{name}: {count}" for name, count in sorted(nodes.items())]
    path.write_text("\n".join([f"# jaxport opset {opset}", *rows]) + "\n")

# SPDX-License-Identifier: Apache-2.0
"""The evidence for larger models, as a file that is generated: `make jax2onnx-witness`.

A line is a case with its nodes (ours > jax2onnx's), a kind, the input and what is there to see:

    primitives.lax/round/round | 5 > 1 | wrong value | x0[0] = 0.5 | y[0] is 0, JAX has 1

The input is the change to that of the case, as hostile.py reads it.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path

from conformance.outcome import Outcome

FILE = Path(__file__).parent / "larger_evidence.txt"
FASTER = "faster"
SIGN = "sign of zero"
NONE = "none"
# How a kind is told on the page, the strongest first.
KINDS = {
    "checker": "jax2onnx's model breaks the ONNX specification",
    "not loadable": "ONNX Runtime does not load jax2onnx's model",
    "does not run": "jax2onnx's model fails at an input",
    "wrong value": "jax2onnx's model gives another number at an input",
    "digits": "jax2onnx's model has 1,024 units in the last place or more wrong, ours at most 64",
    SIGN: "jax2onnx's model gives a zero of the other sign",
    FASTER: "our model takes at most 0.97 of the time",
}
PACKAGES = ("jax2onnx", "jax", "onnxruntime")


@dataclasses.dataclass(frozen=True)
class Evidence:
    """What speaks for one larger model: `kind` is one of KINDS, or NONE."""

    kind: str
    change: str  # the input
    nodes: tuple[int, int]  # ours and jax2onnx's, when it was shown
    detail: str

    @property
    def text(self) -> str:
        """For the page, without the case."""
        return f"{self.change}: {self.detail}" if self.detail else self.change


@dataclasses.dataclass(frozen=True)
class EvidenceFile:
    """Evidence by case, and the versions with which it was shown."""

    versions: str
    by_case: Mapping[str, Evidence]

    def of(self, case: str, nodes: tuple[int, int]) -> Evidence | None:
        """The evidence for a model of this size; None where another size was looked at."""
        found = self.by_case.get(case)
        return found if found and found.nodes == nodes else None


def of_outcome(outcome: Outcome, nodes: tuple[int, int]) -> Evidence:
    """The evidence of a trial; nothing where it did not come to its end."""
    facts = outcome.facts
    if not facts:
        return Evidence(NONE, "as given", nodes, f"the trial ended with {outcome.kind}")
    ours, theirs = facts["nodes"]
    return Evidence(facts["kind"], facts["change"], (ours, theirs), facts["detail"])


def installed() -> str:
    return ", ".join(f"{name} {metadata.version(name)}" for name in PACKAGES)


def read(path: Path = FILE) -> EvidenceFile:
    if not path.exists():
        return EvidenceFile("", {})
    head, *rows = path.read_text().splitlines()
    return EvidenceFile(head.removeprefix("# "), dict(map(_parsed, rows)))


def _parsed(row: str) -> tuple[str, Evidence]:
    case, nodes, kind, change, detail = row.split(" | ", 4)
    ours, theirs = map(int, nodes.split(" > "))
    return case, Evidence(kind, change, (ours, theirs), detail)


def write(found: Mapping[str, Evidence], versions: str, path: Path = FILE) -> None:
    rows = [
        " | ".join([case, "{} > {}".format(*e.nodes), e.kind, e.change, e.detail])
        for case, e in sorted(found.items())
    ]
    path.write_text("\n".join([f"# {versions}", *rows]) + "\n")


def counted(evidence: Iterable[Evidence]) -> list[tuple[str, int]]:
    """How many there are of each kind, in the order of KINDS."""
    counts = collections.Counter(e.kind for e in evidence)
    return [(kind, counts[kind]) for kind in KINDS if counts[kind]]

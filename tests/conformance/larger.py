# SPDX-License-Identifier: Apache-2.0
"""Models that are larger than jax2onnx's: each has a cause in larger.toml, by its exact name.

A line of a cause is `primitives.jnp/argmax: a, b[_f64]`: the cases a, b and b_f64 of a component.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from conformance.evidence import EvidenceFile
from conformance.sizes import DOUBLE

FILE = Path(__file__).parent / "larger.toml"
BOTH = f"[{DOUBLE}]"
NOT_LOOKED_AT = "not looked at"


@dataclasses.dataclass(frozen=True)
class Causes:
    """Why models are larger, by case."""

    by_case: Mapping[str, str]

    def of(self, case: str) -> str:
        return self.by_case.get(case, NOT_LOOKED_AT)


def read(path: Path = FILE) -> Causes:
    """Raises ValueError where a case has two causes."""
    by_case: dict[str, str] = {}
    for cause in tomllib.loads(path.read_text())["cause"]:
        for name in (name for line in cause["cases"] for name in names(line)):
            if name in by_case:
                raise ValueError(f"{name} has two causes")
            by_case[name] = cause["reason"]
    return Causes(by_case)


def names(line: str) -> Iterator[str]:
    """The cases of a line."""
    component, _, members = line.partition(": ")
    for member in members.split(", "):
        single = member.removesuffix(BOTH)
        yield f"{component}/{single}"
        if single != member:
            yield f"{component}/{single}{DOUBLE}"


def lines(cases: Iterable[str]) -> list[str]:
    """The shortest lines for some cases."""
    members: dict[str, list[str]] = {}
    given = sorted(cases)
    for case in given:
        component, _, member = case.rpartition("/")
        single = case.removesuffix(DOUBLE)
        if single == case or single not in given:
            both = f"{case}{DOUBLE}" in given
            members.setdefault(component, []).append(member + (BOTH if both else ""))
    return [f"{component}: {', '.join(some)}" for component, some in members.items()]


def complaints(
    nodes: Mapping[str, tuple[int, int]],
    causes: Causes,
    evidence: EvidenceFile,
    before: Mapping[str, int],
) -> list[str]:
    """What is wrong with the files here, by the nodes of our models and of jax2onnx's.

    `before` are the nodes that our models had when they were last written down.
    """
    found = []
    for case, (ours, theirs) in sorted(nodes.items()):
        size = f"{ours} nodes, jax2onnx's model has {theirs}"
        is_listed = case in causes.by_case
        if ours <= theirs:
            if is_listed:
                found.append(f"{case}: {size}: has a cause in {FILE.name} and is not larger")
        elif not is_listed:
            found.append(f"{case}: {size}: not looked at, has no cause in {FILE.name}")
        elif ours > before.get(case, ours):
            found.append(f"{case}: {size}: grew, it had {before[case]}")
        elif evidence.of(case, (ours, theirs)) is None:
            found.append(f"{case}: {size}: nothing was tried at this size (--witness)")
    return found

# SPDX-License-Identifier: Apache-2.0
"""The sources of cases, by name."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from conformance.case import Case

FOLDER = Path(__file__).parent
DOCS = FOLDER.parent.parent / "docs"


@dataclasses.dataclass(frozen=True)
class Source:
    known: Path  # the list of cases that do not hold, with reasons
    page: Path  # what a run over all cases rewrites
    prefix: str = ""  # of its files in build/conformance


SOURCES = {
    "jax": Source(FOLDER / "known.toml", DOCS / "coverage.md"),
    "jax2onnx": Source(FOLDER / "known_jax2onnx.toml", DOCS / "drop-in.md", "jax2onnx-"),
    "transforms": Source(FOLDER / "known_transforms.toml", DOCS / "transforms.md", "transforms-"),
}


def cases(name: str) -> list[Case]:
    """The cases of a source, which is imported only now: JAX must be configured before."""
    if name == "jax":
        from conformance import harness

        return harness.cases()
    if name == "transforms":
        from conformance import transforms

        return transforms.cases()
    from conformance import jax2onnx_cases

    return jax2onnx_cases.cases()

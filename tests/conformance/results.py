# SPDX-License-Identifier: Apache-2.0
"""Outcomes as lines of JSON, so that a run that was interrupted goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
from importlib import metadata
from pathlib import Path

import jaxport
from conformance.outcome import Outcome


def fingerprint() -> str:
    """Changes with whatever can change an outcome: jaxport, the tolerances, other packages."""
    digest = hashlib.sha256()
    package = Path(jaxport.__file__).parent
    folders = [package, *filter(Path.is_dir, package.iterdir()), Path(__file__).parent]
    code = [path for folder in folders for path in [*folder.glob("*.py"), *folder.glob("*.so")]]
    for path in sorted(code):
        digest.update(path.read_bytes())
    for name in ("jax", "jaxlib", "numpy", "onnx", "onnxruntime"):
        digest.update(f"{name} {metadata.version(name)}\n".encode())
    return digest.hexdigest()[:16]


class Results:
    """A file of outcomes; those of another fingerprint are forgotten."""

    def __init__(self, path: Path, fresh: bool) -> None:
        self._path = path
        self.by_name: dict[str, Outcome] = {}
        mark = fingerprint()
        if not fresh and path.exists():
            self._read(mark)
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps({"fingerprint": mark}), *(o.to_json() for o in self.by_name.values())]
        path.write_text("\n".join(lines) + "\n")

    def add(self, outcome: Outcome) -> None:
        self.by_name[outcome.name] = outcome
        with self._path.open("a") as file:
            file.write(outcome.to_json() + "\n")

    def _read(self, mark: str) -> None:
        first, *lines = self._path.read_text().splitlines() or [""]
        if first != json.dumps({"fingerprint": mark}):
            return
        for line in lines:
            try:
                outcome = Outcome(**json.loads(line))
            except ValueError:  # the line that was being written when the run was interrupted
                continue
            self.by_name[outcome.name] = outcome

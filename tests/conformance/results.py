# SPDX-License-Identifier: Apache-2.0
"""Outcomes as lines of JSON, so that a run that was interrupted goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import jaxport
from conformance.outcome import Outcome

# The modules here that an outcome depends on; others report.
DECIDING = (
    *("case.py", "check.py", "controls.py", "harness.py", "jax2onnx_cases.py", "ties.py"),
    *("tolerances.py", "transforms.py", "functions/*.py"),
)


def fingerprint(code: Sequence[Path], packages: Sequence[str] = ()) -> str:
    """Changes with these files and packages, and with the packages that all cases depend on."""
    digest = hashlib.sha256()
    for path in sorted(code):
        digest.update(path.read_bytes())
    for name in (*packages, "jax", "jaxlib", "numpy", "onnx", "onnxruntime"):
        digest.update(f"{name} {metadata.version(name)}\n".encode())
    return digest.hexdigest()[:16]


def of_jaxport() -> str:
    """The fingerprint of outcomes that depend on jaxport, the cases and the tolerances."""
    package = Path(jaxport.__file__).parent
    folders = [package, *filter(Path.is_dir, package.iterdir())]
    code = [path for folder in folders for path in [*folder.glob("*.py"), *folder.glob("*.so")]]
    deciding = [path for name in DECIDING for path in Path(__file__).parent.glob(name)]
    return fingerprint([*code, *deciding])


class Results:
    """A file of outcomes; those of another fingerprint are forgotten."""

    def __init__(self, path: Path, fresh: bool, mark: str) -> None:
        self._path = path
        self.by_name: dict[str, Outcome] = {}
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

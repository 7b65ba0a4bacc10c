# SPDX-License-Identifier: Apache-2.0
"""The corpus as .jir files, which are kept as long as nothing changes that decides about them."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from replay.version import FOLDER, ROOT, ReplayError, Version

# What a version makes of a program before it compiles it, and how that is written and read.
TRACING = [*("python/jaxport", "src/bind", "src/front", "src/dim", "src/support")]
# Which programs there are: always those of the working tree.
CORPUS = [
    *("tests/python/raising", "tests/python/support", "tests/python/test_models.py"),
    *("tests/conformance/harness.py", "tools/replay/corpus.py"),
]
MOST_KEPT = 8  # traces of the corpus, of 50 MB each
# Names in, those that the compiler has something for out; all other primitives are decomposed.
KNOWN = "import sys; from jaxport._core import knows; print([w for w in sys.argv[1:] if knows(w)])"


def traces_of(version: Version, every: int, jobs: int) -> dict[str, Path]:
    """The trace of each program by name: .jir, or .error with the reason why there is none."""
    folder = FOLDER / "traces" / _key(version, every)
    if not (folder / "index.json").exists():
        print(f"{version.name}: tracing the corpus, which no kept traces fit", flush=True)
        command = [sys.executable, "-m", "replay.corpus", str(folder), str(every), str(jobs)]
        if subprocess.run(command, cwd=ROOT, env=version.environment).returncode != 0:
            raise ReplayError(f"{version.name}: the corpus of the working tree cannot be traced")
    _forget_others(folder)
    index: dict[str, str] = json.loads((folder / "index.json").read_text())
    return {name: folder / file for name, file in index.items()}


def _forget_others(used: Path) -> None:
    """Keeps the traces that were used last."""
    used.touch()
    kept = sorted(used.parent.iterdir(), key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in kept[MOST_KEPT:]:
        shutil.rmtree(folder)


def _key(version: Version, every: int) -> str:
    """A hash of everything that a trace depends on."""
    packages = sorted(f"{p.name} {p.version}" for p in importlib.metadata.distributions())
    digest = hashlib.sha256(f"{every} {packages} {_known_primitives(version)}".encode())
    for root, paths in ((version.tree, TRACING), (ROOT, CORPUS)):
        for file in _files(root, paths):
            digest.update(f"{file.relative_to(root)}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def _files(root: Path, paths: list[str]) -> Iterator[Path]:
    for path in paths:
        found = [root / path, *(root / path).rglob("*")]
        yield from sorted(p for p in found if p.is_file() and p.suffix != ".pyc")


def _known_primitives(version: Version) -> str:
    """The primitives that a compiler knows: each stands in its sources, as a string."""
    text = "".join(file.read_text(encoding="utf-8") for file in _files(version.tree, ["src"]))
    words = sorted(set(re.findall(r'"([a-z]\w*)"', text)))
    command = [sys.executable, "-c", KNOWN, *words]
    return subprocess.check_output(command, env=version.environment, text=True)

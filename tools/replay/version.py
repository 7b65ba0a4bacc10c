# SPDX-License-Identifier: Apache-2.0
"""The two versions of the compiler: the working tree, and a commit in a folder of its own."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "replay"


class ReplayError(Exception):
    """Why nothing can be compared."""


@dataclasses.dataclass(frozen=True)
class Version:
    """A tree of sources with its build; `name` is "before" or "after"."""

    name: str
    tree: Path

    @property
    def build(self) -> Path:
        return self.tree / "build" / "release"

    @property
    def package(self) -> Path:
        """This version's jaxport for Python, as links to its files."""
        return FOLDER / "packages" / self.name / "jaxport"

    @property
    def environment(self) -> dict[str, str]:
        """Python with this version's jaxport and the programs of the working tree."""
        folders = [self.package.parent, *(ROOT / f for f in ("tests", "tests/python", "tools"))]
        path = os.pathsep.join(map(str, folders))
        return {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": path}


def git(*arguments: str, **environment: str) -> str:
    """The output of git, "" when it fails or is not there."""
    env = {**os.environ, **environment}
    if not shutil.which("git"):
        return ""
    done = subprocess.run(["git", *arguments], cwd=ROOT, env=env, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def base_commit(wanted: str) -> str:
    """The commit to compare with, by default where this branch left main.

    On main that is the last commit, or the one before it when nothing has changed since.
    """
    head = git("rev-parse", "HEAD")
    if wanted:
        commit = git("rev-parse", "--verify", f"{wanted}^{{commit}}")
    else:
        commit = git("merge-base", "main", "HEAD") or head
        if commit == head and not git("status", "--porcelain"):
            commit = git("rev-parse", "--verify", "HEAD~1")
    if not commit:
        raise ReplayError(f"BASE={wanted or 'HEAD~1'} is no commit of this repository")
    return commit


def check_out(commit: str) -> Version:
    """The tree of a commit. Files that are there already keep their times, so ninja skips them."""
    tree = FOLDER / "before"
    tree.mkdir(parents=True, exist_ok=True)
    places = {"GIT_WORK_TREE": str(tree), "GIT_INDEX_FILE": str(tree / ".index")}
    git("read-tree", "--reset", "-u", commit, **places)
    if git("write-tree", **places) != git("rev-parse", f"{commit}^{{tree}}"):
        raise ReplayError(f"cannot check out {commit} into {tree}: remove it and try again")
    return Version("before", tree)


def build(version: Version, jobs: int, compiler: str = "") -> None:
    """Builds the command and the Python module of a version; ccache has what did not change."""
    settings = ["-DJAXPORT_PYTHON=ON", f"-DPython_EXECUTABLE={sys.executable}"]
    settings += [f"-DCMAKE_CXX_COMPILER={compiler}"] if compiler else []
    _run(version, ["cmake", "--preset", "release", "--log-level=WARNING", *settings])
    targets = ["--target", "jaxport", "_core", "--parallel", str(jobs)]
    _run(version, ["cmake", "--build", "--preset", "release", *targets])
    _link_package(version)


def _run(version: Version, command: list[str]) -> None:
    # On a terminal, ninja shows in one line how far it is.
    is_shown = "--build" in command and sys.stdout.isatty()
    output = None if is_shown else subprocess.PIPE
    done = subprocess.run(
        command, cwd=version.tree, stdout=output, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode != 0:
        raise ReplayError(f"{version.name}: {version.tree} cannot be built\n{done.stdout or ''}")


def _link_package(version: Version) -> None:
    shutil.rmtree(version.package, ignore_errors=True)
    version.package.mkdir(parents=True)
    sources = (version.tree / "python" / "jaxport").iterdir()
    for file in [*sources, *version.build.glob("_core*.so")]:
        if file.name != "__pycache__":
            (version.package / file.name).symlink_to(file)


def compiler_of(version: Version) -> str:
    """The C++ compiler of a build: with the same one, both versions share what ccache has."""
    cache = (version.build / "CMakeCache.txt").read_text()
    found = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", cache, re.MULTILINE)
    return found[1] if found else ""

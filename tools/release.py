# SPDX-License-Identifier: Apache-2.0
"""A release up to the point where something leaves this machine: `make release-dry-run`.

Checks that the version is the same everywhere and the changelog has something to say, builds sdist
and wheel as a release does, installs the wheel into an empty environment and tries it, and prints
the commands that are left.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "build" / "dist"
NUMBER = r"\d+\.\d+\.\d+(?:rc\d+)?"
# Each file with the place where its version stands. The first is the one that decides.
PLACES = {
    "include/jaxport/version.h": rf'kVersion = "({NUMBER})"',
    "CITATION.cff": rf"(?m)^version: ({NUMBER})$",
}


def versions(root: Path = ROOT) -> dict[str, str]:
    found = {
        name: re.search(pattern, (root / name).read_text()) for name, pattern in PLACES.items()
    }
    return {name: match[1] if match else "none" for name, match in found.items()}


def section(changelog: str, title: str) -> str:
    """What the changelog says under a heading such as Unreleased."""
    body = changelog.partition(f"## [{title}]")[2]
    return body.partition("\n## [")[0].strip()


def problems(root: Path = ROOT) -> list[str]:
    """What is in the way of a release."""
    said = versions(root)
    version = next(iter(said.values()))
    found = [
        f"{name} says {other}, not {version}" for name, other in said.items() if other != version
    ]
    changelog = (root / "CHANGELOG.md").read_text()
    if not section(changelog, version) and "- " not in section(changelog, "Unreleased"):
        found.append(f"CHANGELOG.md says nothing about {version}, and nothing under Unreleased")
    return found


def run(*command: str | Path, folder: Path = ROOT) -> None:
    """In a folder; the compiler's cache knows its files by their paths from there."""
    print("+", *command, flush=True)
    environment = {**os.environ, "CCACHE_BASEDIR": str(folder), "CCACHE_NOHASHDIR": "1"}
    subprocess.run(list(map(str, command)), cwd=folder, env=environment, check=True)


def unpacked(sdist: Path) -> Path:
    folder = DIST.parent / "sdist"
    shutil.rmtree(folder, ignore_errors=True)
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    [inside] = folder.iterdir()
    return inside


def package() -> Path:
    """The sdist, and from it, not from this folder, a wheel for other Linux machines."""
    shutil.rmtree(DIST, ignore_errors=True)
    python = sys.executable
    run(python, "-m", "build", "--sdist", "--no-isolation", "--outdir", DIST, ".")
    [sdist] = DIST.glob("*.tar.gz")
    source = unpacked(sdist)
    settings = ("build-dir=build/release", "cmake.args=--preset=release")
    options = [word for setting in settings for word in ("--config-settings", setting)]
    pip = (python, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps")
    run(*pip, *options, "--wheel-dir", source / "dist", ".", folder=source)
    [wheel] = (source / "dist").glob("*.whl")
    run(python, "-m", "auditwheel", "repair", "--wheel-dir", DIST, wheel)
    return next(DIST.glob("*.whl"))


def main() -> int:
    found = problems()
    for problem in found:
        print(problem)
    if found:
        return 1
    wheel = package()
    run("tools/smoke.sh", sys.executable, wheel)
    version = versions()["include/jaxport/version.h"]
    changes = subprocess.run(
        ["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout
    if changes:
        print(f"not committed yet: {len(changes.splitlines())} files")
    print(f"ready: {', '.join(sorted(path.name for path in DIST.iterdir()))}")
    print(f"what a release does next: git tag -a v{version}; git push --tags; upload build/dist")
    return 0


if __name__ == "__main__":
    sys.exit(main())

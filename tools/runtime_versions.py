# SPDX-License-Identifier: Apache-2.0
"""The runtimes and versions that models are made for, each in an environment of its own.

An environment is a folder with the wheel from PyPI, unpacked, that goes into PYTHONPATH; everything
else comes from the Python that runs this. ONNX Runtime Web comes from npm.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "runtimes"
LOCK = ROOT / "requirements" / "lock" / "runtimes.txt"

# Minor version -> the release that stands for it, oldest first. The last one is that of
# requirements/common.txt. To add a version: a line here and one in requirements/runtimes.txt, `make
# lock`, then tools/generate_kernels.py.
RELEASES = {
    "1.17": "1.17.3",
    "1.18": "1.18.1",
    "1.19": "1.19.2",
    "1.20": "1.20.1",
    "1.21": "1.21.1",
    "1.22": "1.22.1",
    "1.23": "1.23.2",
    "1.24": "1.24.4",
    "1.25": "1.25.1",
    "1.26": "1.26.0",
    "1.27": "1.27.0",
    "1.28": "1.28.0",
    "1.29": "1.29.0",
    "1.30": "1.30.0",
    "1.31": "1.31.1",
}
# These were built before NumPy 2, whose modules they refuse.
NUMPY_1 = {"1.17", "1.18"}
NUMPY_1_RELEASE = "1.26.4"


def minor(release: str) -> str:
    """1.31 of 1.31.1."""
    return ".".join(release.split(".")[:2])


# OpenVINO: year and number -> release. ONNX Runtime Web, of which tests take the pinned one.
OPENVINO = {
    "2026.4": "2026.4.1",
}
PACKAGES_OF_NODE = ROOT / "requirements" / "web" / "package.json"
WEB = json.loads(PACKAGES_OF_NODE.read_text())["dependencies"]["onnxruntime-web"]
# Each has a lock of npm; a new one is a folder with a package.json, and `make lock`.
WEB_LOCKS = PACKAGES_OF_NODE.parent / "releases"
WEB_RELEASES = {
    "1.20": "1.20.1",
    "1.23": "1.23.2",
    "1.24": "1.24.3",
    "1.27": "1.27.0",
    "1.30": "1.30.0",
}
TRACT = "0.23.9"


def _lock_of(requirement: str) -> str:
    """The requirement with the hashes of its files, from requirements/lock/runtimes.txt."""
    entry = re.search(rf"^{re.escape(requirement)} .*(\n +--hash.*)+", LOCK.read_text(), re.M)
    if entry is None:
        raise SystemExit(
            f"{requirement} is not in {LOCK.name}: requirements/runtimes.txt, make lock"
        )
    return entry[0] + "\n"


def _install(requirement: str) -> Path:
    folder = FOLDER / requirement.replace("==", "-")
    done = folder / ".done"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        lock = folder / "lock.txt"
        lock.write_text(_lock_of(requirement))
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        pip += ["--no-deps", "--upgrade", "--target", str(folder)]
        subprocess.run([*pip, "--require-hashes", "--requirement", str(lock)], check=True)
        done.touch()
    return folder


def environment(package: str, release: str) -> dict[str, str]:
    """The environment variables with which Python imports this release; installs it if need be."""
    folders = [_install(f"{package}=={release}")]
    if package == "onnxruntime" and minor(release) in NUMPY_1:
        folders.append(_install(f"numpy=={NUMPY_1_RELEASE}"))
    path = os.pathsep.join([*map(str, folders), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path}


def node_modules(release: str) -> Path:
    """The folder that holds onnxruntime-web of this release; installs it if need be."""
    folder = FOLDER / f"onnxruntime-web-{release}"
    done = folder / ".done"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for file in (WEB_LOCKS / release).iterdir():
            shutil.copy(file, folder)
        npm = ["npm", "ci", "--silent", "--no-fund", "--no-audit", "--prefix", str(folder)]
        subprocess.run(npm, check=True, stdin=subprocess.DEVNULL)
        for unused in (folder / "node_modules" / "onnxruntime-web" / "dist").glob("*.map"):
            unused.unlink()
        done.touch()
    return folder / "node_modules"

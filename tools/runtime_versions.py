# SPDX-License-Identifier: Apache-2.0
"""The versions of ONNX Runtime that models are made for, each in an environment of its own.

An environment is a folder with the wheel from PyPI, unpacked, that goes into PYTHONPATH; everything
else comes from the Python that runs this.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "runtimes"

# Minor version -> the release that stands for it, oldest first. The last one is that of
# requirements/common.txt. To add a version: a line here, then tools/generate_kernels.py.
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


def _install(requirement: str) -> Path:
    folder = FOLDER / requirement.replace("==", "-")
    done = folder / ".done"
    if not done.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run(
            [*pip, "--no-deps", "--upgrade", "--target", folder, requirement], check=True
        )
        done.touch()
    return folder


def environment(version: str) -> dict[str, str]:
    """The environment variables with which Python imports this version; installs it if need be."""
    folders = [_install(f"onnxruntime=={RELEASES[version]}")]
    if version in NUMPY_1:
        folders.append(_install(f"numpy=={NUMPY_1_RELEASE}"))
    path = os.pathsep.join([*map(str, folders), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path}

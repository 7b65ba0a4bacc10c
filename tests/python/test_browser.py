# SPDX-License-Identifier: Apache-2.0
"""Pages in Chromium: the demo that reads digits, and the documentation site.

Every page of the site is opened; JAXPORT_PAGES=all lets axe-core look at all of them, which takes
minutes, instead of at three.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "site"
SCREENSHOTS = ROOT / "build" / "report" / "screenshots"
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
MODULES = Path(os.environ.get("NODE_PATH", "none").split(os.pathsep)[0])

pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium"),
    pytest.mark.skipif(
        not (MODULES / "playwright-core").exists(), reason="make test-web installs playwright-core"
    ),
]


def visit(script, *arguments):
    """What a script of tests/browser prints."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["node", ROOT / "tests" / "browser" / script, *arguments],
        env={**os.environ, "CHROMIUM": CHROMIUM, "NODE_PATH": str(MODULES)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(
    importlib.util.find_spec("sklearn") is None, reason="requirements/examples.txt is not installed"
)
def test_drawn_digits_are_read(tmp_path):
    from examples.web.__main__ import build

    assert build(tmp_path, MODULES) > 0.95
    found = visit("digits.mjs", tmp_path, SCREENSHOTS / "digits.png")
    wrong = {digit: read for digit, read in found["read"].items() if int(digit) != read}
    assert len(wrong) <= 1, wrong
    assert not found["problems"]


@pytest.mark.skipif(not SITE.exists(), reason="make docs builds the site")
def test_pages_of_the_site():
    every = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
    sample = ["index.html", "raising.html", "ecosystem.html"]
    closely = every if os.environ.get("JAXPORT_PAGES") == "all" else sample
    others = [page for page in every if page not in closely]
    found = visit("site.mjs", SITE, SCREENSHOTS, *closely, "--", *others)
    assert found.keys() == set(every)
    assert not {page: problems for page, problems in found.items() if problems}

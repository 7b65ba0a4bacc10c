# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/modules.md run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent.parent / "docs" / "modules.md"
EXAMPLES = re.findall(r"^## (.+?)$|^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)


def examples():
    found, title = [], ""
    for heading, code in EXAMPLES:
        title = heading or title
        found += [pytest.param(code, id=title)] if code else []
    return found


@pytest.mark.parametrize("code", examples())
def test_examples(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    for package in ("haiku", "keras"):
        if f"import {package}" in code:
            pytest.importorskip(package)
    exec(compile(code, str(PAGE), "exec"), {"__name__": "example"})

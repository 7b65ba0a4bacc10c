# SPDX-License-Identifier: Apache-2.0
"""The Python code of these pages runs, block after block in one program."""

from __future__ import annotations

import pathlib
import re

import pytest

DOCS = pathlib.Path(__file__).parents[2] / "docs"
PAGES = [
    "control-flow.md",
    "dynamic-shapes.md",
    "functions.md",
    "inputs.md",
    "migration.md",
    "modules.md",
    "quickstart.md",
    "verification.md",
]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    text = (DOCS / page).read_text()
    blocks = list(BLOCK.finditer(text))
    assert blocks
    names = {"__name__": "__page__"}
    for block in blocks:
        line = text[: block.start(1)].count("\n")
        exec(compile("\n" * line + block[1], str(DOCS / page), "exec"), names)

# SPDX-License-Identifier: Apache-2.0
"""The Python code of all pages and of README.md runs, block after block in one program for a page.

A block of another kind (text, sh, diff) is not run; neither is one below a heading of FRAGMENTS.
"""

from __future__ import annotations

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
# A row of a table of tests, which is no program.
FRAGMENTS = {"docs/adding-a-primitive.md": "### 3. The tests"}


def blocks(page):
    """The line and the code of each block."""
    text = page.read_text(encoding="utf-8")
    fragment = FRAGMENTS.get(page.relative_to(ROOT).as_posix())
    text = text[: text.index(fragment)] if fragment else text
    return [(text[: block.start(1)].count("\n"), block[1]) for block in BLOCK.finditer(text)]


PAGES = [page for page in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))] if blocks(page)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    names = {"__name__": "__page__"}
    for line, code in blocks(page):
        exec(compile("\n" * line + code, str(page), "exec"), names)


def test_every_example_is_in_the_table_of_examples():
    folder = ROOT / "examples"
    programs = {path.name for path in folder.glob("*.py")} - {"__init__.py"}
    programs |= {f"{path.parent.name}/" for path in folder.glob("*/__main__.py")}
    table = (DOCS / "examples.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)) == programs


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = set(re.findall(r"[\w/-]+\.md", navigation))
    assert listed == {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}

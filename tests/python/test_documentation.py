# SPDX-License-Identifier: Apache-2.0
"""The Python code of all pages and of README.md runs, block after block in one program for a page.

So do the commands of jaxport in blocks of other kinds; what else stands there is not run, and
neither is what is below a heading of FRAGMENTS.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

import jaxport

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


TEXT = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?:\$ )?(jaxport (?!time:|raise:)\w+ .*)$", re.MULTILINE)
# What ends with an error, as it says itself: the program has no error to keep while it shrinks.
REFUSED = {"jaxport reduce case.jir": "JXP-E094"}


def commands(page):
    text = page.read_text(encoding="utf-8")
    shell = [code for language, code in TEXT.findall(text) if language in ("", "sh", "console")]
    return [command for block in shell for command in COMMAND.findall(block)]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with the files that the commands of the pages name."""
    folder = tmp_path_factory.mktemp("commands")

    def attend(x):
        return jax.nn.softmax(x @ jnp.ones((64, 64)) / 8, axis=-1)

    model = jaxport.to_onnx(attend, [("B", 64)], return_mode="model")
    for name in ["model", "in", "m", "other", "encoder", "decoder"]:
        model.save(folder / f"{name}.onnx")
    jaxport.verify(attend, folder / "m.onnx", [("B", 64)], certificate=folder / "m.verify.json")
    (folder / "folder/001").mkdir(parents=True)
    for name in ["case.jir", "program.jir", "folder/001/0-program.jir"]:
        (folder / name).write_text(model.jir(), encoding="utf-8")
    (folder / "package").mkdir()
    (folder / "package/module.py").write_text("def function(x):\n    return x * 2\n")
    (folder / "net.py").write_text("def classify(tokens, scale):\n    return tokens * scale\n")
    return folder


COMMANDS = [page for page in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))] if commands(page)]


@pytest.mark.parametrize("page", COMMANDS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_commands_of_a_page_run(page, files, tmp_path):
    folder = shutil.copytree(files, tmp_path / "files")
    path = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command in commands(page):
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env={**os.environ, "PATH": path, "JAX_PLATFORMS": "cpu"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        said = done.stdout + done.stderr
        refused = next((code for start, code in REFUSED.items() if command.startswith(start)), None)
        assert done.returncode == 0 or (refused and refused in said), f"{command}\n{said}"


def test_there_are_commands_to_run():
    assert len([command for page in COMMANDS for command in commands(page)]) > 12


def test_the_pictures_of_a_page_exist():
    """Each one is there, and each one that is there is shown somewhere."""
    shown = set()
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        for name in re.findall(r"!\[[^]]*\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            picture = (page.parent / name).resolve()
            assert picture.is_file(), f"{page.name} shows {name}"
            shown.add(picture)
    assert shown == {path.resolve() for path in (DOCS / "images").iterdir()}

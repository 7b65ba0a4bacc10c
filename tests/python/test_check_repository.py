# SPDX-License-Identifier: Apache-2.0
"""Every rule of tools/check_repository.py finds what it is about, and nothing in a clean tree."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "check_repository.py"
SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
ENTRY = "**It cannot.**\n\nExample: this.\n\nWhat to do: that.\n"
PINS = "# Pins\nnumpy==2.4.6\n"
CLEAN = {
    "CMakeLists.txt": "jaxport_library(low FILES a.cpp)\n"
    "jaxport_library(high FILES b.cpp USES low)\n",
    "docs/errors.md": "# Errors\n\n## E998\n" + ENTRY,
    "requirements/docs.txt": PINS,
    "requirements/lock/docs.txt": "numpy==2.4.6 \\\n    --hash=sha256:0\n",
    "src/low/a.cpp": SPDX + 'throw Error("E998", "no");\n',
    "src/high/b.cpp": SPDX + '#include "low/a.h"\n',
    "tests/golden/error/a.jir": "// CHECK: E998\n",
}


@pytest.fixture
def check(tmp_path: Path) -> Callable[..., list[str]]:
    """Writes a clean tree with some files replaced, and gives the findings."""
    spec = importlib.util.spec_from_file_location("check_repository", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.ROOT = tmp_path

    def findings(replaced: dict[str, str]) -> list[str]:
        for name, text in {**CLEAN, **replaced}.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return [f"{path}: {message}" for rule in module.RULES for path, _, message in rule()]

    return findings


def test_a_clean_tree_has_no_findings(check: Callable[..., list[str]]) -> None:
    assert check({}) == []


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("docs/errors.md", "# Errors\n", "E998 has no heading"),
        ("docs/errors.md", f"## E998\n{ENTRY}## E999\n{ENTRY}", "nothing throws E999"),
        ("docs/errors.md", "## E998\n**It cannot.**\n\nExample: this.\n", "lacks a way out"),
        ("tests/golden/error/a.jir", "", "no test expects E998"),
        ("tests/golden/error/a.jir", "// what E998 is about\n", "no test expects E998"),
        ("requirements/docs.txt", "numpy==2.4.7\n", "lacks numpy==2.4.7: make lock"),
        ("requirements/lock/docs.txt", "numpy==2.4.6\n", "lacks numpy==2.4.6: make lock"),
        ("Makefile", "lock:\n\tpython -m pip install uv==0.13.8\n", "without hashes"),
        ("tools/x.sh", SPDX + "pip=bin/pip install \\\n  --requirement x.txt\n", "without hashes"),
        ("tools/x.py", SPDX + 'run([*"-m", "pip", "install", x])\n', "without hashes"),
        ("tools/x.py", SPDX + 'run(["npm", "install", x])\n', "without hashes"),
        ("src/low/c.cpp", SPDX + '#include "high/b.h"\n', "does not name high in its USES"),
        ("src/low/c.cpp", SPDX + "#include <iostream>\n", "only src/tool/ prints"),
        ("src/low/c.cpp", SPDX + "#include <protozero/types.hpp>\n", "includes protozero"),
        (
            "src/low/c.cpp",
            SPDX + "std::unordered_set<int> ids;\nfor (int id : ids) use(id);\n",
            "loops over unordered 'ids'",
        ),
        (
            "src/low/c.cpp",
            SPDX + "for (int i : *sizes(x)) use(i);\n",
            "loops over a part of a temporary",
        ),
        ("src/low/c.cpp", SPDX + "\n" * 600, "more than 600"),
        ("src/low/c.cpp", "int x;\n", "SPDX"),
        ("docs/page.md", "see /" + "home/somebody/file\n", "path of one machine"),
        ("src/low/c.cpp", SPDX + "// TO" + "DO: later\n", "without an issue"),
    ],
)
def test_a_breach_is_found(
    check: Callable[..., list[str]], name: str, text: str, expected: str
) -> None:
    (finding,) = check({name: text})
    assert expected in finding


def test_installing_with_hashes_is_fine(check: Callable[..., list[str]]) -> None:
    make = "PIP_INSTALL := -m pip install --quiet\n\npython $(PIP_INSTALL) --require-hashes -r $<\n"
    make += "python $(PIP_INSTALL) --no-deps build/wheel/jaxport-*.whl\nnpm ci\n"
    shell = SPDX + "python -m pip install --quiet \\\n  --require-hashes -r x.txt\n"
    assert check({"Makefile": make, "tools/x.sh": shell}) == []


def test_a_rule_without_documentation_is_found(check: Callable[..., list[str]]) -> None:
    rule = {"tests/golden/raise/rules/softmax.jir": "// a sample\n"}
    assert check({**rule, "docs/raising.md": "`softmax`\n"}) == []
    assert len(check({**rule, "docs/raising.md": "nothing\n"})) == 1


PIPELINE = {"src/pass/pipeline.cpp": SPDX + '    {"merge_views", merge_views},\n'}


def test_a_pass_without_a_text_test_is_found(check: Callable[..., list[str]]) -> None:
    (finding,) = check(PIPELINE)
    assert "no merge_views.onnxtxt" in finding


def test_a_pass_with_a_text_test_is_fine(check: Callable[..., list[str]]) -> None:
    assert check({**PIPELINE, "tests/golden/pass/merge_views.onnxtxt": "# a graph\n"}) == []


PART = SPDX + "struct Part {\n  int x;\n};\n"


def test_a_type_with_two_definitions_is_found(check: Callable[..., list[str]]) -> None:
    (finding,) = check({"src/low/a.h": PART, "src/low/c.h": SPDX + "struct Part : Whole {\n};\n"})
    assert "defined in src/low/a.h, too" in finding


def test_folders_may_have_types_of_one_name(check: Callable[..., list[str]]) -> None:
    assert check({"src/low/a.h": PART, "src/high/c.h": PART}) == []

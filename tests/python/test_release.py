# SPDX-License-Identifier: Apache-2.0
"""What a release needs holds at any time; tools/release.py says what is missing."""

from __future__ import annotations

import re
import shutil

import release

import jaxport


def copied(tmp_path, **changes):
    for name in [*release.PLACES, "CHANGELOG.md"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(release.ROOT / name, tmp_path / name)
    for name, (old, new) in changes.items():
        path = tmp_path / {"citation": "CITATION.cff", "changelog": "CHANGELOG.md"}[name]
        path.write_text(re.sub(old, new, path.read_text(), flags=re.DOTALL))
    return tmp_path


def test_nothing_is_in_the_way():
    assert release.problems() == []
    assert set(release.versions().values()) == {jaxport.__version__}


def test_another_version_in_the_citation(tmp_path):
    root = copied(tmp_path, citation=(r"(?m)^version: .*?$", "version: 9.9.9rc1"))
    [problem] = release.problems(root)
    assert problem == f"CITATION.cff says 9.9.9rc1, not {jaxport.__version__}"


def test_an_empty_changelog(tmp_path):
    root = copied(tmp_path, changelog=(r"(## \[Unreleased\]).*", r"\1\n"))
    [problem] = release.problems(root)
    assert "nothing under Unreleased" in problem


def test_the_release_has_at_most_ten_commands():
    page = (release.ROOT / "docs" / "release.md").read_text()
    commands = re.search(r"```\n(.*?)```", page, re.DOTALL)[1].strip().splitlines()
    assert 5 < len(commands) <= 10

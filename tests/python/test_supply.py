# SPDX-License-Identifier: Apache-2.0
"""What the wheel is made of stands in it, and its licences are looked at."""

from __future__ import annotations

import importlib.metadata
import json
import re
from pathlib import Path
from typing import Any

import check_licences
import nanobind
import pytest

import jaxport

# The header of each library that says which version it is, where it is installed.
HEADERS = {
    "fmt": ("fmt/core.h", r"FMT_VERSION (\d+)"),
    "protozero": ("protozero/version.hpp", r'VERSION_STRING "(.*)"'),
    "CLI11": ("CLI/Version.hpp", r'CLI11_VERSION "(.*)"'),
}


@pytest.fixture(scope="module")
def bill() -> dict[str, Any]:
    files = importlib.metadata.files("jaxport")
    assert files is not None
    (path,) = [path for path in files if path.name == "jaxport.cdx.json"]
    assert path.parent.name == "sboms"
    assert path.parent.parent.name.endswith(".dist-info")
    return json.loads(path.read_text())


def test_the_bill_names_every_library(bill: dict[str, Any]) -> None:
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["version"] == jaxport.__version__
    names = {component["name"] for component in bill["components"]}
    fetched = {"fmt", "abseil-cpp", "protozero", "CLI11", "nlohmann-json", "nanobind", "robin-map"}
    assert names == fetched
    references = [component["bom-ref"] for component in bill["components"]]
    assert bill["dependencies"] == [
        {"ref": bill["metadata"]["component"]["bom-ref"], "dependsOn": references}
    ]


def test_the_bill_has_the_versions_of_this_build(bill: dict[str, Any]) -> None:
    versions = {component["name"]: component["version"] for component in bill["components"]}
    assert versions["nanobind"] == nanobind.__version__
    for name, (header, pattern) in HEADERS.items():
        path = Path("/usr/include") / header
        if not path.exists():
            continue  # the build fetched it
        found = re.search(pattern, path.read_text())[1]
        if name == "fmt":  # 90100
            number = int(found)
            found = f"{number // 10000}.{number // 100 % 100}.{number % 100}"
        assert versions[name] == found, name
    assert all(re.fullmatch(r"[0-9]+(\.[0-9]+)*", version) for version in versions.values())


@pytest.mark.parametrize(
    ("written", "identifier"),
    [
        ("Apache License, Version 2.0", "Apache-2.0"),
        ("Apache 2.0", "Apache-2.0"),
        ("MIT License\n\nCopyright (c) 2022", "MIT"),
        ("3-Clause BSD License", "BSD-3-Clause"),
        ("GNU General Public License v3 or later (GPLv3+)", None),
        ("", None),
    ],
)
def test_spellings_of_licences(written: str, identifier: str | None) -> None:
    found = check_licences.spelled(written)
    assert found == identifier or (identifier is None and found not in check_licences.FOR_TOOLS)


def test_what_reaches_users_has_to_be_permissive(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_licences.is_allowed("MIT OR GPL-3.0-only", check_licences.PERMISSIVE)
    assert not check_licences.is_allowed("MIT AND GPL-3.0-only", check_licences.PERMISSIVE)
    assert check_licences.is_allowed("MPL-2.0", check_licences.FOR_TOOLS)
    monkeypatch.setattr(check_licences, "linked", lambda: [("somelib", "1.0", "MPL-2.0")])
    monkeypatch.setattr(check_licences, "PERMISSIVE", check_licences.PERMISSIVE - {"Apache-2.0"})
    refused = list(check_licences.refused())
    assert "somelib 1.0, in the wheel: MPL-2.0" in refused
    assert any(line.startswith("jaxlib ") and "needed by the wheel" in line for line in refused)


def test_packages_of_npm_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    packages = check_licences.of_node()
    assert {name for name, _, _, shipped in packages if shipped} >= {"@dagrejs/dagre", "esbuild"}
    assert any(name == "onnxruntime-web" and not shipped for name, _, _, shipped in packages)
    page = [("dagre", "1.0", "MPL-2.0", True), ("axe", "1.0", "MPL-2.0", False)]
    monkeypatch.setattr(check_licences, "of_node", lambda: page)
    assert "dagre 1.0, of npm: MPL-2.0" in list(check_licences.refused())
    assert "axe 1.0, of npm: MPL-2.0" not in list(check_licences.refused())

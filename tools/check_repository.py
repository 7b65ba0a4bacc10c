# SPDX-License-Identifier: Apache-2.0
"""Rules of this repository that no other tool knows: prints every breach, exits 1 if there is one.

A rule is a function that yields findings; RULES lists them.
"""

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = (
    ".ci", "bench", "cmake", "docs", "examples", "include", "python", "requirements", "src",
    "tests", "tools", "web",
)  # fmt: skip
TEXT = {
    ".cfg", ".cmake", ".cpp", ".css", ".h", ".inc", ".jir", ".json", ".md", ".mjs", ".onnxtxt",
    ".py", ".pyi", ".sh", ".test", ".toml", ".ts", ".txt", ".yaml", "",
}  # fmt: skip
SOURCE = {".cpp", ".css", ".h", ".mjs", ".py", ".pyi", ".sh", ".cmake", ".ts"}
NOT_OURS = {"__pycache__", "dist", "node_modules"}
MAX_LINES = 600

Finding = tuple[str, int, str]  # path from the root, line (0: the whole file), message


@cache
def files() -> tuple[Path, ...]:
    found = [p for p in ROOT.iterdir() if p.is_file() and p.name != ".git"]
    for folder in FOLDERS:
        found += [p for p in (ROOT / folder).rglob("*") if p.is_file()]
    kept = (p for p in found if p.suffix in TEXT and not NOT_OURS.intersection(p.parts))
    return tuple(sorted(kept))


@cache
def lines(path: Path) -> tuple[str, ...]:
    return tuple(path.read_text(encoding="utf-8").splitlines())


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def below(*folders: str, suffixes: set[str] = TEXT) -> list[Path]:
    return [p for p in files() if p.suffix in suffixes and name(p).startswith(folders)]


def search(pattern: str, paths: list[Path], flags: int = 0) -> Iterator[tuple[Path, int, re.Match]]:
    """All matches, with the path and the number of the line."""
    compiled = re.compile(pattern, flags)
    for path in paths:
        for number, line in enumerate(lines(path), 1):
            for match in compiled.finditer(line):
                yield path, number, match


# --- errors


def error_codes() -> dict[str, tuple[str, int]]:
    """Every code that C++ or Python can throw, with one place that does."""
    codes: dict[str, tuple[str, int]] = {}
    thrown = below("src/", "include/", "python/", suffixes={".cpp", ".h", ".py"})
    for path, number, match in search(r'^(?!\s*(?://|#)).*?"(E\d{3})"', thrown):
        codes.setdefault(match[1], (name(path), number))
    return codes


def codes_are_documented() -> Iterator[Finding]:
    page = ROOT / "docs" / "errors.md"
    headings = {m[1]: n for _, n, m in search(r"^## (E\d{3})\b", [page])}
    codes = error_codes()
    for code in sorted(codes.keys() - headings.keys()):
        yield *codes[code], f"{code} has no heading in docs/errors.md"
    for code in sorted(headings.keys() - codes.keys()):
        yield name(page), headings[code], f"nothing throws {code}"


def entries_of_errors() -> dict[str, tuple[int, str]]:
    """Each code of docs/errors.md with the line of its heading and the text of its entry."""
    entries: dict[str, tuple[int, str]] = {}
    code = ""
    for number, line in enumerate(lines(ROOT / "docs" / "errors.md"), 1):
        if heading := re.match(r"## (E\d{3}|BUG)\b", line):
            code = heading[1]
            entries[code] = (number, "")
        elif code:
            entries[code] = (entries[code][0], entries[code][1] + line + "\n")
    return entries


def entries_say_cause_and_way_out() -> Iterator[Finding]:
    parts = {"**": "what it means, in bold", "What to do:": "a way out", "Example": "an example"}
    for code, (number, text) in entries_of_errors().items():
        for part, what in parts.items():
            if part not in text and not (code == "BUG" and part == "Example"):
                yield "docs/errors.md", number, f"the entry of {code} lacks {what}"


def codes_are_tested() -> Iterator[Finding]:
    """A test expects the code: as a text of its own, or as the start of a message. Comments and
    texts that only speak of a code do not count."""
    comment = r"^(?!\s*(?://|#)(?! [A-Z0-9-]+: ))"
    expected = rf"{comment}.*?(?:[\"'](E\d{{3}})[\"':]|JXP-(E\d{{3}})|// CHECK: (E\d{{3}}))"
    tested: set[str] = set()
    for _, _, match in search(expected, below("tests/")):
        tested |= set(re.findall(r"E\d{3}", match.string))
    for code, place in sorted(error_codes().items()):
        if code not in tested:
            yield *place, f"no test expects {code}"


# --- supply


def locks_are_up_to_date() -> Iterator[Finding]:
    """Every pinned package stands in the lock of its file in the same version, with hashes."""
    for path in below("requirements/", suffixes={".txt"}):
        if path.parent.name == "lock":
            continue
        locks = ["newest.txt", "oldest.txt"] if path.name == "common.txt" else [path.name]
        for number, line in enumerate(lines(path), 1):
            pin = re.match(r"([\w.-]+)==([^\s;]+)", line)
            for lock in locks if pin else ():
                if not is_locked(lock, pin[1], pin[2]):
                    yield name(path), number, f"lock/{lock} lacks {pin[0]}: make lock"


def is_locked(lock: str, package: str, version: str) -> bool:
    path = ROOT / "requirements" / "lock" / lock
    if not path.exists():
        return False
    wanted = f"{re.sub(r'[-_.]+', '-', package).lower()}=={version}"
    starts = [line for line in lines(path) if line and line[0] not in " #"]
    return any(
        re.sub(r"[-_]+", "-", line.split("==")[0]).lower()
        + "=="
        + re.split(r"[\s;]", line.split("==")[1])[0]
        == wanted
        for line in starts
    ) and all(line.endswith("\\") for line in starts)


def installs_have_hashes() -> Iterator[Finding]:
    """Whatever pip or npm fetches is what a lock says. A wheel of our own has no hash, and asks for
    nothing."""
    pip = r"""-m pip install|bin/pip install|["']pip["'], ["']install["']|\$\(PIP_INSTALL\)"""
    places = below("Makefile", "tools/", ".ci/", "bench/")
    for path, number, match in search(rf"{pip}|npm[\"', ]+install", places):
        if match.string.startswith("PIP_INSTALL :=") or path == Path(__file__):
            continue
        whole = command_at(path, number)
        is_ours = "--no-deps build/wheel/jaxport-" in whole
        is_lock = "--package-lock-only" in whole
        if "--require-hashes" not in whole and not is_ours and not is_lock:
            yield name(path), number, f"{match[0]} without hashes"


def command_at(path: Path, number: int) -> str:
    """A line with those that belong to its command: continued in a shell, near it in Python."""
    text = lines(path)
    if path.suffix == ".py":
        return "\n".join(text[number - 1 : number + 3])
    end = number
    while text[end - 1].endswith("\\") and end < len(text):
        end += 1
    return "\n".join(text[number - 1 : end])


# --- structure


def layers() -> dict[str, set[str]]:
    """For each folder of src/ the folders it may see, from the USES of CMakeLists.txt."""
    direct: dict[str, set[str]] = {}
    cmake = re.sub(r"#.*", "", (ROOT / "CMakeLists.txt").read_text())
    for match in re.finditer(r"^\s*jaxport_library\((\w+)\s([^)]*)\)", cmake, re.M):
        uses = re.search(r"\bUSES\s+([a-z_\s]+)", match[2])
        direct[match[1]] = set(uses[1].split()) if uses else set()
    seen: dict[str, set[str]] = {}

    def reach(folder: str) -> set[str]:
        if folder not in seen:
            seen[folder] = {folder}
            for other in direct.get(folder, set()):
                seen[folder] |= reach(other)
        return seen[folder]

    return {folder: reach(folder) for folder in direct}


def includes_follow_layers() -> Iterator[Finding]:
    allowed = layers()
    sources = below("src/", suffixes={".cpp", ".h", ".inc"})
    for path, number, match in search(r'^#include "(\w+)/', sources):
        folder = path.relative_to(ROOT / "src").parts[0]
        if folder in allowed and match[1] in allowed and match[1] not in allowed[folder]:
            yield (name(path), number, f"src/{folder} does not name {match[1]} in its USES")


def only_tools_print() -> Iterator[Finding]:
    core = [p for p in below("src/", "include/") if not name(p).startswith("src/tool/")]
    for path, number, _ in search(r"#include <iostream>|std::(cout|cerr)|\bprintf\(", core):
        yield name(path), number, "only src/tool/ prints"


def only_wire_knows_protobuf() -> Iterator[Finding]:
    outside = [p for p in below("src/", "include/") if not name(p).startswith("src/wire/")]
    for path, number, _ in search(r"#include <protozero", outside):
        yield name(path), number, "only src/wire/ includes protozero"


def declaration(variable: str, before: tuple[str, ...]) -> str:
    """The nearest line above that declares the variable, or an empty one."""
    declares = re.compile(rf"[\w>][&*]?\s+[&*]?{variable}\s*[=;({{,)]")
    return next((line for line in reversed(before) if declares.search(line)), "")


def no_loop_over_unordered() -> Iterator[Finding]:
    """Hash order must not reach the output; a loop that cannot says "any order" in a comment."""
    sources = below("src/", suffixes={".cpp"})
    for path, number, match in search(r"\bfor \(.* : (\w+)\)", sources):
        header = path.with_suffix(".h")
        members = lines(header) if header in files() else ()
        declared = declaration(match[1], members + lines(path)[: number - 1])
        excused = any("any order" in line for line in lines(path)[number - 2 : number])
        if "unordered_" in declared and not excused:
            yield name(path), number, f"loops over unordered '{match[1]}' without 'any order'"


def no_loop_over_part_of_temporary() -> Iterator[Finding]:
    """Before C++23, the object that `*call()` is a part of ends before the loop begins."""
    for path, number, _ in search(
        r"\bfor \([^;]* : \*[\w:.]+\(", below("src/", suffixes={".cpp", ".h"})
    ):
        yield name(path), number, "loops over a part of a temporary object: name the object"


def rules_are_documented() -> Iterator[Finding]:
    page = ROOT / "docs" / "raising.md"
    if not page.exists():
        return
    text = page.read_text(encoding="utf-8")
    for path in below("tests/golden/raise/rules/", suffixes={".jir"}):
        if f"`{path.stem}`" not in text:
            yield name(path), 0, f"rule {path.stem} is not in docs/raising.md"


def passes_have_text_tests() -> Iterator[Finding]:
    """A row of the pipeline is {"name", function}; its test is a file of that name."""
    tests = {path.stem for path in below("tests/golden/pass/", suffixes={".onnxtxt"})}
    for path, number, match in search(r'^    \{"(\w+)", \1\}', below("src/pass/")):
        if match[1] not in tests:
            yield name(path), number, f"tests/golden/pass has no {match[1]}.onnxtxt"


def types_have_one_definition() -> Iterator[Finding]:
    """Two types of one name in one namespace, in headers that no file includes both of, share the
    functions of templates: the linker keeps one of them."""
    known: dict[tuple[str, str], str] = {}
    pattern = r"^(?:struct|class|enum class) (\w+)(?: final)?(?: : [^;{]*)? \{"
    for path, number, match in search(pattern, below("src/", suffixes={".h"})):
        key = (name(path).split("/")[1], match[1])
        if key in known:
            yield name(path), number, f"{match[1]} is defined in {known[key]}, too"
        known[key] = name(path)


# --- text


def files_are_short() -> Iterator[Finding]:
    for path in below(*FOLDERS, suffixes=SOURCE):
        if len(lines(path)) > MAX_LINES:
            yield (name(path), 0, f"{len(lines(path))} lines; more than {MAX_LINES} hold two ideas")


def files_name_their_licence() -> Iterator[Finding]:
    for path in below(*FOLDERS, suffixes=SOURCE - {".cmake", ".pyi"}):
        head = lines(path)[:2]
        if head and not any("SPDX-License-Identifier: Apache-2.0" in line for line in head):
            yield name(path), 1, "the SPDX line is missing"


def no_machine_paths() -> Iterator[Finding]:
    for path, number, match in search(r"(?<![\w.])/(?:[w]ork|[r]oot|[h]ome|[t]mp)/", list(files())):
        yield name(path), number, f"path of one machine: {match[0]}"


def open_work_names_an_issue() -> Iterator[Finding]:
    marks = "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X"))
    sources = below(*FOLDERS, suffixes=SOURCE)
    for path, number, match in search(rf"\b({marks})\b(?!\(#\d+\))", sources):
        yield name(path), number, f"{match[1]} without an issue: {match[1]}(#123)"


RULES = (
    codes_are_documented,
    entries_say_cause_and_way_out,
    codes_are_tested,
    locks_are_up_to_date,
    installs_have_hashes,
    includes_follow_layers,
    only_tools_print,
    only_wire_knows_protobuf,
    no_loop_over_unordered,
    no_loop_over_part_of_temporary,
    rules_are_documented,
    passes_have_text_tests,
    types_have_one_definition,
    files_are_short,
    files_name_their_licence,
    no_machine_paths,
    open_work_names_an_issue,
)


def main() -> int:
    findings = [finding for rule in RULES for finding in rule()]
    for path, number, message in findings:
        print(f"{path}:{number}: {message}" if number else f"{path}: {message}")
    print(f"{len(RULES)} rules, {len(files())} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

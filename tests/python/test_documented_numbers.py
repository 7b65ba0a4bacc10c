# SPDX-License-Identifier: Apache-2.0
"""README and the pages that people read first quote the generated pages: the numbers are theirs.

The numbers before a link to a generated page, back to the link before it, must stand on that page;
"5,482 of 5,483" as a pair.
"""

from __future__ import annotations

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = ["coverage", "drop-in", "ecosystem", "raising", "runtimes", "transforms"]
QUOTING = [ROOT / "README.md", DOCS / "what-works.md", DOCS / "index.md"]
LINK = re.compile(r"\[[^]]*\]\((?:docs/)?([\w/-]+)\.md[^)]*\)")
PAIR = re.compile(r"\b(\d+) of (?:the )?(\d+)\b")
NUMBER = re.compile(r"(?<![\w.])\d+\.\d+|(?<![\w.])\d{3,}(?![\w.]*\w)")


def plain(text):
    """Without the commas in numbers."""
    return re.sub(r"(?<=\d),(?=\d{3})", "", text)


def quotes():
    """(page that quotes, generated page, the text that leads to its link)"""
    for page in QUOTING:
        for part in re.split(r"\n\s*\n|\n(?=[|*])", plain(page.read_text(encoding="utf-8"))):
            cells = part.split("|") if part.startswith("|") else [part]
            for cell in cells:
                begin = 0
                for link in LINK.finditer(cell):
                    if link[1] in GENERATED:
                        yield page.name, link[1], cell[begin : link.start()]
                    begin = link.end()


@pytest.mark.parametrize("source", GENERATED)
def test_the_numbers_of_a_generated_page_are_quoted_as_they_are(source):
    text = plain((DOCS / f"{source}.md").read_text(encoding="utf-8"))
    pairs = set(PAIR.findall(text)) | {
        (all_, all_)
        for all_, same in re.findall(r"\| (\d+) \| (\d+) \(100\.0 %\)", text)
        if all_ == same
    }
    numbers = set(NUMBER.findall(text))
    quoted = 0
    for page, of, words in quotes():
        if of != source:
            continue
        for pair in PAIR.findall(words):
            assert pair in pairs, f"{page}: {' of '.join(pair)} is not in {source}.md"
            quoted += 1
        for number in NUMBER.findall(PAIR.sub("", words)):
            assert number in numbers, f"{page}: {number} is not in {source}.md"
            quoted += 1
    assert quoted or source == "runtimes", f"nobody quotes {source}.md"


def test_the_versions_of_onnx_runtime_are_those_that_were_run():
    """And the sentence that says which of them differ is true."""
    text = (DOCS / "runtimes.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| ONNX Runtime 1\.(\d+)\.\d+ \|.*?\| (\d+) \| (\d+) .*?\| (\d+) ", text, re.M
    )
    counts = [tuple(map(int, row)) for row in rows]
    versions = {version for version, *_ in counts}
    for page in QUOTING[:2]:
        said = page.read_text(encoding="utf-8")
        assert f"ONNX Runtime 1.{min(versions)} to 1.{max(versions)}" in said, page.name
    works = (DOCS / "what-works.md").read_text(encoding="utf-8")
    words = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    assert all(models == loaded for _, models, loaded, _ in counts), "say so in what-works.md"
    assert f"all {counts[0][1]} models load on {words[len(versions)]} of these versions" in works
    off = [(models - agree, version) for version, models, _, agree in counts if agree < models]
    listed = " and ".join(f"{count} on 1.{version}" for count, version in off)
    assert f"all agree with JAX{f' but {listed}' if off else ''} ([runtimes]" in works

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
    """And the sentence that all models agree on all of them is true."""
    text = (DOCS / "runtimes.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| ONNX Runtime 1\.(\d+)\.\d+ \|.*?\| (\d+) \| (\d+) .*?\| (\d+) ", text, re.M
    )
    versions = [int(version) for version, *_ in rows]
    for page in QUOTING[:2]:
        said = page.read_text(encoding="utf-8")
        assert f"ONNX Runtime 1.{min(versions)} to 1.{max(versions)}" in said, page.name
    works = (DOCS / "what-works.md").read_text(encoding="utf-8")
    models = {number for _, *numbers in rows for number in numbers}
    words = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    assert len(models) == 1, "a version differs: say so in what-works.md and here"
    assert (
        f"all {models.pop()} models load and agree with JAX on {words[len(rows)]} of these" in works
    )

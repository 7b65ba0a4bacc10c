# SPDX-License-Identifier: Apache-2.0
"""The page as a file: the template that web/ builds, with the data of a model in it."""

from __future__ import annotations

import importlib.resources
import json
import linecache
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..errors import ConversionError

_PLACE = '"jaxport-data"'  # in the template, where the data goes
_MOST_LINES = 1500  # of a source file that is shown whole
_AROUND = 40  # lines of a longer one, before the first and behind the last that is named


def html(data: dict[str, Any]) -> str:
    """The page with this data. Raises ConversionError E113 when it was not built."""
    template = _template()
    if not template.is_file():
        raise ConversionError(
            "E113",
            "this installation of jaxport has no report page",
            help="it is built with Node.js and npm: install them and jaxport again, or write the "
            "data alone, to a name that ends in .json",
        )
    page: str = template.read_text(encoding="utf-8")
    before, _, after = page.partition(_PLACE)
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Nothing in a script of HTML may look like a tag.
    return before + text.replace("<", "\\u003c") + after


def _template() -> Any:
    return importlib.resources.files(__package__).joinpath("page.html")


def write_page(data: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Writes the page. Raises ConversionError E051 when it cannot."""
    text = html(data)
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ConversionError(
            "E051",
            f"cannot write '{os.fspath(path)}': {error.strerror}",
            help="choose a folder that exists and may be written to",
        ) from error


def source_files(
    sources: Iterable[str], lines_of: Callable[[str], Sequence[str]]
) -> list[dict[str, Any]]:
    """The files that "model.py:42 in f" names, as far as they are found, in order."""
    named: dict[str, list[int]] = {}
    for source in sources:
        file, _, rest = source.partition(":")
        line = rest.split(" ", 1)[0]
        if line.isdigit():
            named.setdefault(file, []).append(int(line))
    found = []
    for file, numbers in named.items():
        lines = [line.rstrip("\n") for line in lines_of(file)]
        first, end = 1, len(lines)
        if end > _MOST_LINES:
            first, end = max(1, min(numbers) - _AROUND), min(end, max(numbers) + _AROUND)
        if max(numbers) <= len(lines):
            found.append({"name": file, "first": first, "lines": lines[first - 1 : end]})
    return found


def lines_from_here(file: str) -> list[str]:
    """The lines of a Python file below the current folder, which a model names; else none.

    A model may name any file of this machine, and a page is there to be sent.
    """
    here, path = os.path.realpath(os.curdir), os.path.realpath(file)
    is_inside = path.startswith(os.path.join(here, "")) and path.endswith(".py")
    return linecache.getlines(path) if is_inside and os.path.isfile(path) else []

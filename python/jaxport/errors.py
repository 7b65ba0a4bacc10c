# SPDX-License-Identifier: Apache-2.0
"""The one exception of jaxport."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .verification.results import Verification


OTHER_PLACE = "also at "  # starts a note that ends with a place: compile/unsupported.cpp


class ConversionError(Exception):
    """A function that cannot be converted, or an argument that cannot be used.

    Attributes:
        code: "E012"; docs/errors.md has a heading for each. "BUG" is a fault of jaxport.
        message: the first line, without the code.
        source: the user's line, "model.py:42 in Net.__call__", or "".
        source_line: the text of that line, or "".
        equation: the equation with types, or "".
        notes: further lines.
        help: what to do next, or "".
        verification: what to_onnx(verify=True) found, when that is the error.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        source: str = "",
        source_line: str = "",
        equation: str = "",
        notes: Sequence[str] = (),
        help: str = "",
    ) -> None:
        from . import _core

        place = f"{source}:  {source_line}" if source and source_line else source
        super().__init__(_core.render_error(code, message, place, equation, list(notes), help))
        self.code = code
        self.message = message
        self.source = source
        self.source_line = source_line
        self.equation = equation
        self.notes = tuple(notes)
        self.help = help
        self.verification: Verification | None = None

    def with_note(self, note: str) -> ConversionError:
        """The same error with a further line before the help."""
        return self._with(notes=(*self.notes, note))

    def with_source_line(self, line: str) -> ConversionError:
        """The same error, its location followed by the text of that line."""
        return self._with(source_line=line)

    def with_source_lines(self, line_of: Callable[[str], str]) -> ConversionError:
        """The same error with the text of all lines of the user that it names."""
        notes = []
        for note in self.notes:
            line = line_of(note.removeprefix(OTHER_PLACE)) if note.startswith(OTHER_PLACE) else ""
            notes.append(f"{note}:  {line}" if line else note)
        return self._with(source_line=line_of(self.source), notes=notes)

    def _with(self, **parts: Any) -> ConversionError:
        names = ("source", "source_line", "equation", "notes", "help")
        given = {name: getattr(self, name) for name in names}
        return ConversionError(self.code, self.message, **{**given, **parts})


def first_line(error: Exception) -> str:
    """What another library says, as a part of a line of ours."""
    return str(error).strip().split("\n", 1)[0].rstrip(".")

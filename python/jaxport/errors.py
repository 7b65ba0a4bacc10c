# SPDX-License-Identifier: Apache-2.0
"""The one exception of jaxport."""

from __future__ import annotations

from collections.abc import Sequence


class ConversionError(Exception):
    """A function that cannot be converted, or an argument that cannot be used.

    Attributes:
        code: "E012"; docs/errors.md has a heading for each. "BUG" is a fault of jaxport.
        message: the first line, without the code.
        source: the user's line, "model.py:42 in Net.__call__", or "".
        equation: the equation with types, or "".
        help: what to do next, or "".
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        source: str = "",
        equation: str = "",
        notes: Sequence[str] = (),
        help: str = "",
        text: str | None = None,
    ) -> None:
        if text is None:
            from . import _core

            text = _core.render_error(code, message, source, equation, list(notes), help)
        super().__init__(text)
        self.code = code
        self.message = message
        self.source = source
        self.equation = equation
        self.help = help

    def with_note(self, note: str) -> ConversionError:
        """The same error with a further line before the help."""
        return self._with_text(str(self).replace("\n  help:", f"\n  {note}\n  help:", 1))

    def with_source_line(self, line: str) -> ConversionError:
        """The same error, its location followed by the text of that line."""
        if not line or not self.source:
            return self
        return self._with_text(
            str(self).replace(f"\n  at {self.source}", f"\n  at {self.source}:  {line}", 1)
        )

    def _with_text(self, text: str) -> ConversionError:
        return ConversionError(
            self.code,
            self.message,
            source=self.source,
            equation=self.equation,
            help=self.help,
            text=text,
        )


def first_line(error: Exception) -> str:
    """What another library says, as a part of a line of ours."""
    return str(error).strip().split("\n", 1)[0].rstrip(".")

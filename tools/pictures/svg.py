# SPDX-License-Identifier: Apache-2.0
"""Drawings as SVG text. Nothing in them is loaded: fonts are those of the reader."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

INK, QUIET, PAPER, EDGE = "#1c1c28", "#5a5a6e", "#ffffff", "#9a9aac"
# Fills that dark text can be read on, each with its border.
COLOURS = {
    "blue": ("#dbe7ff", "#3c6cc8"),
    "red": ("#ffe0dc", "#c8513c"),
    "green": ("#d9f2df", "#3a8a52"),
    "yellow": ("#fff2c9", "#a8861c"),
    "violet": ("#eadffb", "#7a4fc0"),
    "grey": ("#efeff4", "#8a8a9c"),
}
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
SANS = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
LETTER = 0.61  # width of a letter of MONO in parts of its size


class Drawing:
    def __init__(self, title: str) -> None:
        self.title = title
        self.parts: list[str] = []
        self.width = self.height = 0.0

    def _reach(self, x: float, y: float) -> None:
        self.width, self.height = max(self.width, x), max(self.height, y)

    def box(
        self, x: float, y: float, width: float, height: float, colour: str = "grey", round_: int = 5
    ) -> None:
        fill, stroke = COLOURS[colour]
        self._reach(x + width, y + height)
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'rx="{round_}" fill="{fill}" stroke="{stroke}"/>'
        )

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float = 13,
        *,
        anchor: str = "start",
        colour: str = INK,
        mono: bool = False,
        bold: bool = False,
    ) -> None:
        """The baseline is at y."""
        if anchor == "start":
            self._reach(x + len(text) * size * (LETTER if mono else 0.55), y)
        style = f'font-family="{MONO if mono else SANS}" font-size="{size:g}" fill="{colour}"'
        weight = ' font-weight="600"' if bold else ""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {style}{weight} '
            f'xml:space="preserve">{escape(text)}</text>'
        )

    def labelled(
        self, x: float, y: float, width: float, height: float, label: str, colour: str = "grey"
    ) -> None:
        """A box around its centre with a label of monospaced letters that fits in."""
        self.box(x - width / 2, y - height / 2, width, height, colour)
        size = min(12.0, 0.62 * height, (width - 6) / (LETTER * max(len(label), 1)))
        self.text(x, y + 0.35 * size, label, size, anchor="middle", mono=True)

    def curve(self, points: Sequence[tuple[float, float]], colour: str = EDGE) -> None:
        """Downwards through all points, with an arrow at the end."""
        x, y = points[0]
        path = f"M{x:.1f},{y:.1f}"
        for next_x, next_y in points[1:]:
            middle = (y + next_y) / 2
            path += f"C{x:.1f},{middle:.1f} {next_x:.1f},{middle:.1f} {next_x:.1f},{next_y:.1f}"
            x, y = next_x, next_y
        self.parts.append(f'<path d="{path}" fill="none" stroke="{colour}"/>')
        self.parts.append(
            f'<path d="M{x - 3:.1f},{y - 5:.1f}L{x:.1f},{y:.1f}L{x + 3:.1f},{y - 5:.1f}" '
            f'fill="none" stroke="{colour}"/>'
        )

    def arrow(self, x: float, y: float, to: float, colour: str = QUIET) -> None:
        """From (x, y) to the right."""
        self.parts.append(
            f'<path d="M{x:.1f},{y:.1f}H{to:.1f}m-6,-5l6,5l-6,5" fill="none" '
            f'stroke="{colour}" stroke-width="2"/>'
        )

    def place(self, other: Drawing, x: float, y: float) -> None:
        self._reach(x + other.width, y + other.height)
        self.parts.append(f'<g transform="translate({x:.1f},{y:.1f})">')
        self.parts += other.parts
        self.parts.append("</g>")

    def render(self, margin: float = 16) -> str:
        """On white paper, so that it can be read on pages of any colour."""
        width, height = self.width + 2 * margin, self.height + 2 * margin
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}" role="img" '
            f"aria-label={quoteattr(self.title)}>"
        )
        paper = f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>'
        body = f'<g transform="translate({margin:g},{margin:g})">'
        title = f"<title>{escape(self.title)}</title>"
        return "\n".join([head, title, paper, body, *self.parts, "</g>", "</svg>"]) + "\n"

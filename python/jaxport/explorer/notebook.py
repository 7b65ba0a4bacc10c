# SPDX-License-Identifier: Apache-2.0
"""Models in notebooks: a summary, and the page inline."""

from __future__ import annotations

import dataclasses
import html
import os
import sys
import tempfile
import webbrowser
from typing import TYPE_CHECKING, Any

from . import page
from .data import of_model

if TYPE_CHECKING:
    from ..model import Model

_BARS = 8  # ops that the picture shows
_VALUES = 4  # inputs and outputs that one line shows
_ROW, _NAME, _WIDTH = 18, 150, 420  # pixels of a bar, of the names, of the picture


def show(model: Model, height: int) -> Any:
    """The page in a frame where a notebook runs, else in the browser."""
    text = page.html(of_model(model))
    if _is_notebook():
        return Frame(text, height)
    folder = tempfile.mkdtemp(prefix="jaxport-")
    path = os.path.join(folder, "report.html")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    webbrowser.open(f"file://{path}")
    return path


@dataclasses.dataclass(frozen=True, repr=False)
class Frame:
    """A page as the result of a cell: every notebook asks for _repr_html_."""

    page: str
    height: int

    def _repr_html_(self) -> str:
        """A frame of its own: nothing of the page reaches the notebook."""
        return (
            f'<iframe srcdoc="{html.escape(self.page)}" sandbox="allow-scripts" '
            f'style="width:100%;height:{self.height}px;border:1px solid #8884;border-radius:8px">'
            "</iframe>"
        )


def line(model: Model) -> str:
    """What a terminal shows of a model."""
    stats = model.stats()
    sides = []
    for values in map(model.interface().__getitem__, ("inputs", "outputs")):
        shown = [f"{name}: {type_}" for name, type_ in values[:_VALUES]]
        others = len(values) - len(shown)
        sides.append(", ".join(shown + ([f"{others} more"] if others else [])))
    count, weights = stats["nodes"], _bytes(stats["initializer_bytes"])
    size = f"{count:,} node{'' if count == 1 else 's'}, {weights} of weights"
    return f"<jaxport.Model {model.title}({sides[0]}) -> ({sides[1]}), {size}>"


def summary(model: Model) -> str:
    """What a notebook shows of a model: sizes, inputs and outputs, and its ops as bars."""
    stats = model.stats()
    interface = model.interface()
    rows = [
        ("model", model.title),
        *((name, ", ".join(f"{n}: {t}" for n, t in interface[name])) for name in interface),
        ("nodes", f"{stats['nodes']:,}"),
        ("parameters", f"{stats['parameters']:,} ({_bytes(stats['initializer_bytes'])})"),
        ("needs", model.requires),
    ]
    cells = "".join(
        f"<tr><th style='text-align:left'>{html.escape(what)}</th>"
        f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
        for what, text in rows
    )
    return f"<div><table>{cells}</table>{_picture(stats['ops'])}</div>"


def _picture(ops: dict[str, int]) -> str:
    """The most frequent ops as bars."""
    shown = list(ops.items())[:_BARS]
    rest = sum(list(ops.values())[_BARS:])
    shown += [("others", rest)] if rest else []
    largest = max((count for _, count in shown), default=1)
    bars = []
    for i, (op, count) in enumerate(shown):
        y, length = i * _ROW, (_WIDTH - _NAME - 40) * count / largest
        bars.append(
            f'<text x="{_NAME - 8}" y="{y + 13}" text-anchor="end">{html.escape(op)}</text>'
            f'<rect x="{_NAME}" y="{y + 3}" width="{length:.1f}" height="{_ROW - 6}" rx="3" '
            f'fill="#6b8ce6"/><text x="{_NAME + length + 6:.1f}" y="{y + 13}">{count}</text>'
        )
    style = 'font-family="sans-serif" font-size="12" fill="currentColor"'
    return (
        f'<svg width="{_WIDTH}" height="{len(shown) * _ROW}" role="img" '
        f'aria-label="ops of the model" {style}>{"".join(bars)}</svg>'
    )


def _bytes(number: float) -> str:
    for unit in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} GB"


def _is_notebook() -> bool:
    """A package that is not imported runs no notebook."""
    marimo = sys.modules.get("marimo")
    if marimo is not None and marimo.running_in_notebook():
        return True
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    # Colab's shell is a subclass of Jupyter's.
    return any(base.__name__ == "ZMQInteractiveShell" for base in type(shell).__mro__)

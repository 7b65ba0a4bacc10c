# SPDX-License-Identifier: Apache-2.0
"""From a function to a file: the stages, the forms between them, and who does the work."""

from __future__ import annotations

from .svg import QUIET, Drawing

# Forms are boxes; the stage that leads to the next form stands on the arrow.
FORMS = (
    ("JAX function", "a module, a plain function", "grey", ("traced by JAX", "python/jaxport")),
    ("front IR", "the jaxpr as typed data", "blue", ("read, verified", "src/bind, src/front")),
    (
        "axis graph",
        "mathematics without layout",
        "violet",
        ("raised by rules", "src/axis, src/raise"),
    ),
    ("raised graph", "attention, norms, activations", "red", ("layouts, nodes", "src/lower")),
    (
        "ONNX IR",
        "nodes checked as they are built",
        "green",
        ("kernels, passes", "src/target, src/pass"),
    ),
    ("model.onnx", "weights written, not copied", "grey", ("", "")),
)
WIDTH, HEIGHT, GAP, COLUMNS = 216, 62, 132, 3


def picture() -> Drawing:
    whole = Drawing("The stages of jaxport, from a JAX function to an ONNX file")
    for number, (name, note, colour, (stage, folder)) in enumerate(FORMS):
        row, column = divmod(number, COLUMNS)
        x, y = column * (WIDTH + GAP), row * 120.0
        whole.box(x, y, WIDTH, HEIGHT, colour, 8)
        whole.text(x + WIDTH / 2, y + 27, name, 16, anchor="middle", bold=True)
        whole.text(x + WIDTH / 2, y + 47, note, 12, anchor="middle", colour=QUIET)
        if not stage:
            continue
        right, middle = x + WIDTH, y + HEIGHT / 2
        if column + 1 < COLUMNS:
            whole.arrow(right + 4, middle, right + GAP - 6)
            whole.text(right + GAP / 2, middle - 9, stage, 12, anchor="middle")
            whole.text(right + GAP / 2, middle + 20, folder, 10.5, anchor="middle", colour=QUIET)
        else:
            whole.curve([(x + WIDTH / 2, y + HEIGHT), (WIDTH / 2, y + 120)])
            whole.text(1.5 * WIDTH + GAP, y + 84, stage, 12, anchor="middle")
            whole.text(1.5 * WIDTH + GAP, y + 109, folder, 10.5, anchor="middle", colour=QUIET)
    return whole

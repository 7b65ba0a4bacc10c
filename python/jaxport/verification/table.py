# SPDX-License-Identifier: Apache-2.0
"""A Verification as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from .results import Check, Output, Place, Verification

_VERDICTS = {
    "different": "THE MODEL DIFFERS FROM JAX",
    "same": "the model gives JAX's numbers",
    "unstable": "the model differs from JAX by no more than rounding does in JAX itself",
}
_HEADINGS = ("sizes", "output", "dtype", "error", "ulps", "of allowed", "")


def text_of(found: Verification) -> str:
    """The verdict, the outputs, and where the first difference is."""
    rows = [_HEADINGS, *(row for check in found.checks for row in _rows(check))]
    lines = [_VERDICTS[found.verdict], *_aligned(rows)]
    for output in (o for check in found.checks for o in check.outputs):
        if output.verdict != "same":
            lines += _worst(output)
    if found.at_fault == "runtime":
        lines.append("without ONNX Runtime's optimisations of the graph the model is right")
    if found.place:
        lines += _place(found.place)
    if found.replay:
        again = "" if found.replay.reproduces else "not "
        count = found.replay.equations
        lines.append(
            f"replay: {found.replay.folder} ({count} equation{'' if count == 1 else 's'}; "
            f"converted anew, it does {again}differ)"
        )
    lines += found.notes
    return "\n".join(line.rstrip() for line in lines)


def _rows(check: Check) -> list[tuple[str, ...]]:
    sizes = ", ".join(f"{name}={size}" for name, size in check.sizes.items()) or check.inputs
    if check.skipped:
        return [(sizes, f"skipped: {check.skipped}", "", "", "", "", "")]
    return [(sizes, *_cells(output)) for output in check.outputs]


def _cells(output: Output) -> tuple[str, ...]:
    kind = f"{output.dtype}[{','.join(map(str, output.shape))}]"
    if output.problem:
        return output.name, kind, "", "", "", output.problem
    errors = (f"{output.largest_difference:.2g}", f"{output.ulps:.2g}", f"{output.share:.2g}")
    return output.name, kind, *errors, output.verdict


def _worst(output: Output) -> list[str]:
    if output.problem:
        return []
    place = ", ".join(map(str, output.index))
    return [
        f"{output.name}[{place}]: {output.jax} in JAX, {output.model} in the model",
        f"  elements by ulps: {_bars(output.histogram)}",
    ]


def _bars(histogram: dict[str, int]) -> str:
    return "  ".join(
        f"<={upto}: {n}" if upto != "0" else f"0: {n}" for upto, n in histogram.items()
    )


def _place(place: Place) -> list[str]:
    line = f":  {place.source_line}" if place.source_line else ""
    lines = ["first difference:", f"  at {place.source or 'an unknown line'}{line}"]
    if place.loop:
        lines.append(f"  in {'; '.join(place.loop)}")
    lines.append(f"  equation: {place.equation}")
    if place.swallowed:
        lines.append(
            f"  or one of the {len(place.swallowed)} equations behind it that became nodes with it"
        )
    if place.op:
        source = f"  at {place.node_source}" if place.node_source else ""
        lines.append(f"  node: {place.node or '(no name)'} ({place.op}){source}")
    if place.ulps is not None:
        lines.append(
            f"  its error: {place.ulps:.2g} ulps; elements by ulps: {_bars(place.histogram)}"
        )
    return lines


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  " + "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]

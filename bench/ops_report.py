# SPDX-License-Identifier: Apache-2.0
"""Writes the table of bench/results/operations.json into docs/benchmarks.md."""

from typing import Any

from fleet_facts import WRONG, geometric_mean
from fleet_report import shown, table
from measure import load_result
from page import write_part

LIMIT = 1.5  # of jax.jit
MISSING = "-"

HEAD = ("operation", "µs", "of jit", "of jax2onnx", "nodes", "jax2onnx's", "error")


def jax2onnx_cells(result: dict[str, Any]) -> tuple[str, str]:
    """The ratio to its time, and its nodes."""
    if "jax2onnx" in result["failed"]:
        return MISSING, MISSING
    nodes = str(result["nodes"]["jax2onnx"])
    if not result["largest_error"]["jax2onnx"] < WRONG:
        return "wrong", nodes
    return f"{result['ratios']['jax2onnx']:.2f}", nodes


def row(name: str, result: dict[str, Any]) -> tuple[str, ...]:
    if "jaxport" in result["failed"]:
        return name, MISSING, MISSING, MISSING, MISSING, jax2onnx_cells(result)[1], MISSING
    ratio, theirs = jax2onnx_cells(result)
    to_jit = result["ratios"]["jit"]
    return (
        name,
        f"{result['seconds']['jaxport']['best'] * 1e6:.0f}",
        f"**{to_jit:.2f}**" if to_jit > LIMIT else f"{to_jit:.2f}",
        ratio,
        str(result["nodes"]["jaxport"]),
        theirs,
        f"{result['largest_error']['jaxport']:.0e}",
    )


def summary(operations: dict[str, Any]) -> str:
    ran = [result for result in operations.values() if "ratios" in result]
    to_jit = [result["ratios"]["jit"] for result in ran]
    theirs = [
        result["ratios"]["jax2onnx"]
        for result in ran
        if jax2onnx_cells(result)[0] not in (MISSING, "wrong")
    ]
    above = sum(ratio > LIMIT for ratio in to_jit)
    of_jit, of_theirs = (shown(geometric_mean(ratios), ".2f") for ratios in (to_jit, theirs))
    return (
        f"{len(operations)} operations; geometric mean {of_jit} of jit, and {of_theirs} of "
        f"jax2onnx over the {len(theirs)} that it converts with JAX's numbers. {above} take more "
        f"than {LIMIT:g} of jit:"
    )


def above_limit(operations: dict[str, Any]) -> str:
    ratios = {name: r["ratios"]["jit"] for name, r in operations.items() if "ratios" in r}
    worst = sorted((ratio, name) for name, ratio in ratios.items() if ratio > LIMIT)
    return "; ".join(f"{name} **{ratio:.1f}**" for ratio, name in reversed(worst)) + "."


def text(operations: dict[str, Any]) -> str:
    families = dict.fromkeys(result["family"] for result in operations.values())
    rows: list[tuple[str, ...]] = []
    for family in families:
        rows.append((f"**{family}**", *[""] * (len(HEAD) - 1)))
        rows += [row(name, r) for name, r in operations.items() if r["family"] == family]
    return "\n\n".join(
        [f"{summary(operations)} {above_limit(operations)}", table(HEAD, rows)],
    )


def main() -> None:
    write_part("operations", text(load_result("operations")["operations"]))


if __name__ == "__main__":
    main()

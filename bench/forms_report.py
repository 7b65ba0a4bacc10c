# SPDX-License-Identifier: Apache-2.0
"""Tables of the forms that were chosen by measurement, for docs/benchmarks.md.

Each script that measures one prints the rows as it goes.
"""

from collections.abc import Callable
from typing import Any

from fleet_report import table
from measure import RESULTS, load_result
from page import write_part

Row = tuple[str, ...]
Result = dict[str, Any]

TRANSPOSED = ("channels", "pixels", "kernel, stride", "ms", "of zeros", "of jit", "nodes")
LAYERS = ("width, tokens", "unrolled, ms", "of scan", "of functions", "of jit", "nodes", "MB")
DECODE = ("cache", "length", "tokens", "ms", "of jit", "nodes", "error")


def milliseconds(result: Result, name: str) -> str:
    return f"{1e3 * result['seconds'][name]['best']:.2f}"


def ratios(result: Result, *others: str) -> Row:
    return tuple(f"{result['ratios'][f'to_{other}']:.2f}" for other in others)


def transposed_row(result: Result) -> Row:
    return (
        str(result["channels"]),
        str(result["pixels"]),
        f"{result['kernel']}, {result['stride']}",
        milliseconds(result, "jaxport"),
        *ratios(result, "zeros", "jit"),
        ", ".join(str(result["nodes"][name]) for name in ("jaxport", "zeros")),
    )


def layers_row(result: Result) -> Row:
    return (
        f"{result['width']}, {result['tokens']}",
        milliseconds(result, "unrolled"),
        *ratios(result, "scan", "functions", "jit"),
        ", ".join(map(str, result["nodes"].values())),
        ", ".join(f"{count / 1e6:.2f}" for count in result["bytes"].values()),
    )


def decode_row(result: Result) -> Row:
    return (
        result["layout"],
        str(result["cache"]),
        str(result["tokens"]),
        milliseconds(result, "jaxport"),
        f"{result['ratio_to_jit']:.2f}",
        str(result["nodes"]),
        f"{result['largest_error']:.0e}",
    )


# The file of results, what it lists, the head of its table and a row.
FORMS: dict[str, tuple[str, Row, Callable[[Result], Row]]] = {
    "transposed": ("layers", TRANSPOSED, transposed_row),
    "layers": ("networks", LAYERS, layers_row),
    "decode": ("steps", DECODE, decode_row),
}


def print_row(cells: Row) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    for name, (listed, head, row) in FORMS.items():
        if (RESULTS / f"{name}.json").exists():
            write_part(name, table(head, [row(found) for found in load_result(name)[listed]]))


if __name__ == "__main__":
    main()

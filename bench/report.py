# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of docs/benchmarks.md from the JSON files in bench/results."""

from collections.abc import Callable
from itertools import islice
from typing import Any

import fleet_report
from fleet_report import FAILS, STAGES, shown, table
from limits import Row, fleet_rows, found, row, verdict, worst_row
from measure import RESULTS, load_result
from page import write_part


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def megabytes(count: float) -> str:
    return f"{count / 1e6:.0f} MB"


def conversion_table(result: dict[str, Any]) -> str:
    ours, theirs = result["jaxport"], result["jax2onnx"]
    rows = [
        ("equations", str(result["equations"]), str(result["equations"]), ""),
        ("nodes", str(ours["nodes"]), str(theirs["nodes"]), ""),
        ("trace, best", milliseconds(ours["trace_seconds"]["best"]), "", ""),
    ]
    for statistic, ratio in result["times_less_than_jax2onnx"].items():
        rows.append(
            (
                f"compile, {statistic}",
                milliseconds(ours["compile_seconds"][statistic]),
                milliseconds(theirs["compile_seconds"][statistic]),
                f"{ratio:.0f}",
            )
        )
    written = result["write"]
    rows.append(("write, median", milliseconds(written["write_seconds"]["median"]), "", ""))
    rows.append(
        ("`cp` of that file, median", milliseconds(written["cp_seconds"]["median"]), "", "")
    )
    return table(("ViT-B/16 in Flax NNX", "jaxport", "jax2onnx", "ratio"), rows)


def recurrent_table(result: dict[str, Any]) -> str:
    rows = []
    for network in result["networks"]:
        name = f"{network['op']}, batch {network['batch']}, {network['features']} features, "
        best = (taken["best"] for taken in network["seconds"].values())
        ratios = (f"{ratio:.2f}" for ratio in network["ratios"].values())
        rows.append((name + f"{network['units']} units", *map(milliseconds, best), *ratios))
    head = (f"{result['steps']} steps, one thread, best", "jaxport", "the op by hand", "jax2onnx")
    return table((*head, "jit", "to the op", "to jax2onnx", "to jit"), rows)


def chain_table(result: dict[str, Any]) -> str:
    rows = []
    for series in result["series"]:
        cells = (f"{point['equations']:,}: {point['seconds']:.3f} s" for point in series["points"])
        stages = series.get("stage_exponents", {})
        powers = (shown(stages.get(stage), ".2f") for stage in STAGES)
        rows.append((series["name"], ", ".join(cells), f"{series['exponent']:.2f}", *powers))
    return table(("growth", "equations: time", "exponent", *STAGES), rows)


def recurrent_limits(result: dict[str, Any]) -> list[Row]:
    rows = []
    for other, label, limit in (("op", "ONNX's own op", 1.2), ("jax2onnx", "jax2onnx", 1.0)):
        ratios = {
            f"{network['op']}, batch {network['batch']}": network["ratios"][f"to_{other}"]
            for network in result["networks"]
        }
        what = f"time of recurrent networks relative to {label}"
        rows.append(worst_row(what, ratios, limit, "{:.2f}".format))
    return rows


def conversion_limits(conversion: dict[str, Any]) -> list[Row]:
    compile_seconds = conversion["jaxport"]["compile_seconds"]["best"]
    faster = conversion["times_less_than_jax2onnx"]
    speed = conversion["write"]["speed_relative_to_cp"]
    plain = conversion["write"]["plain_write_relative_to_cp"]
    return [
        row("compile time of ViT-B/16", compile_seconds, 0.06, milliseconds),
        *(
            (
                f"times less than jax2onnx beyond tracing, {label}",
                f"{faster[statistic]:.0f}",
                "at least 40",
                verdict(faster[statistic], 40, at_least=True),
            )
            for statistic, label in (("first", "first call in a process"), ("best", "best call"))
        ),
        (
            "speed of writing relative to `cp`",
            f"{speed:.2f} (one plain write: {plain:.2f})",
            "at least 0.7",
            verdict(speed, 0.7, at_least=True),
        ),
    ]


def above_bytes(result: dict[str, Any], name: str) -> float | None:
    found: float | None = result.get(name, {}).get("above_bytes")
    return found


def memory_table(memory: dict[str, Any]) -> str:
    rows = []
    for name, result in memory["networks"].items():
        cells = (above_bytes(result, key) for key in ("jaxport", "jax2onnx"))
        size = result["jaxport"].get("file_bytes", 0)
        rows.append(
            (
                name,
                megabytes(size),
                *(FAILS if cell is None else megabytes(cell) for cell in cells),
            )
        )
    return table(("peak memory above the weights", "file", "jaxport", "jax2onnx"), rows)


def memory_limits(memory: dict[str, Any]) -> list[Row]:
    above = found(memory["networks"], lambda result: above_bytes(result, "jaxport"))
    return [worst_row("peak memory above the weights", above, 60e6, megabytes)]


def chain_limits(chain: dict[str, Any]) -> list[Row]:
    exponents = {series["name"]: series["exponent"] for series in chain["series"]}
    what = "growth with the number of equations, n to the power of"
    return [worst_row(what, exponents, 1.1, "{:.2f}".format)]


LIMITS: dict[str, Callable[[dict[str, Any]], list[Row]]] = {
    "conversion": conversion_limits,
    "memory": memory_limits,
    "chain": chain_limits,
    "recurrent": recurrent_limits,
}


def limits_table(results: dict[str, dict[str, Any]]) -> str:
    networks = results["fleet"].get("networks", {})
    rows = fleet_rows(networks, results["decode"])
    for name, limits_of in LIMITS.items():
        rows += limits_of(results[name]) if results[name] else []
    return table(("what", "measured", "limit", ""), rows)


def environment_line(environment: dict[str, Any]) -> str:
    packages = (
        f"{key} {value}" for key, value in environment.items() if key not in ("cpu", "cores")
    )
    return (
        f"Measured on {environment['cores']} cores of {environment['cpu']}; {', '.join(packages)}."
    )


TABLES: dict[str, Callable[[dict[str, Any]], str]] = {
    "conversion": conversion_table,
    "memory": memory_table,
    "recurrent": recurrent_table,
    "chain": chain_table,
}


def loaded(name: str) -> dict[str, Any]:
    """Of a benchmark that was not run: nothing."""
    return load_result(name) if (RESULTS / f"{name}.json").exists() else {}


def results_text() -> str:
    results = {name: loaded(name) for name in ("fleet", "decode", *LIMITS)}
    environments = (found["environment"] for found in results.values() if found)
    parts = [*map(environment_line, islice(environments, 1)), limits_table(results)]
    if networks := results["fleet"].get("networks"):
        parts.append(fleet_report.text(networks))
    parts += [table_of(results[name]) for name, table_of in TABLES.items() if results[name]]
    return "\n\n".join(parts)


def main() -> None:
    text = results_text()
    write_part("results", text)
    print(text)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of docs/benchmarks.md from the JSON files in bench/results."""

from typing import Any

import fleet_report
from fleet_report import table
from measure import load_result
from page import write_part


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def megabytes(count: float) -> str:
    return f"{count / 1e6:.0f} MB"


def verdict(measured: float, limit: float, at_least: bool = False) -> str:
    return "met" if (measured >= limit if at_least else measured <= limit) else "**missed**"


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
        rows.append((series["name"], ", ".join(cells), f"{series['exponent']:.2f}"))
    return table(("chain of equations", "equations: time", "exponent"), rows)


def recurrent_limits(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """The worst of all networks."""
    rows = []
    for other, label, limit in (("op", "ONNX's own op", 1.2), ("jax2onnx", "jax2onnx", 1.0)):
        worst = max(network["ratios"][f"to_{other}"] for network in result["networks"])
        what = f"time of recurrent networks relative to {label}, worst"
        rows.append((what, f"{worst:.2f}", f"at most {limit:g}", verdict(worst, limit)))
    return rows


def limits_table(
    conversion: dict[str, Any],
    memory: dict[str, Any],
    chain: dict[str, Any],
    recurrent: dict[str, Any],
) -> str:
    compile_seconds = conversion["jaxport"]["compile_seconds"]["best"]
    faster = conversion["times_less_than_jax2onnx"]
    speed = conversion["write"]["speed_relative_to_cp"]
    plain = conversion["write"]["plain_write_relative_to_cp"]
    above = memory["jaxport"]["above_bytes"]
    exponent = max(series["exponent"] for series in chain["series"])
    rows = [
        (
            "compile time of ViT-B/16",
            milliseconds(compile_seconds),
            "at most 60 ms",
            verdict(compile_seconds, 0.06),
        ),
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
        (
            "peak memory above the weights",
            f"{megabytes(above)} (jax2onnx: {megabytes(memory['jax2onnx']['above_bytes'])})",
            "at most 60 MB",
            verdict(above, 60e6),
        ),
        (
            "growth with the number of equations",
            f"n^{exponent:.2f}",
            "at most n^1.1",
            verdict(exponent, 1.1),
        ),
        *recurrent_limits(recurrent),
    ]
    return table(("what", "measured", "limit", ""), rows)


def environment_line(environment: dict[str, Any]) -> str:
    packages = (
        f"{key} {value}" for key, value in environment.items() if key not in ("cpu", "cores")
    )
    return (
        f"Measured on {environment['cores']} cores of {environment['cpu']}; {', '.join(packages)}."
    )


def results_text() -> str:
    conversion, memory = load_result("conversion"), load_result("memory")
    chain, recurrent = load_result("chain"), load_result("recurrent")
    parts = [
        environment_line(conversion["environment"]),
        limits_table(conversion, memory, chain, recurrent),
        conversion_table(conversion),
        fleet_report.text(),
        recurrent_table(recurrent),
        chain_table(chain),
    ]
    return "\n\n".join(parts)


def main() -> None:
    text = results_text()
    write_part("results", text)
    print(text)


if __name__ == "__main__":
    main()

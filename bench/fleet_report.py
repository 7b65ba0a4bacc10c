# SPDX-License-Identifier: Apache-2.0
"""Tables and plots of bench/results/fleet.json, for docs/benchmarks.md."""

import math
from collections.abc import Iterable
from typing import Any

from measure import ROOT, load_result

PLOTS = ROOT / "docs" / "plots"
SHOWN = {
    "newest": "`>=1.31`",
    "jax2onnx": "jax2onnx",
    "slim": "jax2onnx, onnxslim",
    "optimizer": "jax2onnx, ORT optimizer",
    "jit": "jax.jit",
}
MOVEMENT = ("Transpose", "Reshape", "Cast", "Expand")


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def geometric_mean(values: Iterable[float]) -> float:
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))


def ratio(value: float | None) -> str:
    return "fails" if value is None else f"{value:.2f}"


def latency_table(networks: dict[str, Any], threads: str) -> str:
    """How long our model takes relative to the others; a mean over those that run."""
    rows = []
    for name, result in networks.items():
        ratios = result[threads]["ratios"]
        best = result[threads]["seconds"]["jaxport"]["best"]
        rows.append((name, f"{best * 1e3:.2f} ms", *(ratio(ratios.get(key)) for key in SHOWN)))
    means = []
    for key in SHOWN:
        values = [
            r[threads]["ratios"][key] for r in networks.values() if key in r[threads]["ratios"]
        ]
        means.append(f"**{geometric_mean(values):.2f}**")
    rows.append(("geometric mean", "", *means))
    label = "one thread" if threads == "1" else f"{threads} threads"
    return table((f"latency, {label}", "jaxport", *(f"of {n}" for n in SHOWN.values())), rows)


def floor_table(networks: dict[str, Any]) -> str:
    """What no other graph can save: the products, as ONNX Runtime's kernels compute them."""
    rows: list[tuple[str, ...]] = []
    floors: dict[str, list[float]] = {"jax2onnx": [], "jit": []}
    for name, result in networks.items():
        one = result["1"]
        cells = []
        for key, found in floors.items():
            if key in one["ratios"]:
                found.append(one["ratios"][key] * one["products"])
                cells.append(f"{one['ratios'][key]:.2f}, at least {found[-1]:.2f}")
            else:
                cells.append("fails")
        rows.append((name, f"{one['products']:.0%}", *cells))
    means = (f"at least **{geometric_mean(found):.2f}**" for found in floors.values())
    rows.append(("geometric mean", "", *means))
    head = ("one thread", "of the time in products", *(f"of {SHOWN[key]}" for key in floors))
    return table(head, rows)


def conversion_table(networks: dict[str, Any]) -> str:
    rows = []
    for name, result in networks.items():
        ours, theirs = result["conversion"]["jaxport"], result["conversion"]["jax2onnx"]
        stages = ours["stage_seconds"]
        named = [("axis", "axis"), ("raise", "raise"), ("lower", "lower"), ("passes", "passes")]
        rows.append(
            (
                name,
                *(f"{ours[f'{step}_seconds'] * 1e3:.1f}" for step in ("trace", "compile")),
                *(f"{stages[key] * 1e3:.1f}" for key, _ in named),
                f"{ours['compile_seconds'] / ours['trace_seconds']:.2f}",
                f"{theirs['compile_seconds'] * 1e3:.0f}" if "nodes" in theirs else "fails",
            )
        )
    head = ("conversion, ms", "trace", "compile", "axis", "raise", "lower", "passes")
    return table((*head, "compile / trace", "jax2onnx's compile"), rows)


def size_table(networks: dict[str, Any]) -> str:
    rows, ratios = [], []
    for name, result in networks.items():
        ours, theirs = result["conversion"]["jaxport"], result["conversion"]["jax2onnx"]
        if "nodes" in theirs:
            ratios.append(ours["nodes"] / theirs["nodes"])
        moved = (
            "/".join(str(m["movement"][op]) if "nodes" in m else "" for op in MOVEMENT)
            for m in (ours, theirs)
        )
        start = result["1"]["session_seconds"]
        rows.append(
            (
                name,
                str(ours["nodes"]),
                str(result["conversion"]["newest"]["nodes"]),
                str(theirs.get("nodes", "fails")),
                *moved,
                f"{ours['bytes'] / 1e6:.1f}",
                f"{start['jaxport'] * 1e3:.0f}",
                f"{start['jax2onnx'] * 1e3:.0f}" if "jax2onnx" in start else "",
            )
        )
    rows.append(("geometric mean of the ratio", f"**{geometric_mean(ratios):.2f}**", *[""] * 7))
    movement = "/".join(MOVEMENT)
    head = (
        "size",
        "nodes",
        SHOWN["newest"],
        "jax2onnx's",
        movement,
        "jax2onnx's",
        "MB",
        "session, ms",
        "jax2onnx's",
    )
    return table(head, rows)


def plot(networks: dict[str, Any]) -> None:
    """Latency relative to jax2onnx's export and to jax.jit, one thread."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "jaxport"  # the same numbers give the same file
    import matplotlib.pyplot as plt

    names = list(networks)
    figure, axes = plt.subplots(figsize=(8, 0.36 * len(names) + 1.2), layout="constrained")
    for offset, key in ((-0.2, "jax2onnx"), (0.2, "jit")):
        ratios = [networks[name]["1"]["ratios"].get(key, 0) for name in names]
        places = [index + offset for index in range(len(names))]
        axes.barh(places, ratios, 0.38, label=f"of {SHOWN[key]}")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("time of the exported model, one thread (no bar: does not run)")
    axes.legend(loc="lower right", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    PLOTS.mkdir(exist_ok=True)
    figure.savefig(PLOTS / "latency.svg", metadata={"Date": None})


def text() -> str:
    networks = load_result("fleet")["networks"]
    plot(networks)
    parts = (
        "![Latency of all networks relative to jax2onnx and jax.jit](plots/latency.svg)",
        latency_table(networks, "1"),
        latency_table(networks, "2"),
        floor_table(networks),
        conversion_table(networks),
        size_table(networks),
    )
    return "\n\n".join(parts)

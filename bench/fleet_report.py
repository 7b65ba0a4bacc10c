# SPDX-License-Identifier: Apache-2.0
"""Tables and plots of bench/results/fleet.json, for docs/benchmarks.md."""

from collections.abc import Iterable
from typing import Any

import fleet_facts as facts
from fleet_facts import Result
from measure import ROOT

PLOTS = ROOT / "docs" / "images"
SHOWN = {
    "newest": "`>=1.31`",
    "jax2onnx": "jax2onnx",
    "slim": "jax2onnx, onnxslim",
    "optimizer": "jax2onnx, ORT optimizer",
    "jit": "jax.jit",
}
MOVEMENT = ("Transpose", "Reshape", "Cast", "Expand")
STAGES = ("import", "axis", "raise", "lower", "passes")
FAILS = "fails"


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def shown(value: float | None, form: str, without: str = "") -> str:
    return without if value is None else format(value, form)


def milliseconds(value: float | None, form: str = ".1f", without: str = "") -> str:
    return without if value is None else format(value * 1e3, form)


def missing(result: Result, name: str) -> str:
    return FAILS if facts.was_tried(result, name) else ""


def mean_cell(values: Iterable[float | None], before: str = "") -> str:
    mean = facts.geometric_mean(value for value in values if value is not None)
    return "" if mean is None else f"{before}**{mean:.2f}**"


def latency_cell(result: Result, threads: str, other: str) -> str:
    """The ratio of the minima, and that of the medians."""
    if facts.is_wrong(result, threads, other):
        return "wrong"
    best = facts.ratio(result, threads, other)
    median = facts.ratio(result, threads, other, "median")
    return missing(result, other) if best is None else f"{best:.2f} ({median:.2f})"


def latency_table(networks: dict[str, Any], threads: str) -> str:
    """How long our model takes relative to the others; a mean over those that run."""
    rows = []
    for name, result in networks.items():
        ours = (facts.seconds(result, threads, "jaxport", which) for which in ("best", "median"))
        rows.append(
            (
                name,
                *(milliseconds(taken, ".2f", FAILS) for taken in ours),
                shown(facts.error(result, threads, "jaxport"), ".0e"),
                *(latency_cell(result, threads, key) for key in SHOWN),
            )
        )
    means = (mean_cell(facts.ratio(r, threads, key) for r in networks.values()) for key in SHOWN)
    rows.append(("geometric mean", "", "", "", *means))
    label = "one thread" if threads == "1" else f"{threads} threads"
    head = (f"latency, {label}", "best, ms", "median, ms", "error")
    return table((*head, *(f"of {name}" for name in SHOWN.values())), rows)


def floor_cell(result: Result, other: str) -> str:
    lowest, reached = facts.floor(result, other), facts.ratio(result, "1", other)
    return FAILS if lowest is None else f"{reached:.2f}, at least {lowest:.2f}"


def floor_table(networks: dict[str, Any]) -> str:
    """What no other graph can save: the products, as ONNX Runtime's kernels compute them."""
    others = ("jax2onnx", "jit")
    measured = {
        name: result
        for name, result in networks.items()
        if facts.step(result, "1").get("products") is not None
    }
    rows = [
        (
            name,
            f"{facts.step(result, '1')['products']:.0%}",
            *(floor_cell(result, other) for other in others),
        )
        for name, result in measured.items()
    ]
    means = (
        mean_cell((facts.floor(result, other) for result in measured.values()), "at least ")
        for other in others
    )
    rows.append(("geometric mean", "", *means))
    head = ("one thread", "of the time in products", *(f"of {SHOWN[key]}" for key in others))
    return table(head, rows)


def conversion_table(networks: dict[str, Any]) -> str:
    rows = []
    for name, result in networks.items():
        ours, theirs = (facts.converted(result, key) for key in ("jaxport", "jax2onnx"))
        stages = ours.get("stage_seconds", {})
        of_all = ("trace_seconds", "first_compile_seconds", "compile_seconds")
        rows.append(
            (
                name,
                str(ours.get("equations", "")),
                *(milliseconds(ours.get(key)) for key in of_all),
                *(milliseconds(stages.get(stage)) for stage in STAGES),
                milliseconds(ours.get("write_seconds")),
                shown(facts.compile_of_trace(result), ".2f"),
                milliseconds(theirs.get("compile_seconds"), ".0f", FAILS),
            )
        )
    head = ("conversion, ms", "equations", "trace", "compile, first", "best")
    return table((*head, *STAGES, "write", "compile / trace", "jax2onnx's compile"), rows)


def movement_cell(result: Result, name: str) -> str:
    moved = facts.converted(result, name).get("movement")
    return "" if moved is None else "/".join(str(moved[op]) for op in MOVEMENT)


def size_table(networks: dict[str, Any]) -> str:
    models = ("jaxport", "newest", "jax2onnx", "onnxslim", "optimizer")
    rows = []
    for name, result in networks.items():
        size = facts.converted(result, "jaxport").get("bytes")
        rows.append(
            (
                name,
                *(
                    shown(facts.nodes(result, model), "d", missing(result, model))
                    for model in models
                ),
                *(movement_cell(result, model) for model in ("jaxport", "jax2onnx")),
                shown(None if size is None else size / 1e6, ".1f"),
            )
        )
    mean = mean_cell(facts.nodes_ratio(result) for result in networks.values())
    rows.append(("geometric mean of ours to jax2onnx's", mean, *[""] * 7))
    movement = "/".join(MOVEMENT)
    others = ("`>=1.31`", "jax2onnx's", "after onnxslim", "after ORT optimizer")
    return table(("size", "nodes", *others, movement, "jax2onnx's", "MB"), rows)


def session_table(networks: dict[str, Any]) -> str:
    models = ("jaxport", "newest", "jax2onnx")
    rows = [
        (
            name,
            *(
                milliseconds(
                    facts.session_seconds(result, threads, model), ".0f", missing(result, model)
                )
                for threads in ("1", "2")
                for model in models
            ),
        )
        for name, result in networks.items()
    ]
    heads = (f"{SHOWN.get(m, m)}, {threads}" for threads in ("one", "two") for m in models)
    return table(("session start, ms, threads", *heads), rows)


def plot(networks: dict[str, Any]) -> None:
    """Latency relative to jax2onnx's export and to jax.jit, one thread."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "jaxport"  # the same numbers give the same file
    import matplotlib.pyplot as plt

    names = list(networks)
    figure, axes = plt.subplots(figsize=(8, 0.36 * len(names) + 1.2), layout="constrained")
    for offset, key in ((-0.2, "jax2onnx"), (0.2, "jit")):
        ratios = [facts.ratio(networks[name], "1", key) or 0 for name in names]
        places = [index + offset for index in range(len(names))]
        axes.barh(places, ratios, 0.38, label=f"of {SHOWN[key]}")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("time of the exported model, one thread (no bar: does not run)")
    axes.legend(loc="lower right", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(PLOTS / "latency.svg", metadata={"Date": None})


def text(networks: dict[str, Any]) -> str:
    plot(networks)
    picture = "![Latency of all networks relative to jax2onnx and jax.jit](images/latency.svg)"
    return f"{picture}\n\n{tables(networks)}"


def tables(networks: dict[str, Any]) -> str:
    parts = (
        latency_table(networks, "1"),
        latency_table(networks, "2"),
        floor_table(networks),
        conversion_table(networks),
        size_table(networks),
        session_table(networks),
    )
    return "\n\n".join(parts)

# SPDX-License-Identifier: Apache-2.0
"""The numbers that jaxport holds itself to, beside those that were measured."""

from collections.abc import Callable
from typing import Any

import fleet_facts as facts
from fleet_facts import Result

Networks = dict[str, Result]
Row = tuple[str, ...]  # what, measured, limit, verdict

MANY_EQUATIONS = 500  # from here on JAX's tracing takes longer than what every program costs
NOT_MEASURED = "not measured"


def verdict(measured: float, limit: float, at_least: bool = False) -> str:
    return "met" if (measured >= limit if at_least else measured <= limit) else "**missed**"


def row(what: str, measured: float | None, limit: float, cell: Callable[[float], str]) -> Row:
    if measured is None:
        return what, NOT_MEASURED, f"at most {cell(limit)}", ""
    return what, cell(measured), f"at most {cell(limit)}", verdict(measured, limit)


def found(networks: Networks, value: Callable[[Result], float | None]) -> dict[str, float]:
    """The networks of which there is such a number."""
    values = ((name, value(result)) for name, result in networks.items())
    return {name: number for name, number in values if number is not None}


def mean_row(networks: Networks, other: str, label: str, limit: float) -> Row:
    """With the mean of what the products alone take: no graph of the same products is below it."""
    ratios = found(networks, lambda result: facts.ratio(result, "1", other))
    floors = found(networks, lambda result: facts.floor(result, other))
    floor = facts.geometric_mean(floors.values())
    what = f"latency relative to {label}, geometric mean of {len(ratios)} networks"
    if floor is not None and floors.keys() == ratios.keys():
        what += f" (their products alone: {floor:.2f})"
    return row(what, facts.geometric_mean(ratios.values()), limit, "{:.2f}".format)


def worst_row(what: str, values: dict[str, float], limit: float, cell: Callable[..., str]) -> Row:
    if not values:
        return row(what, None, limit, cell)
    name = max(values, key=lambda name: values[name])
    return row(f"{what}, worst: {name}", values[name], limit, cell)


def latency_rows(networks: Networks) -> list[Row]:
    """One thread, minima; a network that jax2onnx cannot export counts as held when ours runs."""
    rows = []
    for other, label, mean, worst in (
        ("jax2onnx", "jax2onnx", 0.65, 1.02),
        ("jit", "`jax.jit`", 0.75, 1.0),
    ):
        ratios = found(networks, lambda result, other=other: facts.ratio(result, "1", other))
        rows.append(mean_row(networks, other, label, mean))
        rows.append(worst_row(f"latency relative to {label}", ratios, worst, "{:.2f}".format))
    newest = found(networks, lambda result: facts.ratio(result, "1", "newest"))
    what = "latency of the default target relative to `onnxruntime>=1.31`"
    rows.append(worst_row(what, newest, 1.03, "{:.2f}".format))
    ran = found(networks, lambda result: facts.seconds(result, "1", "jaxport"))
    rows.append(
        (
            "networks that run",
            f"{len(ran)} of {len(networks)}",
            "all",
            verdict(len(ran), len(networks), at_least=True),
        )
    )
    return rows


def node_rows(networks: Networks) -> list[Row]:
    ratios = found(networks, facts.nodes_ratio)
    what = f"nodes relative to jax2onnx, geometric mean of {len(ratios)} networks"
    return [row(what, facts.geometric_mean(ratios.values()), 0.4, "{:.2f}".format)]


def conversion_rows(networks: Networks) -> list[Row]:
    def has_many(result: Result) -> bool:
        return facts.converted(result, "jaxport").get("equations", 0) > MANY_EQUATIONS

    many = {name: result for name, result in networks.items() if has_many(result)}
    few = {
        name: result
        for name, result in networks.items()
        if name not in many and "equations" in facts.converted(result, "jaxport")
    }
    shares = found(many, facts.compile_of_trace)
    times = found(few, lambda result: facts.converted(result, "jaxport")["compile_seconds"] * 1e3)
    return [
        worst_row(
            f"compile relative to JAX's tracing, above {MANY_EQUATIONS} equations",
            shares,
            0.25,
            "{:.2f}".format,
        ),
        worst_row(
            f"compile up to {MANY_EQUATIONS} equations",
            times,
            20.0,
            "{:.0f} ms".format,
        ),
    ]


def decoding_rows(decode: dict[str, Any]) -> list[Row]:
    ratios = {
        f"{step['layout']}, {step['cache']} long, {step['tokens']} tokens": step["ratio_to_jit"]
        for step in decode.get("steps", [])
    }
    return [worst_row("decoding steps relative to `jax.jit`", ratios, 0.9, "{:.2f}".format)]


def fleet_rows(networks: Networks, decode: dict[str, Any]) -> list[Row]:
    return [
        *latency_rows(networks),
        *node_rows(networks),
        *conversion_rows(networks),
        *decoding_rows(decode),
    ]

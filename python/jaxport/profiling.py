# SPDX-License-Identifier: Apache-2.0
"""jaxport.profile: where the time of a model goes in ONNX Runtime."""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import jax

from . import _core, runtime
from .agreement import example_arguments, held_by, model_feeds
from .comparison import random_inputs
from .errors import ConversionError
from .frameworks import program_of
from .inputs import Inputs
from .model import Model
from .record import bound
from .testing import source_of

_WARM_UP = 3  # runs that are not counted
_KERNEL = "_kernel_time"  # ends the name of an event that is the run of one node
_ROWS = 12  # of the table
_LARGEST_COPY = 500_000_000  # bytes of a model whose optimised form is written to be read


@dataclasses.dataclass(frozen=True)
class Profile:
    """Where the time goes; str() gives a table, save_report() the page.

    Attributes:
        seconds: of a run of the whole model, the median.
        jax: of jax.jit of the function on the same inputs, None without a function.
        nodes: seconds of a run by the name of the node.
        elsewhere: (name, op, seconds) of nodes that only the runtime's optimised graph has.
        ops, layers, lines: seconds by op, by layer and by source line, largest first.
        runs: how often the model was run.
        sizes: what was chosen for symbolic dims.
        runtime: what ran it.
    """

    model: Any
    seconds: float
    jax: float | None
    nodes: dict[str, float]
    elsewhere: tuple[tuple[str, str, float], ...]
    ops: dict[str, float]
    layers: dict[str, float]
    lines: dict[str, float]
    runs: int
    sizes: dict[str, int]
    runtime: str

    def data(self) -> dict[str, Any]:
        """What the page shows."""
        found = {
            "seconds": self.seconds,
            "nodes": self.nodes,
            "elsewhere": [list(item) for item in self.elsewhere],
            "runs": self.runs,
            "sizes": self.sizes,
            "runtime": self.runtime,
        }
        return found if self.jax is None else {**found, "jax": self.jax}

    def save_report(self, path: str | os.PathLike[str]) -> None:
        """Writes the page of the model with these times."""
        from .explorer.data import of_file, of_model, page_data
        from .explorer.page import write_page

        if isinstance(self.model, Model):
            data = of_model(self.model, self)
        elif isinstance(self.model, str | os.PathLike):
            data = of_file(self.model, self)
        else:
            data = page_data(_core.explore_model(source_of(self.model)), "model", profile=self)
        write_page(data, path)

    def __str__(self) -> str:
        beside = "" if self.jax is None else f"  jax.jit {1e3 * self.jax:.3f} ms"
        head = f"ONNX Runtime {1e3 * self.seconds:.3f} ms{beside}  ({self.runtime})"
        parts = [("op", self.ops), ("layer", self.layers), ("line", self.lines)]
        lines = [head]
        for title, times in parts:
            if any(times):
                lines += ["", f"by {title}", *_rows(times)]
        if self.elsewhere:
            times = {f"{op} {name}": seconds for name, op, seconds in self.elsewhere}
            lines += ["", "nodes that only the runtime has", *_rows(times)]
        return "\n".join(lines)


def profile(
    fn: Callable[..., Any] | None,
    inputs: Inputs | None,
    model: Any,
    input_params: Mapping[str, Any] | None = None,
    *,
    sizes: Mapping[str, int] | None = None,
    runs: int = 20,
) -> Profile:
    """Runs a model in ONNX Runtime's profiler, and the function in jax.jit beside it.

    Args:
        fn: what was converted; None leaves JAX out.
        inputs: as to_onnx takes them. Arrays are used as they are, shapes are filled with random
            numbers. None: random numbers for the inputs that the model declares.
        model: a path, bytes, an onnx.ModelProto or a jaxport.Model.
        input_params: keyword arguments of fn.
        sizes: of symbolic dims; 1 by default.
        runs: how often each side is run, after a few runs that do not count.

    Returns:
        A Profile: seconds by node, op, layer and source line; a table as text.
    """
    session = runtime.open_given(model)
    names = [str(d) for value in session.get_inputs() for d in value.shape if isinstance(d, str)]
    chosen = {name: int((sizes or {}).get(name, 1)) for name in dict.fromkeys(names)}
    seconds_of_jax = None
    if fn is None or inputs is None:
        feeds = random_inputs(session, chosen)
    else:
        feeds, seconds_of_jax = _beside_jax(fn, inputs, input_params, session, chosen, runs)
    seconds = _median(lambda: runtime.run(session, feeds), runs)
    traced, known = _trace(model, feeds, runs)
    graph = json.loads(_core.explore_model(source_of(model)))
    nodes, elsewhere = _by_node(traced, known, graph)
    return Profile(
        model,
        seconds,
        seconds_of_jax,
        nodes,
        elsewhere,
        _sums(graph, nodes, lambda node: node["op"]),
        _sums(graph, nodes, lambda node: node.get("scope", "")),
        _sums(graph, nodes, lambda node: graph["sources"][node.get("source", 0)]),
        runs,
        chosen,
        _what_ran(),
    )


def _beside_jax(
    fn: Callable[..., Any],
    inputs: Inputs,
    params: Mapping[str, Any] | None,
    session: Any,
    sizes: Mapping[str, int],
    runs: int,
) -> tuple[list[Any], float]:
    """What the model is fed with, and the seconds of jax.jit on it."""
    program = program_of(fn)
    arguments = example_arguments(inputs, dict(params or {}), jax.numpy.float32, sizes)
    arguments = bound(program.function, arguments)
    feeds = model_feeds(session, arguments, (), held_by(program))
    if isinstance(feeds, str):
        raise ConversionError(
            "E093", f"the model: {feeds}", help="give the function that the model was made from"
        )

    def call(*positional: Any) -> Any:
        return program.call(None, *positional, **arguments.keywords)[0]

    compiled = jax.jit(call)

    def run() -> Any:
        return jax.block_until_ready(compiled(*arguments.positional))  # type: ignore[no-untyped-call]

    return feeds, _median(run, runs)


def _median(run: Callable[[], Any], runs: int) -> float:
    for _ in range(_WARM_UP):
        run()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _trace(
    model: Any, feeds: list[Any], runs: int
) -> tuple[list[tuple[str, str, float]], dict[str, str]]:
    """(node, op, seconds of a run), and by node of the optimised graph the name of its result."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    with tempfile.TemporaryDirectory() as folder:
        options.profile_file_prefix = os.path.join(folder, "profile")
        optimised = os.path.join(folder, "optimised.onnx")
        if _size(model) <= _LARGEST_COPY:
            options.optimized_model_filepath = optimised
            options.log_severity_level = 3  # that file is for this machine only, as it should be
        session = runtime.open_session(model, options=options)
        for _ in range(_WARM_UP + runs):
            runtime.run(session, feeds)
        with open(session.end_profiling(), encoding="utf-8") as file:
            events = json.load(file)
        known = _results_of_nodes(optimised) if os.path.exists(optimised) else {}
    ends = [e["ts"] + e["dur"] for e in events if e.get("name") == "model_run"]
    start = sorted(ends)[_WARM_UP - 1]
    times: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for event in events:
        name = str(event.get("name", ""))
        if event.get("cat") == "Node" and name.endswith(_KERNEL) and event["ts"] >= start:
            key = (name.removesuffix(_KERNEL), str(event["args"].get("op_name", "")))
            times[key].append(event["dur"] / 1e6)
    # What else the machine does makes single runs slow; nodes in loops run several times.
    return [
        (name, op, statistics.median(found) * len(found) / runs)
        for (name, op), found in times.items()
    ], known


def _size(model: Any) -> int:
    source = source_of(model)
    if not isinstance(source, str):
        return len(source)
    beside = f"{source}.data"
    return os.path.getsize(source) + (os.path.getsize(beside) if os.path.exists(beside) else 0)


def _results_of_nodes(path: str) -> dict[str, str]:
    """The first result of each node: a fused one has the result of the last node that it is of."""
    from .model import package

    graph = package("onnx").load(path, load_external_data=False).graph
    return {node.name: next(filter(None, node.output), "") for node in graph.node}


def _by_node(
    traced: list[tuple[str, str, float]], known: dict[str, str], graph: dict[str, Any]
) -> tuple[dict[str, float], tuple[tuple[str, str, float], ...]]:
    """Seconds by the model's own nodes, and those of nodes that are the runtime's."""
    names = {node["name"] for node in graph["nodes"]}
    makers = {
        graph["values"][value][0]: node["name"]
        for node in graph["nodes"]
        for value in node["out"]
        if value >= 0
    }
    nodes: defaultdict[str, float] = defaultdict(float)
    elsewhere = []
    for name, op, seconds in traced:
        own = name if name in names else makers.get(known.get(name, ""), "")
        if own:
            nodes[own] += seconds
        else:
            elsewhere.append((name, op, seconds))
    return _largest_first(nodes), tuple(sorted(elsewhere, key=lambda item: -item[2]))


def _sums(
    graph: dict[str, Any], nodes: dict[str, float], key: Callable[[dict[str, Any]], str]
) -> dict[str, float]:
    times: defaultdict[str, float] = defaultdict(float)
    for node in graph["nodes"]:
        if node["name"] in nodes:
            times[key(node)] += nodes[node["name"]]
    return _largest_first(times)


def _largest_first(times: Mapping[str, float]) -> dict[str, float]:
    return dict(sorted(times.items(), key=lambda item: -item[1]))


def _rows(times: dict[str, float]) -> list[str]:
    whole = sum(times.values()) or 1.0
    rows = [(1e3 * t, 100 * t / whole, name or "(none)") for name, t in times.items()]
    shown = [f"{ms:10.3f} ms {share:5.1f} %  {name}" for ms, share, name in rows[:_ROWS]]
    rest = sum(ms for ms, _, _ in rows[_ROWS:])
    if len(rows) > _ROWS:
        shown.append(f"{rest:10.3f} ms          {len(rows) - _ROWS} others")
    return shown


def _what_ran() -> str:
    import onnxruntime

    return f"onnxruntime {onnxruntime.__version__}, CPU"

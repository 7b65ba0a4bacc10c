# SPDX-License-Identifier: Apache-2.0
"""A run of a model with the results of all nodes.

Every node's results become outputs of the graph. Bodies of loops and branches are run as models of
their own, with what they take from the graphs around them as further inputs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import runtime
from ..model import Model, package
from .graph import Run, Scope

Array = np.ndarray[Any, Any]
_DOMAINS = ("", "ai.onnx")


def load(model: Any) -> Any:
    """The onnx.ModelProto of a scope, bytes, a jaxport.Model or a proto, functions inlined."""
    onnx = package("onnx")
    if isinstance(model, str | os.PathLike):
        proto = onnx.load(os.fspath(model))
    elif isinstance(model, Model):
        proto = model.to_proto()
    else:
        proto = model if hasattr(model, "graph") else onnx.ModelProto.FromString(model)
    if not proto.functions:
        return proto
    from onnx import inliner

    return inliner.inline_local_functions(proto)


class Tracer:
    """Runs graphs of a model and keeps what they compute in `run`."""

    def __init__(self, proto: Any) -> None:
        self.run = Run()
        self._proto = proto
        self._sessions: dict[tuple[int, ...], tuple[Any, Any]] = {}  # keeps the graph alive: its id

    def trace(self, feeds: dict[str, Array]) -> Run:
        graph = self._proto.graph
        env = {value.name: self.run.add_given(feeds[value.name]) for value in graph.input}
        found = self._graph(graph, env, list(feeds), Scope())
        self.run.outputs = [found[value.name] for value in graph.output]
        return self.run

    def _graph(
        self, graph: Any, env: dict[str, int], inputs: Sequence[str], scope: Scope
    ) -> dict[str, int]:
        """Ids of all values that the graph sees, by name. `inputs`: what the session is given."""
        env = dict(env)
        for tensor in graph.initializer:
            if tensor.name not in env:
                env[tensor.name] = self.run.add_given(_array(tensor))
        results = self._results(graph, {name: self.run.values[env[name]] for name in inputs})
        for node in graph.node:
            operands = [env[name] for name in names_read_by(node) if name in env]
            arrays = [results.get(name, np.zeros(0)) for name in node.output]
            found = self._inside(node, env, arrays, scope)
            if found is None:
                found = [self.run.add(array) for array in arrays]
                made = [i for i, name in zip(found, node.output, strict=True) if name]
                self.run.add_step(node, operands, made, scope)
            env.update((n, i) for n, i in zip(node.output, found, strict=True) if n)
        return env

    def _results(self, graph: Any, feeds: dict[str, Array]) -> dict[str, Array]:
        """The results of all nodes by name."""
        names = [name for node in graph.node for name in node.output if name]
        if not names:
            return {}
        key = (id(graph), *(array.ndim for array in feeds.values()))
        if key not in self._sessions:
            self._sessions[key] = (graph, _session(self._proto, graph, feeds, names))
        return runtime.run_named(self._sessions[key][1], feeds, names)

    def _inside(
        self, node: Any, env: dict[str, int], results: list[Array], scope: Scope
    ) -> list[int] | None:
        """Ids of the results of a loop or a branch that was looked into; None of all others."""
        if node.domain not in _DOMAINS or node.op_type not in ("If", "Loop", "Scan"):
            return None
        attrs = {attr.name: attr for attr in node.attribute}
        if node.op_type == "If":
            is_true = bool(self.run.values[env[node.input[0]]].reshape(()))
            name = "then_branch" if is_true else "else_branch"
            here = scope.inside(node, f"{node.name}, {name}")
            return self._body(attrs[name].g, env, {}, here)
        body = attrs["body"].g
        if node.op_type == "Loop":
            return self._loop(node, body, env, results, scope)
        return self._scan(node, body, env, results, scope)

    def _body(
        self, body: Any, env: dict[str, int], arguments: dict[str, int], scope: Scope
    ) -> list[int]:
        captured = [name for name in _captured(body) if name in env]
        inner = {**{name: env[name] for name in captured}, **arguments}
        found = self._graph(body, inner, list(inner), scope)
        return [found[value.name] for value in body.output]

    def _loop(
        self,
        node: Any,
        body: Any,
        env: dict[str, int],
        results: list[Array],
        scope: Scope,
    ) -> list[int]:
        names = [value.name for value in body.input]
        given = [self.run.values[env[name]] if name else None for name in node.input[:2]]
        most = self.run.most_steps()
        limit = most if given[0] is None else int(given[0].reshape(()))
        goes_on = given[1] is None or bool(given[1].reshape(()))
        state = [env[name] for name in node.input[2:]]
        scanned: list[list[int]] = []
        turn = 0
        while goes_on and turn < min(limit, most):
            here = scope.inside(node, f"{node.name}, step {turn}")
            # ONNX: what is fed of Loop's counter and condition are scalars
            counter = self.run.add_given(np.asarray(turn, np.int64))
            condition = self.run.add_given(np.asarray(True))
            arguments = dict(zip(names, [counter, condition, *state], strict=True))
            out = self._body(body, env, arguments, here)
            goes_on = bool(self.run.values[out[0]].reshape(()))
            state = out[1 : 1 + len(state)]
            scanned.append(out[1 + len(state) :])
            turn += 1
        if goes_on and (given[0] is None or turn < limit):
            return self._rest(node, [*(env[n] for n in node.input if n), *state], results, scope)
        columns = _columns(scanned, len(results) - len(state))
        return [*state, *self._gathered(node, columns, results[len(state) :], scope)]

    def _scan(
        self,
        node: Any,
        body: Any,
        env: dict[str, int],
        results: list[Array],
        scope: Scope,
    ) -> list[int]:
        ints = {attr.name: list(attr.ints) for attr in node.attribute}
        count = next(a.i for a in node.attribute if a.name == "num_scan_inputs")
        first = len(node.input) - count
        state = [env[name] for name in node.input[:first]]
        wholes = [env[name] for name in node.input[first:]]
        axes = ints.get("scan_input_axes") or [0] * count
        backwards = ints.get("scan_input_directions") or [0] * count
        length, most = self.run.values[wholes[0]].shape[axes[0]], self.run.most_steps()
        scanned: list[list[int]] = []
        for turn in range(min(length, most)):
            here = scope.inside(node, f"{node.name}, step {turn}")
            slices = []
            for whole, axis, is_backwards in zip(wholes, axes, backwards, strict=True):
                place = length - 1 - turn if is_backwards else turn
                part = self.run.add(np.take(self.run.values[whole], place, axis))
                self.run.add_step(node, [whole], [part], here, is_part=True)
                slices.append(part)
            names = [value.name for value in body.input]
            out = self._body(body, env, dict(zip(names, [*state, *slices], strict=True)), here)
            state = out[:first]
            scanned.append(out[first:])
        if length > most:
            return self._rest(node, [*state, *wholes], results, scope)
        columns = _columns(scanned, len(results) - first)
        return [*state, *self._gathered(node, columns, results[first:], scope)]

    def _gathered(
        self, node: Any, columns: list[list[int]], results: list[Array], scope: Scope
    ) -> list[int]:
        pairs = zip(columns, results, strict=True)
        return [self._rest(node, column, [whole], scope)[0] for column, whole in pairs]

    def _rest(
        self, node: Any, ids: Sequence[int], results: Sequence[Array], scope: Scope
    ) -> list[int]:
        """The results of a loop as one step behind those that were looked into."""
        found = [self.run.add(value) for value in results]
        self.run.add_step(node, ids, found, scope, is_part=True)
        return found


def traced(proto: Any, feeds: dict[str, Array]) -> Run:
    """A run of a model with all values on the way."""
    return Tracer(proto).trace(feeds)


def _columns(rows: list[list[int]], count: int) -> list[list[int]]:
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[]] * count


def _array(tensor: Any) -> Array:
    from onnx import numpy_helper

    return np.asarray(numpy_helper.to_array(tensor))


def _subgraphs(node: Any) -> Iterator[Any]:
    for attr in node.attribute:
        if attr.HasField("g"):
            yield attr.g
        yield from attr.graphs


def names_read_by(node: Any) -> list[str]:
    """The values that a node reads, those that its bodies capture too."""
    own = [name for name in node.input if name]
    return [*own, *(name for body in _subgraphs(node) for name in _captured(body))]


def _captured(graph: Any) -> list[str]:
    """Names that a body reads and does not define, in order."""
    own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    own |= {name for node in graph.node for name in node.output}
    used = [name for node in graph.node for name in names_read_by(node)]
    used += [value.name for value in graph.output]
    return [name for name in dict.fromkeys(used) if name not in own]


def _session(proto: Any, graph: Any, inputs: dict[str, Array], outputs: Sequence[str]) -> Any:
    """A session for a graph of a model that gives all these values."""
    model = _model(proto, graph.node, inputs, outputs)
    model.graph.initializer.extend(t for t in graph.initializer if t.name not in inputs)
    return runtime.open_session(model, optimised=False)


def single_node(proto: Any, node: Any, inputs: dict[str, Array]) -> Any:
    """A model of one node of another."""
    return _model(proto, [node], inputs, [name for name in node.output if name])


def _model(proto: Any, nodes: Any, inputs: dict[str, Array], outputs: Sequence[str]) -> Any:
    onnx = package("onnx")
    model = onnx.ModelProto()
    model.ir_version = proto.ir_version
    model.opset_import.extend(proto.opset_import)
    model.graph.name = proto.graph.name or "graph"
    model.graph.node.extend(nodes)
    for name, array in inputs.items():
        number = runtime.type_number(array.dtype)
        rank: list[None] = [None] * array.ndim
        model.graph.input.append(onnx.helper.make_tensor_value_info(name, number, rank))
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)
    return model

# SPDX-License-Identifier: Apache-2.0
"""A fixed set of programs, their models, and how results are judged."""

from __future__ import annotations

import functools
import itertools
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import onnx

from conformance.case import Program
from jaxport import _core, _jax, lowering, runtime, to_onnx
from jaxport.session import watched

Make = Callable[[], Program]
RUNNER_DTYPES = {str(dtype): number for number, dtype in runtime._EXTENDED.items()}


def programs(count: int) -> list[tuple[str, Make]]:
    """So many programs, evenly spread. With 64-bit types JAX's own cases; else our networks."""
    found = list(_of_jax() if jax.config.jax_enable_x64 else _of_rows())
    count = min(count, len(found))
    return [found[i * len(found) // count] for i in range(count)]


def _of_jax() -> Iterator[tuple[str, Make]]:
    from conformance import harness

    for case in harness.cases():
        yield case.name, case.program


def _of_rows() -> Iterator[tuple[str, Make]]:
    import test_control
    import test_dims
    import test_models
    from raising.all_rows import ROWS

    for row in ROWS:
        yield row.id, functools.partial(_of_row, row)
    tables = [
        *(test_models.CASES, test_models.RECURRENT, test_dims.MOVES, test_dims.EXPRESSIONS),
        *(test_control.CONDITIONS, test_control.LOOPS, test_control.SCANS, test_dims.GATHERS),
    ]
    for case in itertools.chain(*itertools.chain(*tables)):
        if not case.needs_double_precision:
            yield case.id, functools.partial(_program, case.fn, case.inputs, case.tolerance)


def _of_row(row: Any) -> Program:
    if "keras" in sys.modules:  # which counts its layers; their numbers are names in the model
        sys.modules["keras"].backend.clear_session()
    return _program(row.function(), row.inputs, row.tolerance)


def _program(fn: Callable[..., Any], specs: Sequence[Any], tolerance: str) -> Program:
    from support.cases import examples_of, run_jax, structs
    from support.tolerances import assert_close

    *_, arrays = examples_of(specs)

    def difference(wanted: list[np.ndarray], given: list[np.ndarray]) -> str | None:
        try:
            for i, (want, have) in enumerate(zip(wanted, given, strict=True)):
                assert_close(f"output {i}", want, have, tolerance)
        except AssertionError as error:
            return str(error)
        return None

    feeds = [_jax.host_array(array) for array in arrays]
    return Program(fn, structs(specs), feeds, lambda: run_jax(fn, arrays), difference)


class Models:
    """A program that was traced once, its models for several targets, and its inputs.

    "stem.target.23.onnx" and "stem.npz"; "stem.target.23.f32.onnx" and "stem.f32.npz" have f32
    where the border of the model has bfloat16 or floats of 8 bits.
    """

    def __init__(self, program: Program, stem: Path) -> None:
        self._stem = stem
        options = {"return_mode": "model", **program.options}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # libraries about each other
            self._module = to_onnx(program.fn, program.inputs, **options)._module
        arrays = [np.asarray(array) for array in program.arguments]
        self._inputs(".npz", arrays)
        self._inputs(".f32.npz", [as_f32(array) for array in arrays])

    def write(self, target: str, opset: int) -> None:
        choices = {"opset": opset, "target": target}
        path = f"{self._stem}.{target}.{opset}"
        with watched() as session:
            compiled = _core.compile(session, self._module, choices, lowering.functions())
            compiled.save(
                session,
                f"{path}.onnx",
                external_threshold=2**62,
                inline_limit=2**31,
                source_locations=True,
            )
        onnx.save(with_f32_border(onnx.load(f"{path}.onnx")), f"{path}.f32.onnx")

    def _inputs(self, suffix: str, arrays: Sequence[np.ndarray]) -> None:
        raw = dict(_raw(i, array) for i, array in enumerate(arrays))
        np.savez(f"{self._stem}{suffix}", **raw)


def as_f32(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32) if str(array.dtype) in RUNNER_DTYPES else array


def with_f32_border(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same model, which takes and gives f32 for dtypes that a runtime cannot be fed."""
    graph = model.graph
    for values, is_input in ((graph.input, True), (graph.output, False)):
        for value in values:
            kind = value.type.tensor_type.elem_type
            if kind not in runtime._EXTENDED:
                continue
            inner = f"{value.name}_small"
            names = [value.name, inner] if is_input else [inner, value.name]
            rename(graph, value.name, inner)
            to = kind if is_input else onnx.TensorProto.FLOAT
            cast = onnx.helper.make_node("Cast", names[:1], names[1:], to=to)
            graph.node.insert(0 if is_input else len(graph.node), cast)
            value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    return model


def rename(graph: onnx.GraphProto, old: str, new: str) -> None:
    """In all nodes, those of bodies included; the border keeps its name."""
    for node in graph.node:
        for names in (node.input, node.output):
            for i, name in enumerate(names):
                if name == old:
                    names[i] = new
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                rename(body, old, new)
                for value in body.output:
                    if value.name == old:
                        value.name = new


def _raw(index: int, array: np.ndarray) -> tuple[str, np.ndarray]:
    number = RUNNER_DTYPES.get(str(array.dtype))
    if number is None:
        return str(index), array
    return f"{index}:{number}", array.view(f"u{array.itemsize}")


def results(path: Path) -> list[np.ndarray]:
    """What a runner wrote."""
    arrays = np.load(path)
    return [
        arrays[key].view(runtime._EXTENDED[int(number)]) if number else arrays[key]
        for key in arrays.files
        for number in [key.partition(":")[2]]
    ]

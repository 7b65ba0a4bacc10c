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

from conformance.case import Program
from jaxport import _core, _jax, lowering, runtime, to_onnx

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


def write_models(program: Program, opsets: Sequence[int], target: str, stem: Path) -> None:
    """One model for each opset, "stem.23.onnx", and the inputs of all of them."""
    options = {"opset": opsets[0], "target": target, "return_mode": "model", **program.options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # libraries about each other
        model = to_onnx(program.fn, program.inputs, **options)
    model.save(f"{stem}.{opsets[0]}.onnx")
    for opset in opsets[1:]:
        _core.compile(
            model._module, opset, "jax_model", True, "auto", [], target, lowering.functions()
        ).save(
            f"{stem}.{opset}.onnx", external_threshold=2**62, inline_limit=2**31,
            source_locations=True,
        )  # fmt: skip
    np.savez(f"{stem}.npz", **dict(_raw(i, array) for i, array in enumerate(program.arguments)))


def _raw(index: int, array: Any) -> tuple[str, np.ndarray]:
    array = np.asarray(array)
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

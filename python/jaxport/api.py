# SPDX-License-Identifier: Apache-2.0
"""jaxport.to_onnx."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from . import _core, lowering
from ._jax import Reader
from .errors import ConversionError
from .model import EXTERNAL_DATA_THRESHOLD, INLINE_LIMIT, Model
from .report import Report, Wanted
from .trace import Traced, trace

_RETURN_MODES = ("proto", "ir", "file")
_NORMALIZATION_MODES = ("auto", "prefer_native", "force_decomposed")
_OPSETS = range(16, 27)


def to_onnx(
    fn: Callable[..., Any],
    inputs: Sequence[Any],
    input_params: Mapping[str, Any] | None = None,
    model_name: str = "jax_model",
    opset: int = 23,
    *,
    enable_double_precision: bool = False,
    record_primitive_calls_file: str | None = None,
    return_mode: Literal["proto", "ir", "file"] = "proto",
    output_path: str | os.PathLike[str] | None = None,
    inputs_as_nchw: Sequence[int] | None = None,
    outputs_as_nchw: Sequence[int] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    export_mode: Literal["standard", "web"] = "standard",
    normalization_mode: Literal["auto", "prefer_native", "force_decomposed"] = "auto",
    raise_: bool = True,
    without_rules: Sequence[str] = (),
    report: Wanted = None,
    target: Literal["onnxruntime", "onnx"] = "onnxruntime",
    external_data_threshold: int = EXTERNAL_DATA_THRESHOLD,
    inline_limit: int = INLINE_LIMIT,
    source_locations: bool = True,
) -> Any:
    """Converts a JAX function to an ONNX model.

    Args:
        fn: any function that JAX can trace: a plain function, a module, a partial.
        inputs: one entry for each positional argument: a shape such as ("B", 28, 28, 3) with
            integers, names and expressions, a jax.ShapeDtypeStruct, an array, or a pytree of these.
        model_name: the name of the ONNX graph.
        opset: the ONNX opset to write, 16 to 26.
        enable_double_precision: trace with 64-bit types; shapes alone then mean float64.
        return_mode: "proto" gives an onnx.ModelProto, "ir" a jaxport.Model, "file" writes to
            output_path and returns that path.
        output_path: where return_mode="file" writes.
        input_names: names of the model's inputs; by default those of the parameters.
        output_names: names of the model's outputs.
        normalization_mode: "auto" takes the ops that run fastest, such as InstanceNormalization for
            a group norm; "prefer_native" the op of each norm where the opset has it, such as
            GroupNormalization; "force_decomposed" keeps normalisations as arithmetic.
        raise_: recognise attention, normalisation and other known mathematics as single nodes.
        without_rules: rules to leave out, by name, such as "attention"; docs/raising.md lists them.
        report: what was raised, and what nearly was and why not: a file name (JSON if it ends in
            .json, else text), a function that gets a jaxport.Report, or True to print it.
        target: "onnxruntime" computes in wider dtypes where ONNX Runtime has no kernel for a dtype;
            "onnx" uses all that the specification allows.
        external_data_threshold: tensors of at least this many bytes may go to "<path>.data".
        inline_limit: they go there once the model would have more bytes than this.
        source_locations: keep the user's source lines in the metadata of nodes.

    input_params, record_primitive_calls_file, inputs_as_nchw, outputs_as_nchw and export_mode
    accept their defaults only.

    Raises:
        ConversionError: with a code, the place in the user's code and what to do next.
    """
    _refuse_unsupported(
        input_params=(input_params or None, None),
        record_primitive_calls_file=(record_primitive_calls_file, None),
        inputs_as_nchw=(inputs_as_nchw or None, None),
        outputs_as_nchw=(outputs_as_nchw or None, None),
        export_mode=(export_mode, "standard"),
    )
    _check_options(opset, return_mode, output_path)
    _check_choice("normalization_mode", normalization_mode, _NORMALIZATION_MODES)
    traced = trace(
        fn,
        inputs,
        double_precision=enable_double_precision,
        given_input_names=input_names,
        given_output_names=output_names,
    )
    rules = (raise_, normalization_mode, list(without_rules))
    compiled, times = _compile(traced, opset, model_name, rules, target)
    model = Model(
        compiled,
        traced.module,
        times,
        Report.of(compiled.findings, traced.reader.left_out, traced.reader.source_line),
        external_data_threshold=external_data_threshold,
        inline_limit=inline_limit,
        source_locations=source_locations,
    )
    model.report.give(report)
    if return_mode == "ir":
        return model
    if return_mode == "proto":
        return model.to_proto()
    assert output_path is not None
    return model.save(output_path)


def _compile(
    traced: Traced, opset: int, model_name: str, rules: tuple[bool, str, list[str]], target: str
) -> tuple[_core.Model, dict[str, float]]:
    start = time.perf_counter()
    try:
        compiled = _core.compile(
            traced.module, opset, model_name, *rules, target, lowering.functions()
        )
    except ConversionError as error:
        raise _explained(error, traced.reader) from traced.reader.cause_of(error)
    seconds = traced.import_seconds + time.perf_counter() - start
    return compiled, {"trace": traced.trace_seconds, "compile": seconds}


def _explained(error: ConversionError, reader: Reader) -> ConversionError:
    """An error of the compiler with what only Python knows."""
    located = error.with_source_line(reader.source_line(error.source))
    if error.code != "E012":
        return located
    primitive = error.message.split("'")[1]
    why_not = reader.why_not_defined(primitive)
    return located.with_note(f"its own definition {why_not}") if why_not else located


def _refuse_unsupported(**arguments: tuple[Any, Any]) -> None:
    for name, (value, default) in arguments.items():
        if value != default:
            raise ConversionError(
                "E073",
                f"to_onnx does not support the argument {name} yet",
                help=f"leave {name} out",
            )


def _check_options(
    opset: int, return_mode: str, output_path: str | os.PathLike[str] | None
) -> None:
    if opset not in _OPSETS:
        raise ConversionError(
            "E011",
            f"opset {opset} is out of range",
            help=f"choose an opset from {_OPSETS[0]} to {_OPSETS[-1]}",
        )
    _check_choice("return_mode", return_mode, _RETURN_MODES)
    if return_mode == "file" and output_path is None:
        raise ConversionError(
            "E075", "return_mode 'file' needs a file name", help="give output_path"
        )


def _check_choice(option: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise ConversionError(
            "E075",
            f"{option} {value!r} is unknown",
            help=f"use one of {', '.join(map(repr, choices))}",
        )

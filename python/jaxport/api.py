# SPDX-License-Identifier: Apache-2.0
"""jaxport.to_onnx."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from . import _core, lowering
from ._jax import Reader
from .errors import ConversionError
from .inputs import Inputs
from .model import EXTERNAL_DATA_THRESHOLD, INLINE_LIMIT, NO_EXTERNAL_DATA, Model, package
from .parameters import Wanted
from .report import Report
from .report import Wanted as WantedReport
from .trace import Traced, trace

if TYPE_CHECKING:
    from .verification.results import Verification

_RETURN_MODES = ("proto", "ir", "file", "model")
_PACKAGES = {"ir": "onnx_ir", "proto": "onnx"}  # by return_mode
_EXPORT_MODES = ("standard", "web")
_NORMALIZATION_MODES = ("auto", "prefer_native", "force_decomposed")
_STATE_MODES = ("frozen", "io")
_FUNCTIONS = ("marked", "auto")
_OPSETS = range(16, 27)


def to_onnx(
    fn: Callable[..., Any],
    inputs: Inputs,
    input_params: Mapping[str, Any] | None = None,
    model_name: str = "jax_model",
    opset: int | Literal["auto"] = 23,
    *,
    enable_double_precision: bool = False,
    record_primitive_calls_file: str | None = None,
    return_mode: Literal["proto", "ir", "file", "model"] = "proto",
    output_path: str | os.PathLike[str] | None = None,
    inputs_as_nchw: Sequence[int] | None = None,
    outputs_as_nchw: Sequence[int] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    export_mode: Literal["standard", "web"] = "standard",
    normalization_mode: Literal["auto", "prefer_native", "force_decomposed"] = "auto",
    state: Literal["frozen", "io"] = "frozen",
    params_as_inputs: Wanted = None,
    raise_: bool = True,
    without_rules: Sequence[str] = (),
    report: WantedReport = None,
    target: str = "onnxruntime",
    functions: Literal["marked", "auto"] = "marked",
    unroll_layers: int | None = None,
    external_data_threshold: int = EXTERNAL_DATA_THRESHOLD,
    inline_limit: int = INLINE_LIMIT,
    source_locations: bool = True,
    verify: bool = False,
) -> Any:
    """Converts a JAX function to an ONNX model.

    Args:
        fn: any function that JAX can trace: a plain function, a module or a method of one, a
            partial; or a module with its variables, such as (module, variables): docs/modules.md.
        inputs: one entry for each argument, by position or, in a mapping, by name: a shape such as
            ("B", 28, 28, 3) with integers, names and expressions, a jax.ShapeDtypeStruct, an array,
            or a pytree of these. True, False, None, a text or a function is passed on as it is.
        input_params: keyword arguments. Numbers and arrays become inputs of the model of that name,
            if the function can be traced without their values; otherwise, as everything else, they
            are constants of the model, and the report says so.
        model_name: the name of the ONNX graph.
        opset: the ONNX opset to write, 16 to 26; "auto" is the newest that the target runs.
        enable_double_precision: trace with 64-bit types; shapes alone then mean float64.
        record_primitive_calls_file: a file for the traced program: each primitive with its
            operands, types, parameters and source line, as .jir text.
        return_mode: "proto" gives an onnx.ModelProto, "ir" an onnx_ir.Model, "model" a
            jaxport.Model; "file" writes to output_path and returns that path.
        output_path: where return_mode="file" writes.
        inputs_as_nchw: positions of image inputs, (N, H, W, C) in the function, that the model
            takes as (N, C, H, W).
        outputs_as_nchw: the same for outputs.
        input_names: names of the model's inputs; by default those of the parameters. Those of
            input_params keep theirs.
        output_names: names of the model's outputs.
        export_mode: "web" writes one file that holds all weights, which is what a browser loads;
            "standard" moves large ones to "<path>.data" where one file cannot hold them.
        normalization_mode: "auto" takes the ops that run fastest, such as InstanceNormalization for
            a group norm; "prefer_native" the op of each norm where the opset has it, such as
            GroupNormalization; "force_decomposed" keeps normalisations as arithmetic.
        state: what becomes of state that a call changes, such as running statistics. "frozen":
            the model keeps its value, and the report says so; "io": "bn.mean" is an input and
            "bn.mean_out" an output; Model.state has the values to start with.
        params_as_inputs: parameters that become inputs, named by their paths, after the others:
            True for all, a pattern such as "decoder.*", a function of the path, or a list of
            these. Model.parameters has their values.
        raise_: recognise attention, normalisation and other known mathematics as single nodes.
        without_rules: rules to leave out, by name, such as "attention"; docs/raising.md lists them.
        report: what was raised, and what nearly was and why not: a file name (JSON if it ends in
            .json, else text), a function that gets a jaxport.Report, or True to print it.
        target: what must run the model. "onnxruntime" is every version of ONNX Runtime that loads
            the opset, "onnxruntime>=1.28" those from 1.28 on, "onnxruntime==1.20" that one,
            "onnxruntime-web" the same in a browser. Where one of them has no kernel for a dtype,
            the model computes in a wider one. "onnx" uses all that the specification allows.
        functions: "marked" makes functions of the calls that jaxport.onnx_function marks; "auto"
            also of what the program repeats, such as the layers of a transformer.
        unroll_layers: up to so many steps of a scan over large constant weights, such as the layers
            of a transformer, stand one after the other; 0 keeps the loop. By default the target
            decides: docs/benchmarks.md.
        external_data_threshold: tensors of at least this many bytes may go to "<path>.data".
        inline_limit: they go there once the model would have more bytes than this.
        source_locations: keep the user's source lines in the metadata of nodes.
        verify: run the model and fn on the same random inputs, and compare all outputs, as
            jaxport.verify does; Model.verification has what was found. Needs ONNX Runtime.

    Raises:
        ConversionError: with a code, the place in the user's code and what to do next. E100 when
            `verify` finds that the model gives other numbers.
    """
    return_mode = _choice("return_mode", return_mode, _RETURN_MODES)
    if opset == "auto":
        opset = _core.newest_opset(target)
    _check_options(opset, return_mode, output_path)
    normalization_mode = _choice("normalization_mode", normalization_mode, _NORMALIZATION_MODES)
    export_mode = _choice("export_mode", export_mode, _EXPORT_MODES)
    state = _choice("state", state, _STATE_MODES)
    functions = _choice("functions", functions, _FUNCTIONS)
    traced = trace(
        fn,
        inputs,
        input_params=input_params,
        double_precision=enable_double_precision,
        given_input_names=input_names,
        given_output_names=output_names,
        inputs_as_nchw=inputs_as_nchw or (),
        outputs_as_nchw=outputs_as_nchw or (),
        state=state,
        params_as_inputs=params_as_inputs,
    )
    if record_primitive_calls_file is not None:
        with open(record_primitive_calls_file, "w", encoding="utf-8") as file:
            file.write(traced.module.text())
    rules = (raise_, normalization_mode, list(without_rules))
    repeats = (functions == "auto", unroll_layers)
    compiled, times = _compile(traced, opset, model_name, rules, target, repeats)
    model = Model(
        compiled,
        traced.module,
        times,
        Report.of(compiled.findings, traced.reader.left_out, traced.reader.source_line),
        state=traced.state,
        parameters=traced.parameters,
        external_data_threshold=NO_EXTERNAL_DATA
        if export_mode == "web"
        else external_data_threshold,
        inline_limit=inline_limit,
        source_locations=source_locations,
    )
    model.report.give(report)
    if verify:
        model.verification = _verified(
            (fn, model, inputs, input_params),
            enable_double_precision=enable_double_precision,
            inputs_as_nchw=inputs_as_nchw,
            outputs_as_nchw=outputs_as_nchw,
            options={
                "opset": opset,
                "raise_": raise_,
                "normalization_mode": normalization_mode,
                "without_rules": without_rules,
                "target": target,
                "functions": functions,
                "unroll_layers": unroll_layers,
            },
        )
    if return_mode == "model":
        return model
    if return_mode == "ir":
        return model.to_ir()
    if return_mode == "proto":
        return model.to_proto()
    assert output_path is not None
    return model.save(output_path)


def _compile(
    traced: Traced,
    opset: int,
    model_name: str,
    rules: tuple[bool, str, list[str]],
    target: str,
    repeats: tuple[bool, int | None],
) -> tuple[_core.Model, dict[str, float]]:
    start = time.perf_counter()
    try:
        compiled = _core.compile(
            traced.module, opset, model_name, *rules, target, lowering.functions(), *repeats
        )
    except ConversionError as error:
        raise _explained(error, traced.reader) from traced.reader.cause_of(error)
    seconds = traced.import_seconds + time.perf_counter() - start
    return compiled, {"trace": traced.trace_seconds, "compile": seconds}


def _verified(what: tuple[Any, ...], **options: Any) -> Verification:
    """Only who wants it loads ONNX Runtime."""
    from .verification.verify import verified

    return verified(*what, **options)


def _explained(error: ConversionError, reader: Reader) -> ConversionError:
    """An error of the compiler with what only Python knows."""
    located = error.with_source_line(reader.source_line(error.source))
    if error.code != "E012":
        return located
    primitive = error.message.split("'")[1]
    why_not = reader.why_not_defined(primitive)
    return located.with_note(f"its own definition {why_not}") if why_not else located


def _check_options(
    opset: int, return_mode: str, output_path: str | os.PathLike[str] | None
) -> None:
    if opset not in _OPSETS:
        raise ConversionError(
            "E011",
            f"opset {opset} is out of range",
            help=f"choose an opset from {_OPSETS[0]} to {_OPSETS[-1]}",
        )
    if return_mode == "file" and output_path is None:
        raise ConversionError(
            "E075", "return_mode 'file' needs a file name", help="give output_path"
        )
    if return_mode in _PACKAGES:
        package(_PACKAGES[return_mode])  # so that a missing one is told before the work


def _choice(option: str, value: str, choices: Sequence[str]) -> Any:
    """One of the choices; as in jax2onnx, capital letters and spaces around it do not matter."""
    found = value.lower().strip()
    if found not in choices:
        raise ConversionError(
            "E075",
            f"{option} {value!r} is unknown",
            help=f"use one of {', '.join(map(repr, choices))}",
        )
    return found

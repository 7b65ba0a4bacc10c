# SPDX-License-Identifier: Apache-2.0
"""jaxport.to_onnx."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from . import _core, _jax, lowering
from ._jax import Reader
from .collector import paused_collector
from .errors import ConversionError
from .inputs import Inputs
from .model import EXTERNAL_DATA_THRESHOLD, INLINE_LIMIT, NO_EXTERNAL_DATA, Model, package
from .parameters import Wanted
from .report import Report, wants_page
from .report import Wanted as WantedReport
from .session import Limits, watched
from .trace import Traced, trace

if TYPE_CHECKING:
    from .verification.results import Verification

_RETURN_MODES = ("proto", "ir", "file", "model")
_PACKAGES = {"ir": "onnx_ir", "proto": "onnx"}  # by return_mode
_EXPORT_MODES = ("standard", "web")
_NORMALIZATION_MODES = ("auto", "prefer_native", "force_decomposed")
_STATE_MODES = ("frozen", "io")
_FUNCTIONS = ("marked", "auto")
_PRECISIONS = ("f32", "f16", "bf16")
_UNSUPPORTED = ("error", "custom_op")
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
    precision: Literal["f32", "f16", "bf16"] = "f32",
    precision_io: bool = False,
    exact: bool = False,
    functions: Literal["marked", "auto"] = "marked",
    on_unsupported: Literal["error", "custom_op"] = "error",
    unroll_layers: int | None = None,
    external_data_threshold: int = EXTERNAL_DATA_THRESHOLD,
    inline_limit: int = INLINE_LIMIT,
    source_locations: bool = True,
    verify: bool = False,
    limits: Limits | None = None,
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
        output_path: where return_mode="file" writes; ORT format where it ends in .ort.
        inputs_as_nchw: positions of image inputs, (N, H, W, C) in the function, that the model
            takes as (N, C, H, W).
        outputs_as_nchw: the same for outputs.
        input_names: names of the model's inputs; by default those of the parameters. Those of
            input_params keep theirs.
        output_names: names of the model's outputs.
        export_mode: "web" writes one file that holds all weights, which is what a browser loads,
            for target "onnxruntime-web" where no other is given;
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
        report: what was raised, and what nearly was and why not: a file name (a page if it ends in
            .html, docs/report.md; JSON if it ends in .json, else text), a function that gets a
            jaxport.Report, or True to print it.
        target: what must run the model. "onnxruntime" is every version of ONNX Runtime that loads
            the opset, "onnxruntime>=1.28" those from 1.28 on, "onnxruntime==1.20" that one,
            "onnxruntime-web" the same in a browser, "openvino" that runtime. Where one of them has
            no kernel for a dtype, the model computes in a wider one. "onnx" uses all that the
            specification allows. docs/targets.md has more.
        precision: "f16" or "bf16" computes in it where the target has good kernels for it and the
            numbers allow it, and stores the weights in it: docs/precision.md.
        precision_io: the model's inputs and outputs of float32 have this dtype, too.
        exact: JAX's numbers also where that costs, such as NaN in maxima: docs/exact.md. Nothing is
            raised then.
        functions: "marked" makes functions of the calls that jaxport.onnx_function marks; "auto"
            also of what the program repeats, such as the layers of a transformer.
        on_unsupported: "error" names everything that has no lowering, at once; "custom_op" makes
            nodes of the domain jaxport.custom of it, which you implement in the runtime
            (docs/custom-ops.md). The report and Model.stats list them.
        unroll_layers: up to so many steps of a scan over large constant weights, such as the layers
            of a transformer, stand one after the other; 0 keeps the loop. By default the target
            decides: docs/benchmarks.md.
        external_data_threshold: tensors of at least this many bytes may go to "<path>.data".
        inline_limit: they go there once the model would have more bytes than this.
        source_locations: keep the user's source lines in the metadata of nodes.
        verify: run the model and fn on the same random inputs, and compare all outputs, as
            jaxport.verify does; Model.verification has what was found. Needs ONNX Runtime.
        limits: what the conversion may take: jaxport.Limits(nodes=…, bytes=…, depth=…, seconds=…).

    Raises:
        ConversionError: with a code, the place in the user's code and what to do next. E100 when
            `verify` finds that the model gives other numbers.
    """
    return_mode = _choice("return_mode", return_mode, _RETURN_MODES)
    export_mode = _choice("export_mode", export_mode, _EXPORT_MODES)
    if export_mode == "web" and target == "onnxruntime":
        target = "onnxruntime-web"
    if opset == "auto":
        opset = _core.newest_opset(target)
    _check_options(opset, return_mode, output_path)
    normalization_mode = _choice("normalization_mode", normalization_mode, _NORMALIZATION_MODES)
    state = _choice("state", state, _STATE_MODES)
    functions = _choice("functions", functions, _FUNCTIONS)
    precision = _choice("precision", precision, _PRECISIONS)
    on_unsupported = _choice("on_unsupported", on_unsupported, _UNSUPPORTED)
    in_one_file = export_mode == "web"
    with watched(limits) as session:
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
            session=session,
        )
        if record_primitive_calls_file is not None:
            with open(record_primitive_calls_file, "w", encoding="utf-8") as file:
                file.write(traced.module.text())
        choices = {
            "opset": opset,
            "model_name": model_name,
            "target": target,
            "raise_": raise_,
            "without_rules": list(without_rules),
            "normalization_mode": normalization_mode,
            "precision": precision,
            "precision_io": precision_io,
            "exact": exact,
            "functions": functions,
            "on_unsupported": on_unsupported,
            "unroll_layers": unroll_layers,
        }
        in_f32 = {**choices, "precision": "f32"}

        def model_by(choices: dict[str, Any]) -> Model:
            compiled, times = _compile(session, traced, choices)
            found = Report.of(
                compiled.findings,
                traced.reader.left_out,
                traced.reader.source_line,
                compiled.custom_ops,
            )
            return Model(
                compiled,
                traced.module,
                times,
                found.with_precision(choices["precision"], compiled.precision),
                state=traced.state,
                parameters=traced.parameters,
                external_data_threshold=NO_EXTERNAL_DATA
                if in_one_file
                else external_data_threshold,
                inline_limit=inline_limit,
                source_locations=source_locations,
                explore=lambda: _core.explore(traced.module, choices, lowering.functions()),
                lines_of=traced.reader.source_lines,
                limits=limits,
                import_seconds=traced.import_seconds,
            )

        model = model_by(choices)
        # JAX is compared with the model in f32, and that with the one in half precision.
        compared = model_by(in_f32) if verify and choices != in_f32 else model
    if compared is not model:
        _require_no_custom_ops(model)
        images = (tuple(inputs_as_nchw or ()), tuple(outputs_as_nchw or ()))
        question = (fn, inputs, input_params, images, enable_double_precision)
        model.report = model.report.with_errors(*_half_errors(model, compared, question))
    is_page = wants_page(report)
    if not is_page:
        model.report.give(report)
    if verify:
        _require_no_custom_ops(model)
        what = (fn, compared, inputs, input_params)
        how: dict[str, Any] = {
            "enable_double_precision": enable_double_precision,
            "inputs_as_nchw": inputs_as_nchw,
            "outputs_as_nchw": outputs_as_nchw,
        }
        model.verification = _verified(
            what,
            **how,
            options=in_f32,
        )
        if is_page:
            model.errors = _layer_errors(what, **how)
    if is_page:
        model.save_report(report)  # type: ignore[arg-type]
    if return_mode == "model":
        return model
    if return_mode == "ir":
        return model.to_ir()
    if return_mode == "proto":
        return model.to_proto()
    assert output_path is not None
    return model.save(output_path)


def _compile(
    session: _core.Session, traced: Traced, choices: dict[str, Any]
) -> tuple[_core.Model, dict[str, float]]:
    start = time.perf_counter()
    try:
        with paused_collector():
            compiled = _core.compile(session, traced.module, choices, lowering.functions())
    except ConversionError as error:
        explained = _repeatable(_explained(error, traced.reader), session)
        raise explained from traced.reader.cause_of(error)
    seconds = traced.import_seconds + time.perf_counter() - start
    return compiled, {"trace": traced.trace_seconds, "compile": seconds}


def _verified(what: tuple[Any, ...], **options: Any) -> Verification:
    """Only who wants it loads ONNX Runtime."""
    from .verification.verify import verified

    return verified(*what, **options)


def _layer_errors(what: tuple[Any, ...], **how: Any) -> tuple[dict[str, Any], ...]:
    from .verification.verify import layer_errors

    return tuple(map(dataclasses.asdict, layer_errors(*what, **how)))


def _half_errors(model: Model, full: Model, question: tuple[Any, ...]) -> tuple[Any, ...]:
    from .precision import errors
    from .verification.cases import question_of

    with _jax.double_precision(question[-1]):
        return errors(model, full, question_of(*question))


def _explained(error: ConversionError, reader: Reader) -> ConversionError:
    """An error of the compiler with what only Python knows."""
    located = error.with_source_lines(reader.source_line)
    if error.code != "E012":
        return located
    primitive = error.message.split("'")[1]
    why_not = reader.why_not_defined(primitive)
    return located.with_note(f"its own definition {why_not}") if why_not else located


def _repeatable(error: ConversionError, session: _core.Session) -> ConversionError:
    """The error of an equation with what repeats it without the user's Python."""
    if not error.equation and error.code != "BUG":
        return error
    kept = session.folder()
    if kept:
        return error.with_note(
            f"to repeat it: jaxport replay {os.path.join(kept, '0-program.jir')}"
        )
    return error.with_note(
        "to repeat it without Python: convert with JAXPORT_DUMP=folder in the environment, "
        "then jaxport replay folder/001/0-program.jir"
    )


def _require_no_custom_ops(model: Model) -> None:
    if not model.report.custom_ops:
        return
    names = ", ".join(dict.fromkeys(finding.rule for finding in model.report.custom_ops))
    raise ConversionError(
        "E103",
        f"a model whose {names} is left to you cannot be verified",
        help="leave verify out, implement it, and run the model on inputs of your own",
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
    if return_mode == "file" and output_path is None:
        raise ConversionError(
            "E075", "return_mode 'file' needs a file name", help="give output_path"
        )
    if return_mode in _PACKAGES:
        package(_PACKAGES[return_mode])  # so that a missing one is told before the work


def _choice(option: str, value: str, choices: Sequence[str]) -> Any:
    """One of the choices; as in jax2onnx, capital letters and spaces around it do not matter."""
    found = str(value).lower().strip()
    if found not in choices:
        raise ConversionError(
            "E075",
            f"{option} {value!r} is unknown",
            help=f"use one of {', '.join(map(repr, choices))}",
        )
    return found

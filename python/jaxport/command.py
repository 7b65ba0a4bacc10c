# SPDX-License-Identifier: Apache-2.0
"""The command jaxport: the C++ program, with what only Python can do."""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

from . import _core
from .errors import ConversionError, first_line

_FAILED = 2  # exit code of an error


def main() -> int:
    """Runs the command line of this process."""
    # Native code does not return to Python between signals: let them end the process.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.path.insert(0, os.getcwd())  # as python -m does, so that a module of the user is found
    functions = (convert, diff_run, check_certificate, ort, report, profile)
    return _core.run_command(
        sys.argv[1:], {function.__name__: _reported(function) for function in functions}
    )


def convert(
    function: str,
    inputs: Sequence[str],
    params: Sequence[str],
    output: str,
    remarks: bool,
    options: dict[str, Any],
    limits: dict[str, Any] | None = None,
) -> int:
    """jaxport convert package.module:function --input … -o model.onnx"""
    from .session import Limits

    options = {**options, "limits": Limits(**(limits or {}))}
    model = _converted(function, inputs, params, options)
    model.save(output)
    times = "  ".join(f"{stage} {seconds:.3f} s" for stage, seconds in model.times.items())
    print(f"{output}  {model.stats()['nodes']:,} nodes  {os.path.getsize(output):,} bytes  {times}")
    if remarks:
        print(model.report)
    return 0


def _converted(
    function: str, inputs: Sequence[str], params: Sequence[str], options: dict[str, Any]
) -> Any:
    """The jaxport.Model of a function that the command line describes."""
    from .api import to_onnx

    fn, named = _described(function, inputs)
    return to_onnx(
        fn,
        list(named.values()),
        input_params=dict(map(parse_param, params)) or None,
        input_names=list(named),
        return_mode="model",
        **options,
    )


def _described(function: str, inputs: Sequence[str]) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The function, and its inputs by name in the order of its parameters."""
    from .names import parameter_names

    fn = find_function(function)
    named = dict(map(parse_input, inputs))
    if len(named) < len(inputs):
        raise ConversionError(
            "E092", "two inputs have one name", help="give each --input a name of its own"
        )
    order = parameter_names(fn, len(named))
    if set(order) != set(named):  # the inputs get other names than the parameters
        order = list(named)
    return fn, {name: named[name] for name in order}


def report(
    program: str,
    output: str,
    data: str,
    inputs: Sequence[str],
    params: Sequence[str],
    options: dict[str, Any],
) -> int:
    """jaxport report m.onnx -o report.html; without data, of a function."""
    from .explorer.data import page_data
    from .explorer.page import write_page

    if data:
        write_page(page_data(data, os.path.basename(program)), output)
    else:
        _converted(program, inputs, params, {**options, "report": output})
    print(f"{output}  {os.path.getsize(output):,} bytes; open it in a browser")
    return 0


def profile(
    program: str,
    report: str,
    runs: int,
    sizes: Sequence[str],
    inputs: Sequence[str],
    params: Sequence[str],
    options: dict[str, Any],
    is_function: bool,
) -> int:
    """jaxport profile m.onnx --report page.html; of a function, with jax.jit beside it."""
    from .profiling import profile as measure

    chosen = dict(map(_parse_size, sizes))
    if is_function:
        fn, named = _described(program, inputs)
        model = _converted(program, inputs, params, options)
        given = dict(map(parse_param, params)) or None
        found = measure(fn, list(named.values()), model, given, sizes=chosen, runs=runs)
    else:
        found = measure(None, None, program, sizes=chosen, runs=runs)
    print(found)
    if report:
        found.save_report(report)
        print(f"{report}  {os.path.getsize(report):,} bytes; open it in a browser")
    return 0


def _parse_size(text: str) -> tuple[str, int]:
    """ "B=8" """
    name, _, size = text.partition("=")
    if not name or not size.isdigit():
        raise ConversionError(
            "E092", f"--size '{text}' cannot be read", help="write name=size, such as B=8"
        )
    return name, int(size)


def diff_run(lhs: str, rhs: str) -> int:
    """jaxport diff --run a.onnx b.onnx"""
    from .comparison import compare_models

    comparison = compare_models(lhs, rhs)
    print(comparison)
    return 0 if comparison.same_values else 1


def check_certificate(model: str, certificate: str) -> int:
    """jaxport check m.onnx --certificate m.verify.json"""
    from .verification.certificate import problem_of

    problem = problem_of(model, certificate)
    print(f"{certificate}: {problem or 'belongs to ' + model}")
    return 1 if problem else 0


def ort(model: str, output: str, operators: str, with_types: bool) -> int:
    """jaxport ort m.onnx -o m.ort --ops m.config"""
    from .ort_format import save_ort, write_operators

    save_ort(model, output)
    print(f"{output}  {os.path.getsize(output):,} bytes")
    if operators:
        write_operators(output, operators, with_types=with_types)
    return 0


def find_function(text: str) -> Callable[..., Any]:
    """ "package.module:function" or "package.module:object.method"."""
    module_name, _, path = text.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ImportError as error:
        raise ConversionError(
            "E092",
            f"module '{module_name}' cannot be imported: {first_line(error)}",
            help="write package.module:function; the current folder is searched first",
        ) from error
    for name in path.split("."):
        if not hasattr(found, name):
            names = [n for n, value in vars(found).items() if callable(value) and n[0] != "_"]
            raise ConversionError(
                "E092",
                f"'{module_name}' has no '{path}'",
                help=f"what can be called there: {', '.join(sorted(names)) or 'nothing'}",
            )
        found = getattr(found, name)
    return found  # type: ignore[no-any-return]


def parse_input(text: str) -> tuple[str, Any]:
    """ "x:Bx28x28x3" or "x:Bx4:int32": the name of an input, and its shape or shape and dtype."""
    import jax

    name, *parts = text.split(":")
    if len(parts) not in (1, 2) or not name.isidentifier():
        raise ConversionError(
            "E092",
            f"--input '{text}' cannot be read",
            help="write name:shape or name:shape:dtype, such as x:Bx28x28x3 or x:Bx4:int32; "
            "sizes with an x in their name are separated by commas",
        )
    sizes = parts[0].split("," if "," in parts[0] else "x") if parts[0] else []
    shape = tuple(int(size) if size.isdecimal() else size for size in sizes)
    if len(parts) == 1:
        return name, shape
    try:
        dtype = jax.numpy.dtype(parts[1])
    except TypeError as error:
        raise ConversionError(
            "E092",
            f"--input '{text}' names no dtype: {first_line(error)}",
            help="use a name such as float32, bfloat16, int32 or bool",
        ) from error
    return name, jax.ShapeDtypeStruct(shape, dtype)  # type: ignore[no-untyped-call]


def parse_param(text: str) -> tuple[str, Any]:
    """ "deterministic=true": a keyword argument of the function and its value."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise ConversionError(
            "E092",
            f"--params '{text}' cannot be read",
            help="write name=value, such as deterministic=true or scale=0.5",
        )
    try:
        return name, json.loads(value.lower() if value in ("True", "False") else value)
    except json.JSONDecodeError:
        return name, value


def _reported(run: Callable[..., int]) -> Callable[..., int]:
    """Errors of jaxport are printed as the C++ program prints them."""

    def wrapped(*args: Any, **keywords: Any) -> int:
        try:
            code = run(*args, **keywords)
            sys.stdout.flush()
            return code
        except ConversionError as error:
            print(error, file=sys.stderr)
        except Exception:  # of the user's module or function: where it happened is what helps
            import traceback

            traceback.print_exc()
        return _FAILED

    return wrapped

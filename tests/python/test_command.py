# SPDX-License-Identifier: Apache-2.0
"""The command jaxport: Python functions on the command line, and what the C++ program does."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys

import jax.numpy as jnp
import onnx
import pytest

import jaxport
from jaxport import _core, command, runtime

MODULE = """
import jax
import jax.numpy as jnp

def net(x, table):
    return jax.nn.relu(x) + table[0]

class Scale:
    def __call__(self, x):
        return 2.0 * x

scale = Scale()
number = 17
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the module `program`, which the command is run in."""
    (tmp_path / "program.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("program", None)


def run(*arguments: str, code: int = 0) -> str:
    """Standard output and error of `python -m jaxport`."""
    process = subprocess.run(
        [sys.executable, "-m", "jaxport", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )
    assert process.returncode == code, process.stdout
    return process.stdout


def test_choices_have_the_names_and_defaults_of_to_onnx():
    parameters = inspect.signature(jaxport.to_onnx).parameters
    given = {name: parameters[name].default for name in _core.default_choices()}
    assert {**given, "without_rules": list(given["without_rules"])} == _core.default_choices()


def test_choices_of_the_command_line_reach_python():
    flags = [
        "--opset",
        "auto",
        "--no-raise",
        "--without",
        "rope,norm",
        "--functions",
        "auto",
        "--unroll-layers",
        "3",
        "--precision",
        "f16",
        "--exact",
    ]
    seen = {}

    def convert(options, **others):
        seen.update(options)
        return 0

    arguments = ["convert", "m:f", "-o", "m.onnx", *flags]
    assert _core.run_command(arguments, {"convert": convert}) == 0
    assert (
        seen.items()
        >= {
            "opset": "auto",
            "raise_": False,
            "without_rules": ["rope", "norm"],
            "functions": "auto",
            "unroll_layers": 3,
            "precision": "f16",
            "exact": True,
        }.items()
    )


def test_a_function_of_a_module(folder):
    inputs = ("--input", "x:Bx4", "--input", "table:3x4:float32")
    text = run("convert", "program:net", *inputs, "-o", "m.onnx", "--opset", "21", "--name", "net")
    assert text.startswith("m.onnx  ")
    model = onnx.load("m.onnx")
    assert model.graph.name == "net"
    assert model.opset_import[0].version == 21
    assert [value.name for value in model.graph.input] == ["x", "table"]
    assert [dim.dim_param for dim in model.graph.input[0].type.tensor_type.shape.dim] == ["B", ""]


def test_the_c_plus_plus_commands_are_there(folder):
    jaxport.to_onnx(jnp.tanh, [(3,)], return_mode="file", output_path="m.onnx")
    assert '"Tanh:3"' in run("expect", "m.onnx")
    assert "nodes" in run("stats", "m.onnx")
    assert "convert" in run("--help")
    assert "E052" in run("text", "none.onnx", code=2)


def test_diff_run(folder):
    for name, fn in {"a": jnp.tanh, "b": jnp.sin}.items():
        jaxport.to_onnx(fn, [("B", 3)], return_mode="file", output_path=f"{name}.onnx")
    text = run("diff", "--run", "a.onnx", "a.onnx")
    assert text.endswith("the values agree\n")
    text = run("diff", "--run", "a.onnx", "b.onnx", code=1)
    assert "nodes Tanh" in text
    assert text.endswith("THE VALUES DIFFER\n")


def convert(*inputs: str, function: str = "program:net", params: tuple[str, ...] = (), **options):
    given = {"enable_double_precision": False, **options}
    return command.convert(function, inputs, params, "m.onnx", False, given)


def graph_inputs() -> dict[str, tuple[int, list[int | str]]]:
    result = {}
    for value in onnx.load("m.onnx").graph.input:
        tensor = value.type.tensor_type
        sizes = [dim.dim_param or dim.dim_value for dim in tensor.shape.dim]
        result[value.name] = (tensor.elem_type, sizes)
    return result


def test_inputs_are_found_by_the_name_of_the_parameter(folder):
    assert convert("table:3x4:int32", "x:Bx4") == 0
    assert graph_inputs() == {
        "x": (onnx.TensorProto.FLOAT, ["B", 4]),
        "table": (onnx.TensorProto.INT32, [3, 4]),
    }


def test_other_names_count_by_position(folder):
    assert convert("image:Bx4", "rows:3x4") == 0
    assert list(graph_inputs()) == ["image", "rows"]


def test_scalars_expressions_and_long_names(folder):
    assert convert("x::float16", function="program:scale") == 0
    assert graph_inputs() == {"x": (onnx.TensorProto.FLOAT16, [])}
    assert convert("x:2*max_len,4", function="program:scale") == 0
    assert graph_inputs() == {"x": (onnx.TensorProto.FLOAT, ["2*max_len", 4])}


def test_double_precision(folder):
    assert convert("x:3", function="program:scale", enable_double_precision=True) == 0
    assert graph_inputs() == {"x": (onnx.TensorProto.DOUBLE, [3])}


@pytest.mark.parametrize(
    ("function", "inputs", "message"),
    [
        ("nothing.here:net", (), "module 'nothing.here' cannot be imported: No module named"),
        ("program:nest", (), "'program' has no 'nest'"),
        ("program:net.inner", (), "'program' has no 'net.inner'"),
        ("program:net", ("Bx4",), "--input 'Bx4' cannot be read"),
        ("program:net", ("x:Bx4:float17", "table:3"), "--input 'x:Bx4:float17' names no dtype"),
        ("program:net", ("x:3", "x:4"), "two inputs have one name"),
    ],
)
def test_what_cannot_be_used(folder, function, inputs, message):
    with pytest.raises(jaxport.ConversionError, match="E092") as caught:
        convert(*inputs, function=function)
    assert message in str(caught.value)


def test_what_is_not_a_function_is_refused(folder):
    with pytest.raises(jaxport.ConversionError, match="E070"):
        convert("x:3", function="program:number")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("deterministic=true", True),
        ("deterministic=False", False),
        ("scale=0.5", 0.5),
        ("axis=-1", -1),
        ("mode=linear", "linear"),
    ],
)
def test_values_of_params(text, value):
    assert command.parse_param(text) == (text.split("=")[0], value)


def test_params_that_cannot_be_read():
    with pytest.raises(jaxport.ConversionError, match="E092"):
        command.parse_param("deterministic")


def test_an_error_has_its_code_and_no_traceback(folder):
    text = run("convert", "program:net", "--input", "x:Bx4", "-o", "m.onnx", code=2)
    assert text.startswith("error[JXP-E070]")
    assert "Traceback" not in text
    assert not (folder / "m.onnx").exists()


@pytest.mark.parametrize("words", [["profile"], ["diff", "--run", "text.onnx"]], ids=str)
def test_a_model_that_onnx_runtime_does_not_load(folder, words):
    (folder / "text.onnx").write_text("no model")
    text = run(*words, "text.onnx", code=2)
    assert text.startswith("error[JXP-E")
    assert "Traceback" not in text


def test_a_model_that_onnx_runtime_does_not_load_has_its_code(tmp_path):
    with pytest.raises(jaxport.ConversionError, match=r"JXP-E114.*missing\.onnx"):
        runtime.open_given(tmp_path / "missing.onnx")

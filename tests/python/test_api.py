# SPDX-License-Identifier: Apache-2.0
"""jaxport.to_onnx and jaxport.allclose as a user calls them."""

from __future__ import annotations

import inspect
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest

import jaxport
from jaxport import runtime

# The arguments of jax2onnx 0.17, in its order.
ARGUMENTS = """fn inputs input_params model_name opset enable_double_precision
    record_primitive_calls_file return_mode output_path inputs_as_nchw outputs_as_nchw input_names
    output_names export_mode normalization_mode"""


def scale(x, factor):
    return {"scaled": x * factor, "sum": x.sum()}


def in_new_process(code):
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return result.stdout.strip()


def test_arguments_are_those_of_jax2onnx():
    parameters = inspect.signature(jaxport.to_onnx).parameters
    names = ARGUMENTS.split()
    assert list(parameters)[: len(names)] == names
    assert [parameters[name].kind for name in names] == [
        inspect.Parameter.POSITIONAL_OR_KEYWORD if i < 5 else inspect.Parameter.KEYWORD_ONLY
        for i in range(len(names))
    ]
    assert all(parameters[name].default is not inspect._empty for name in list(parameters)[2:])


def test_import_is_light():
    loaded = in_new_process(
        "import sys, jaxport; jaxport.to_onnx; "
        "print(*sorted({'flax', 'equinox', 'onnx', 'onnxruntime'} & set(sys.modules)))"
    )
    assert loaded == ""


def test_import_is_quick():
    seconds = in_new_process(
        "import time, jax; start = time.process_time(); import jaxport; "
        "print(time.process_time() - start)"
    )
    assert float(seconds) < 0.05


def test_a_proto_is_the_default():
    model = jaxport.to_onnx(scale, [("B", 3), ()], model_name="scale", opset=21)
    assert isinstance(model, onnx.ModelProto)
    assert model.graph.name == "scale"
    assert model.producer_name == "jaxport"
    assert [(o.domain, o.version) for o in model.opset_import] == [("", 21)]
    assert [i.name for i in model.graph.input] == ["x", "factor"]
    assert [o.name for o in model.graph.output] == ["scaled", "sum"]
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "B"


def test_file_mode_writes_and_returns_the_path(tmp_path):
    path = tmp_path / "model.onnx"
    returned = jaxport.to_onnx(scale, [(3,), ()], return_mode="file", output_path=path)
    assert returned == str(path)
    onnx.checker.check_model(str(path), full_check=True)
    assert [p.name for p in tmp_path.iterdir()] == ["model.onnx"]


def test_model_mode_gives_a_model(tmp_path):
    model = jaxport.to_onnx(scale, [(3,), ()], return_mode="model")
    assert isinstance(model, jaxport.Model)
    assert "Mul" in model.text()
    assert "func @scale" in model.jir()
    assert model.stats()["ops"]["Mul"] == 1
    assert model.stats()["nodes"] == len(model.to_proto().graph.node)
    assert set(model.times) == {"trace", "compile"}
    assert list(model.stage_times)[:4] == ["import", "axis", "raise", "lower"]
    model.save(tmp_path / "m.onnx")
    assert set(model.times) == {"trace", "compile", "write"}
    assert (tmp_path / "m.onnx").read_bytes() == model.to_bytes()


@pytest.mark.parametrize("limit", [2**30, 100], ids=["in memory", "through a file"])
def test_ir_mode_gives_a_model_of_onnx_ir(limit):
    onnx_ir = pytest.importorskip("onnx_ir", reason="make test-jax2onnx installs onnx_ir")
    weights = np.arange(4096, dtype=np.float32)
    fn, inputs = (lambda x: x + weights), [("B", 4096)]
    model = jaxport.to_onnx(fn, inputs, return_mode="ir", inline_limit=limit)
    assert isinstance(model, onnx_ir.Model)
    assert [node.op_type for node in model.graph] == ["Add"]
    x = np.ones((2, 4096), np.float32)
    (output,) = runtime.run(runtime.open_session(onnx_ir.to_proto(model)), [x]).values()
    assert np.array_equal(output, fn(x))


@pytest.mark.parametrize(("mode", "name"), [("ir", "onnx-ir"), ("proto", "onnx")])
def test_a_package_that_is_missing_is_named(monkeypatch, mode, name):
    monkeypatch.setitem(sys.modules, name.replace("-", "_"), None)
    with pytest.raises(jaxport.ConversionError, match=f"pip install {name},") as info:
        jaxport.to_onnx(pytest.fail, [(3,)], return_mode=mode)
    assert info.value.code == "E075"
    assert jaxport.to_onnx(scale, [(3,), ()], return_mode="model").to_bytes()


def test_names_of_modes_may_have_capital_letters():
    model = jaxport.to_onnx(scale, [(3,), ()], return_mode="Model ", export_mode="WEB")
    assert isinstance(model, jaxport.Model)


def test_external_data_above_a_size(tmp_path):
    weights = np.arange(4096, dtype=np.float32)
    path = tmp_path / "m.onnx"
    jaxport.to_onnx(
        lambda x: x + weights,
        [("B", 4096)],
        return_mode="file",
        output_path=path,
        external_data_threshold=1000,
        inline_limit=2000,
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx", "m.onnx.data"]
    (output,) = runtime.run(runtime.open_session(path), [np.ones((2, 4096), np.float32)]).values()
    assert np.array_equal(output[1], weights + 1)


def test_source_locations_can_be_left_out():
    def metadata(**options):
        model = jaxport.to_onnx(lambda x: jnp.tanh(x), [(3,)], **options)
        return {prop.value for node in model.graph.node for prop in node.metadata_props}

    assert any("test_api.py" in value for value in metadata())
    assert not any("test_api.py" in value for value in metadata(source_locations=False))


def test_double_precision_leaves_jax_alone():
    model = jaxport.to_onnx(jnp.sin, [("B",)], enable_double_precision=True)
    assert model.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.DOUBLE
    assert not jax.config.jax_enable_x64
    assert jnp.sin(np.float64(1)).dtype == jnp.float32


@pytest.mark.parametrize(
    "entry",
    [
        (2, 3),
        [2, 3],
        jax.ShapeDtypeStruct((2, 3), jnp.float32),
        np.zeros((2, 3), np.float32),
        np.zeros((2, 3)),
        jnp.zeros((2, 3)),
    ],
    ids=["tuple", "list", "struct", "numpy", "float64", "jax"],
)
def test_inputs_in_all_their_forms(entry):
    (tensor,) = jaxport.to_onnx(jnp.tanh, [entry]).graph.input
    assert tensor.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    assert [d.dim_value for d in tensor.type.tensor_type.shape.dim] == [2, 3]


def test_inputs_may_be_trees():
    model = jaxport.to_onnx(lambda t: t["a"] + t["b"][0], [{"a": ("B", 3), "b": [(3,)]}])
    assert [i.name for i in model.graph.input] == ["t.a", "t.b.0"]


def test_threads_convert_at_once():
    functions = [lambda x, n=n: x * n for n in range(4)]

    def convert(n):
        return jaxport.to_onnx(functions[n], [("B",)]).SerializeToString()

    expected = [convert(n) for n in range(4)]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(convert, range(4))) == expected


def test_allclose_agrees_where_numbers_do(tmp_path):
    path = jaxport.to_onnx(
        scale, [("B", 3), ()], return_mode="file", output_path=tmp_path / "m.onnx"
    )
    good, message = jaxport.allclose(scale, path, [("B", 3), ()], rtol=1e-5, atol=1e-6)
    assert good, message
    good, message = jaxport.allclose(scale, path, [np.ones((4, 3)), np.float32(2)])
    assert good, message


def test_allclose_names_the_worst_value():
    model = jaxport.to_onnx(lambda x: {"a": x, "b": x * 2}, [(2, 3)], return_mode="model")

    def other(x):
        return {"a": x, "b": (x * 2).at[1, 2].add(1.0)}

    good, message = jaxport.allclose(other, model, [np.zeros((2, 3))], rtol=1e-5, atol=1e-5)
    assert not good
    assert message.startswith("output 'b' differs: at (1, 2) 1.0 in JAX, 0.0 in the model")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda x: x[:1], "output 'output' has another shape: (1,) in JAX, (2,) in the model"),
        (lambda x: x.astype(jnp.int32), "output 'output' has another dtype: int32 in JAX, float32"),
        (lambda x: x / 0 * 0, "output 'output' differs: at (0) nan in JAX, 1.0 in the model"),
        (lambda x: (x, x), "JAX gives 2 results, the model 1"),
    ],
    ids=["shape", "dtype", "nan", "count"],
)
def test_allclose_finds_other_differences(other, message):
    model = jaxport.to_onnx(lambda x: x + 0.5, [(2,)])
    good, text = jaxport.allclose(other, model, [np.full(2, 0.5)])
    assert not good
    assert text.startswith(message)


def test_allclose_counts_inputs():
    model = jaxport.to_onnx(lambda x: x + 0.5, [(2,)])
    for inputs in ([(2,), (2,)], []):
        good, message = jaxport.allclose(lambda *xs: 0, model, inputs)
        assert not good
        assert message == f"the model has 1 inputs, {len(inputs)} were given"


def test_the_package_has_a_version_and_lists_its_names():
    from importlib.metadata import version

    assert jaxport.__version__ == version("jaxport")
    assert set(jaxport.__all__) <= set(dir(jaxport))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = jaxport.nothing


def test_the_command_is_installed():
    from importlib.metadata import files

    assert any(str(file).endswith("bin/jaxport") for file in files("jaxport"))


def test_passes_are_counted_and_timed():
    w, b = np.ones((3, 4), np.float32), np.arange(4, dtype=np.float32)
    model = jaxport.to_onnx(lambda x: x @ w + b, [(2, 3)], return_mode="model")
    passes = model.stats()["passes"]
    assert passes["make_gemms"]["changes"] == 1
    assert passes["merge_slices"]["changes"] == 0
    assert all(count["seconds"] > 0 for count in passes.values())
    assert sum(count["seconds"] for count in passes.values()) < model.stage_times["passes"]

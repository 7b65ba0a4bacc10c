# SPDX-License-Identifier: Apache-2.0
"""Bad input gets one clear error and leaves no file behind."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax import lax
from jax.extend.core import Primitive

import jaxport


def error_of(fn, inputs, **options):
    with pytest.raises(jaxport.ConversionError) as caught:
        jaxport.to_onnx(fn, inputs, **options)
    error = caught.value
    assert str(error).startswith(f"error[JXP-{error.code}]: {error.message}")
    assert error.message[:1].islower() or error.message.startswith("JAX")
    assert not error.message.endswith(".")
    return error


def unknown(name):
    """A primitive of the user's own that nobody has told jaxport about."""
    primitive = Primitive(name)
    primitive.def_abstract_eval(lambda x: x)
    return primitive.bind


router = unknown("router")
tangle = unknown("tangle")
knot = unknown("knot")
weave = unknown("weave")


def test_unknown_primitives_are_listed_at_once():
    def fn(x):
        values = router(x)
        return values, tangle(x.reshape(4, 2))

    error = error_of(fn, [(8,)])
    assert error.code == "E012"
    assert "router" in error.message
    assert "tangle" in str(error)
    line = fn.__code__.co_firstlineno + 1
    assert f"test_errors.py:{line} in " in error.source
    assert "values = router(x)" in str(error)
    assert "f32[8]" in error.equation


def test_what_the_first_problem_hides_is_listed():
    """In branches, in loops, behind a complex number, behind parameters that are refused."""

    def body(carry, x):
        return knot(carry), x

    def fn(x):
        turned = weave(lax.complex(x, x))
        chosen = lax.cond(x[0] > 0, router, tangle, x)
        return turned, chosen, lax.scan(body, x, x)

    error = error_of(fn, [(8,)])
    assert error.code == "E012"
    assert error.message == "primitive 'weave' has no form for complex numbers"
    assert f"test_errors.py:{fn.__code__.co_firstlineno + 1} in " in error.source
    assert "turned = weave(lax.complex(x, x))" in str(error)
    lines = str(error).splitlines()
    first = fn.__code__.co_firstlineno
    at = next(i for i, line in enumerate(lines) if f"test_errors.py:{first + 2} in " in line)
    assert lines[at].startswith("  also at ")
    assert lines[at].endswith("  chosen = lax.cond(x[0] > 0, router, tangle, x)")
    assert sorted(lines[at + 1 : at + 3]) == ["    router (1 use)", "    tangle (1 use)"]
    knot_line = body.__code__.co_firstlineno + 1
    at = next(i for i, line in enumerate(lines) if f"test_errors.py:{knot_line} in " in line)
    assert lines[at + 1] == "    knot (1 use)"


def test_refused_parameters_do_not_hide_what_is_missing(monkeypatch):
    monkeypatch.setitem(jaxport.decompose._registered, "router", lambda x: jnp.zeros(1 // 0))
    error = error_of(lambda x: (router(x), tangle(x), tangle(-x)), [(8,)])
    assert error.code == "E077"
    assert "ZeroDivisionError" in error.message
    assert isinstance(error.__cause__, ZeroDivisionError)
    assert "also at " in str(error)
    assert "\n    tangle (2 uses)\n" in str(error)
    assert "router(x)" in str(error)


def test_a_decomposition_that_uses_itself_names_the_line(monkeypatch):
    monkeypatch.setitem(jaxport.decompose._registered, "router", router)
    error = error_of(lambda x: (router(x), tangle(x)), [(8,)])
    assert (error.code, error.message) == (
        "E077",
        "the decomposition of primitive 'router' uses itself",
    )
    assert "test_errors.py:" in error.source
    assert "\n    tangle (1 use)\n" in str(error)


def test_what_no_result_needs_is_not_missing():
    def fn(x):
        tangle(x)
        weave(lax.complex(x, x))
        return x * 2

    jaxport.to_onnx(fn, [(8,)])


def test_a_primitive_inside_a_library_names_both_lines(tmp_path, monkeypatch):
    packages = tmp_path / "site-packages"
    packages.mkdir()
    (packages / "knotlib.py").write_text("def tied(bind, x):\n    return bind(x) + 1\n")
    monkeypatch.syspath_prepend(packages)
    tied = importlib.import_module("knotlib").tied

    def fn(x):
        return tied(tangle, x)

    error = error_of(fn, [(8,)])
    assert f"test_errors.py:{fn.__code__.co_firstlineno + 1} in " in error.source
    assert ":  return tied(tangle, x)\n" in str(error)
    assert "\n  through knotlib.py:2 in tied\n" in str(error)

    def both(x):
        first = router(x)
        return first + tied(tangle, x) + tied(tangle, -x)

    error = error_of(both, [(8,)])
    assert "\n    tangle (2 uses), through knotlib.py:2 in tied\n" in str(error)


def test_everything_that_is_refused_is_told_at_once():
    """What only the stages find too, each with its reason and its way out."""

    def fn(x):
        first = router(x)
        second = lax.approx_max_k(x, 2, aggregate_to_topk=False)[0].sum()
        third = jax.pure_callback(np.sin, x, x)
        return first + second + third

    error = error_of(fn, [(8,)])
    first, text = fn.__code__.co_firstlineno, str(error)
    assert f"test_errors.py:{first + 1} in " in error.source
    for line, reason in (
        (2, "approx_top_k (1 use): primitive 'approx_top_k'"),
        (3, "pure_callback"),
    ):
        place = text.index(f"also at test_errors.py:{first + line} in ")
        assert reason in text[place:]


@pytest.mark.skipif(not hasattr(jax, "new_ref"), reason="an older JAX")
def test_a_type_without_a_counterpart_names_the_line():
    def fn(x):
        place = jax.new_ref(x)
        return place[...]

    error = error_of(fn, [(8,)])
    assert error.code == "E076"
    assert f"test_errors.py:{fn.__code__.co_firstlineno + 1} in " in error.source
    assert "place = jax.new_ref(x)" in str(error)


REFUSED = {
    "approx_top_k": (lambda x: lax.approx_max_k(x, 2, aggregate_to_topk=False), [(8,)]),
    "tangle": (tangle, [(3, 3)]),
}


@pytest.mark.parametrize("word", REFUSED)
def test_what_cannot_be_converted_is_named(word):
    fn, inputs = REFUSED[word]
    error = error_of(fn, inputs)
    assert error.code in ("E012", "E013")
    assert word in str(error)
    assert error.help


def test_what_is_missing_inside_a_loop_names_its_line():
    def body(carry, x):
        values = router(x)
        return carry + values, values

    error = error_of(lambda xs: lax.scan(body, jnp.zeros(8), xs), [("T", 8)])
    assert error.code == "E012"
    assert f"test_errors.py:{body.__code__.co_firstlineno + 1} in " in error.source
    assert "router" in error.equation


DROPOUT = nnx.Dropout(0.5, rngs=nnx.Rngs(0))
TRACING = {
    "give size=": (jnp.nonzero, [("B",)]),
    "give size= to nonzero": (jnp.unique, [(4,)]),
    "jnp.where": (lambda x: x[x > 0], [(4,)]),
    "make the number a constant": (lambda x, n: jnp.zeros(n) + x, [(3,), ()]),
    'constraints=["B >= 5"]': (lambda x: x * 2 if x.shape[0] > 4 else x, [("B",)]),
    'constraints=["B <= T"]': (lambda x, y: x if x.shape[0] <= y.shape[0] else y, [("B",), ("T",)]),
    "such as '4*B'": (lambda x: x.reshape(-1, 4), [("B", 3)]),
    "lax.fori_loop": (lambda x: sum(x[i] for i in range(x.shape[0])), [("B",)]),
    "a symbolic size stands where": (lambda x: np.zeros(x.shape[0]), [("B",)]),
    "give the module itself": (lambda x: DROPOUT(x), [(3,)]),
    "the same name": (lambda x, y: x + y, [("B",), ("T",)]),
    "the error of JAX above": (lambda x, y: x @ y, [(3,), (4,)]),
}


@pytest.mark.parametrize("advice", TRACING)
def test_errors_of_tracing_say_the_way_out(advice):
    fn, inputs = TRACING[advice]
    error = error_of(fn, inputs)
    assert error.code == "E074"
    assert advice in error.help


def test_a_constraint_from_the_advice_decides():
    (size,) = jax.export.symbolic_shape("B", constraints=["B >= 5"])
    jaxport.to_onnx(lambda x: x * 2 if x.shape[0] > 4 else x, [jax.ShapeDtypeStruct((size,), "f4")])


def test_a_shard_map_over_several_devices():
    script = """
import jax, jaxport, numpy as np
from jax.sharding import Mesh, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()), ("i",))
fn = jax.shard_map(lambda x: x * 2, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
try:
    jaxport.to_onnx(fn, [(4,)])
except jaxport.ConversionError as error:
    print(error.code, error.message)
"""
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    result = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **flags},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "E013 shard_map over 2 devices" in result.stdout


def test_a_function_that_does_not_trace():
    def fn(x, flag):
        return x + 1 if flag > 0 else x

    error = error_of(fn, [("B", 3), ()])
    assert error.code == "E074"
    assert "TracerBoolConversionError" in error.message
    assert "called with: x: float32[B,3], flag: float32[]" in str(error)
    assert f"test_errors.py:{fn.__code__.co_firstlineno + 1}" in error.source
    assert "if flag > 0" in str(error)
    assert isinstance(error.__cause__, jax.errors.TracerBoolConversionError)


def test_a_shape_name_used_inconsistently():
    error = error_of(lambda x, y: x + y, [("B", 3), ("T", 3)])
    assert error.code == "E074"
    assert "x: float32[B,3], y: float32[T,3]" in str(error)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([(3,)], "inputs has 1 entries, which do not fit add(x, y): missing"),
        ([(3,), (3,), (3,)], "inputs has 3 entries, which do not fit add(x, y): too many"),
        ((3, 4), "entry 0 of inputs holds 3, which describes no array"),
        ([(3,), {"a": "B"}], "entry 1 of inputs holds 'B', which describes no array"),
        ("B", "inputs is a str, not a list"),
        (None, "inputs is a NoneType, not a list"),
    ],
)
def test_wrong_inputs_are_refused(inputs, message):
    def add(x, y):
        return x + y

    error = error_of(add, inputs)
    assert error.code == "E070"
    assert error.message.startswith(message)


@pytest.mark.parametrize("size", ["2*", "B C", "", "B,C", "...", "1.5", -3])
def test_wrong_sizes_are_refused(size):
    error = error_of(jnp.tanh, [(3, size)])
    assert error.code == "E071"
    assert error.message.startswith(f"size {size!r} in entry 0 of inputs cannot be used: ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input_names": ["a", "b"]}, "input_names has 2 names, 1 are needed"),
        ({"output_names": []}, "output_names has 0 names, 1 are needed"),
        ({"input_names": [""]}, "input_names holds an empty name"),
        ({"output_names": ["x"]}, "output_names holds 'x', the name of an input"),
    ],
)
def test_wrong_names_are_refused(options, message):
    error = error_of(lambda x: -x, [(3,)], **options)
    assert error.code == "E072"
    assert error.message == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inputs_as_nchw": [1]}, "inputs_as_nchw holds 1, but there are 1 arrays"),
        ({"inputs_as_nchw": [0]}, "inputs_as_nchw holds 0, an array of rank 3 instead of 4"),
        ({"outputs_as_nchw": [-2]}, "outputs_as_nchw holds -2, but there are 1 arrays"),
        ({"outputs_as_nchw": [0]}, "outputs_as_nchw holds 0, an array of rank 3 instead of 4"),
    ],
)
def test_images_that_are_none(options, message):
    error = error_of(jnp.tanh, [(3, 4, 5)], **options)
    assert error.code == "E073"
    assert error.message == message


@pytest.mark.parametrize("opset", [0, 15, 27])
def test_opset_out_of_range(opset):
    error = error_of(jnp.tanh, [(3,)], opset=opset)
    assert error.code == "E011"
    assert "16 to 26" in error.help


@pytest.mark.parametrize(
    "options",
    [{"return_mode": "text"}, {"return_mode": "file"}, {"normalization_mode": "native"}],
    ids=str,
)
def test_options_that_are_unknown_or_lack_something(options):
    assert error_of(jnp.tanh, [(3,)], **options).code == "E075"


@pytest.mark.parametrize(
    ("options", "help"),
    [
        ({"exact": "yes"}, "give True or False"),
        ({"raise_": None}, "give True or False"),
        ({"opset": 17.0}, "give a whole number"),
        ({"unroll_layers": 10**30}, "give a whole number or None"),
        ({"model_name": 5}, "give a text"),
        ({"model_name": ""}, "a graph of ONNX has a name"),
        ({"without_rules": [5]}, "give a list of texts"),
        ({"functions": None}, "use one of"),
        ({"limits": {"nodes": 3}}, "give jaxport.Limits"),
    ],
    ids=str,
)
def test_options_of_another_type(options, help):
    error = error_of(jnp.tanh, [(3,)], **options)
    assert error.code == "E075"
    assert help in error.help


def test_a_folder_that_does_not_exist(tmp_path):
    path = tmp_path / "missing" / "m.onnx"
    error = error_of(jnp.tanh, [(3,)], return_mode="file", output_path=path)
    assert error.code == "E051"
    assert list(tmp_path.iterdir()) == []


def test_a_conversion_that_fails_writes_nothing(tmp_path):
    error_of(
        tangle,
        [(8,)],
        return_mode="file",
        output_path=tmp_path / "m.onnx",
    )
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_no_file(tmp_path):
    code = textwrap.dedent(
        f"""
        import resource, signal, numpy as np, jaxport
        weights = np.ones(1 << 20, np.float32)
        model = jaxport.to_onnx(lambda x: x + weights, [(1 << 20,)], return_mode="model")
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
        try:
            model.save({str(tmp_path / "m.onnx")!r})
        except jaxport.ConversionError as error:
            print(error.code)
        """
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert result.stdout.strip() == "E051"
    assert list(tmp_path.iterdir()) == []


def test_something_that_cannot_be_called():
    assert error_of(3, [(3,)]).code == "E070"


@pytest.mark.parametrize("result", [None, (), {}])
def test_a_function_without_results(result):
    error = error_of(lambda x: result, [(3,)])
    assert error.code == "E081"

# SPDX-License-Identifier: Apache-2.0
"""jaxport.verify: right models pass at little cost; of wrong ones the first equation is named."""

from __future__ import annotations

import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import onnx
import pytest
from jax import lax

import jaxport
from jaxport import command, lowering, runtime
from jaxport.verification import cases, tolerances
from jaxport.verification.tolerances import TOLERANCES, histogram, near, ulps
from support.planted_programs import PROGRAMS

FIELDS = '{"format": %s, "model_sha256": "", "external_sha256": 0}'  # of a certificate
DEEP = pytest.param("[" * 100_000, id="deep")


def weights(*shape):
    return jnp.asarray(np.random.default_rng(0).normal(size=shape).astype(np.float32))


def network(x):
    hidden = x @ weights(8, 8)
    bent = jnp.tanh(hidden)
    return jax.nn.softmax(bent, axis=-1), bent.sum(axis=0)


def model_of(fn, inputs, **options):
    return jaxport.to_onnx(fn, inputs, **options)


def with_op(model, old, new):
    """The model with another op in place of the only one of a name, wherever it stands."""
    changed = 0

    def walk(nodes):
        nonlocal changed
        for node in nodes:
            if node.op_type == old:
                node.op_type, changed = new, changed + 1
            for attr in node.attribute:
                walk(attr.g.node)

    walk(model.graph.node)
    for function in model.functions:
        walk(function.node)
    assert changed == 1
    return model


def line(text):
    """Where a line of this file is, as a report names it."""
    with open(__file__, encoding="utf-8") as file:
        (number,) = [i for i, found in enumerate(file, 1) if found.strip() == text]
    return f"test_verify.py:{number} in "


# --- all is well


@pytest.fixture
def counted(monkeypatch):
    """How often JAX and the model run."""
    runs = {"jax": 0, "model": 0, "sessions": 0}

    def count(owner, name, what):
        original = getattr(owner, name)

        def wrapped(*arguments, **keywords):
            runs[what] += 1
            return original(*arguments, **keywords)

        monkeypatch.setattr(owner, name, wrapped)

    count(cases.Case, "jax_results", "jax")
    count(runtime, "run_named", "model")
    count(runtime, "open_session", "sessions")
    return runs


@pytest.mark.parametrize(("shape", "times"), [((4, 8), 1), (("B", 8), 2)])
def test_a_right_model_costs_one_run_of_each_at_each_size(counted, shape, times):
    found = jaxport.verify(network, model_of(network, [shape]), [shape])
    assert found.verdict == "same"
    assert found.place is None
    assert found.replay is None
    assert counted == {"jax": times, "model": times, "sessions": 1}
    assert (found.model_runs, found.jax_runs) == (times, times)
    assert "the model gives JAX's numbers" in str(found)


def test_sizes_are_small_and_distinct_and_1():
    def f(x, y):
        return x @ y

    inputs = [("B", "T"), ("T", 3)]
    found = jaxport.verify(f, model_of(f, inputs), inputs)
    assert [check.sizes for check in found.checks] == [{"B": 2, "T": 3}, {"B": 1, "T": 1}]


def test_the_inputs_that_the_model_declares():
    found = jaxport.verify(network, model_of(network, [("B", 8)]), sizes={"B": [1, 4, 6]})
    assert [check.sizes["B"] for check in found.checks] == [1, 4, 6]
    assert found.ok
    assert bool(found)


def test_sizes_at_which_jax_refuses_the_function_are_skipped():
    def f(x):
        return x.reshape(-1, 2, 3)

    found = jaxport.verify(f, model_of(f, [("2*B", 3)]), [("B", 3)])
    assert found.ok
    assert [bool(check.skipped) for check in found.checks] == [False, True]
    assert "skipped" in str(found)


def test_nothing_that_jax_can_run_is_an_error():
    def f(x):
        return x.reshape(-1, 2, 3)

    with pytest.raises(jaxport.ConversionError, match="nothing can be compared") as caught:
        jaxport.verify(f, model_of(f, [("2*B", 3)]), [("B", 3)], sizes={"B": [1, 3]})
    assert caught.value.code == "E101"


@pytest.mark.parametrize("sizes", [{"C": 2}, {}, [{"B": 1, "C": 2}]])
def test_sizes_that_do_not_fit_are_an_error(sizes):
    with pytest.raises(jaxport.ConversionError, match="sizes") as caught:
        jaxport.verify(network, model_of(network, [("B", 8)]), [("B", 8)], sizes=sizes)
    assert caught.value.code == "E071"


def test_a_model_of_another_function_is_an_error():
    with pytest.raises(jaxport.ConversionError, match="outputs") as caught:
        jaxport.verify(jnp.sin, model_of(network, [(4, 8)]), [(4, 8)])
    assert caught.value.code == "E093"


def test_given_arrays_params_and_images():
    def f(x, scale):
        return jnp.cumsum(x * scale, axis=-1)

    x = np.random.default_rng(1).normal(size=(2, 4, 4, 3)).astype(np.float32)
    options = {"inputs_as_nchw": [0], "outputs_as_nchw": [0]}
    model = model_of(f, [x], input_params={"scale": 0.5}, **options)
    found = jaxport.verify(f, model, [x], {"scale": 0.5}, **options)
    assert found.ok
    assert found.checks[0].inputs == "given"
    assert not jaxport.verify(
        lambda x, scale: f(x, 2 * scale), model, [x], {"scale": 0.5}, **options
    )


def test_weights_as_inputs_and_double_precision():
    class Net:
        def __init__(self):
            self.w = weights(8, 8)

        def __call__(self, x):
            return jnp.sin(x @ self.w)

    net = Net()
    model = model_of(net, [(3, 8)], params_as_inputs=True)
    assert len(model.graph.input) == 2
    assert jaxport.verify(net, model, [(3, 8)]).ok
    double = model_of(net, [(3, 8)], enable_double_precision=True)
    found = jaxport.verify(net, double, [(3, 8)], enable_double_precision=True)
    assert found.ok
    assert found.checks[0].outputs[0].dtype == "float64"


@pytest.mark.parametrize("name", PROGRAMS)
def test_right_models_pass(name):
    fn, inputs = PROGRAMS[name]
    found = jaxport.verify(fn, model_of(fn, inputs), inputs)
    assert found.ok, str(found)


def test_importing_jaxport_loads_no_runtime():
    code = "import sys, jaxport; assert not {'jax', 'onnx', 'onnxruntime'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# --- who is off


def lost_digits(x):
    left = jnp.sum(jnp.exp(x), axis=-1)
    right = jnp.sum(jnp.exp(x + 1e-4), axis=-1)
    return (left - right) * 1e4, jnp.floor((left - right) * 1e7).astype(jnp.int32)


def test_digits_that_jax_loses_too_are_no_failure():
    model = model_of(lost_digits, [(64, 50)])
    found = jaxport.verify(lost_digits, model, [(64, 50)])
    assert found.verdict == "unstable"
    assert found.ok
    assert found.place is None
    assert {output.verdict for output in found.checks[0].outputs} == {"unstable"}
    assert "no more than rounding" in str(found)


def test_a_fault_in_an_unstable_program_is_one(tmp_path):
    model = model_of(lost_digits, [(64, 50)])
    for node in model.graph.node:
        if node.op_type == "Sub":
            node.op_type = "Add"
    assert jaxport.verify(lost_digits, model, [(64, 50)], replay=tmp_path).verdict == "different"


def test_faults_of_optimisations_are_the_runtimes(monkeypatch):
    """What ONNX Runtime gives without optimisations is right, what it gives with them is not."""
    original = runtime.run
    monkeypatch.setattr(
        runtime,
        "run",
        lambda *arguments: {name: value + 1 for name, value in original(*arguments).items()},
    )
    found = jaxport.verify(jnp.sin, model_of(jnp.sin, [(4, 8)]), [(4, 8)])
    assert (found.verdict, found.at_fault, found.place) == ("different", "runtime", None)
    assert "without ONNX Runtime's optimisations" in str(found)


# --- where it is off


def test_the_line_the_equation_and_the_node_are_named(tmp_path):
    model = with_op(model_of(network, [("B", 8)]), "Tanh", "Sigmoid")
    found = jaxport.verify(network, model, [("B", 8)], replay=tmp_path)
    place = found.place
    assert found.verdict == "different"
    assert found.at_fault == "model"
    assert line("bent = jnp.tanh(hidden)") in place.source
    assert place.source_line == "bent = jnp.tanh(hidden)"
    assert "tanh" in place.equation
    assert place.op == "Sigmoid"
    assert place.node == "Tanh"
    assert place.ulps > 1e4
    assert sum(place.histogram.values()) == 16
    text = str(found)
    assert "THE MODEL DIFFERS" in text
    assert "bent = jnp.tanh(hidden)" in text
    assert json.loads(found.json())["place"]["op"] == "Sigmoid"


def test_only_a_size_of_1_is_wrong(tmp_path):
    def by_rows(x):
        return jnp.sin(x) / x.shape[0]

    model = model_of(lambda x: jnp.sin(x) / 2, [("B", 8)])
    found = jaxport.verify(by_rows, model, [("B", 8)], replay=tmp_path)
    assert [check.verdict for check in found.checks] == ["same", "different"]
    assert "div" in found.place.equation


def test_another_dtype_or_shape_is_a_difference(tmp_path):
    model = model_of(lambda x: jnp.sin(x).T, [(4, 8)])
    found = jaxport.verify(jnp.sin, model, [(4, 8)], replay=tmp_path)
    assert "another shape" in found.checks[0].outputs[0].problem
    assert not found.ok


def test_a_model_that_does_not_run_is_a_difference(tmp_path):
    model = model_of(lambda x: x.reshape(4, 8), [("B",)])
    found = jaxport.verify(lambda x: x.reshape(-1, 8), model, [("B",)], sizes={"B": [16]})
    assert "does not run" in found.checks[0].outputs[0].problem
    assert found.notes
    assert not found.ok


def masked(x):
    small = jnp.sin(x)
    kept = small < 0.5
    chosen = jnp.where(kept, small, 0.0)
    return jnp.cos(chosen) @ weights(8, 8)


def test_wrong_values_that_are_right_elsewhere(tmp_path):
    """All is kept or nothing: the mask and what it keeps are numbers that other equations have."""
    model = with_op(model_of(masked, [(4, 8)]), "Less", "Greater")
    x = np.full((4, 8), 0.1, np.float32) + np.arange(32).reshape(4, 8).astype(np.float32) / 100
    found = jaxport.verify(masked, model, [x], replay=tmp_path)
    places = ("kept = small < 0.5", "chosen = jnp.where(kept, small, 0.0)")
    assert any(line(text) in found.place.source for text in places), str(found)


def scanned(x):
    def step(state, row):
        mixed = state @ weights(8, 8)
        bent = jnp.tanh(mixed + row)
        return bent, jnp.cos(bent)  # which no later step needs: the model computes it behind

    return lax.scan(step, x[0], x)  # the equation


def looped(x):
    def step(state):
        count, value = state
        value = jnp.sin(value) + x
        return count + 1, value

    return lax.while_loop(lambda state: state[0] < 5, step, (0, x))[1]


def branched(x):
    return lax.cond(x[0, 0] > 100, lambda v: v * 2, lambda v: jnp.exp(v) + 1, x)


@pytest.mark.parametrize(
    ("fn", "old", "new", "text", "loop"),
    [
        (scanned, "Cos", "Sin", "return lax.scan(step, x[0], x)  # the equation", None),
        (scanned, "Tanh", "Sigmoid", "bent = jnp.tanh(mixed + row)", "scan, step 0"),
        (looped, "Sin", "Cos", "value = jnp.sin(value) + x", "while, step 0"),
        (
            branched,
            "Exp",
            "Neg",
            "return lax.cond(x[0, 0] > 100, lambda v: v * 2, lambda v: jnp.exp(v) + 1, x)",
            "cond, branch 0",
        ),
    ],
)
def test_inside_of_loops_and_branches(fn, old, new, text, loop, tmp_path):
    model = with_op(model_of(fn, [(6, 8)]), old, new)
    found = jaxport.verify(fn, model, [(6, 8)], replay=tmp_path)
    assert line(text) in found.place.source
    assert found.place.loop == (() if loop is None else (loop,))


def late(x):
    def step(state, i):
        state = jnp.where(i > 3, jnp.sin(state), jnp.cos(state))
        return state, state

    return lax.scan(step, x, jnp.arange(8))[1]


def test_the_first_step_that_differs(tmp_path):
    model = with_op(model_of(late, [(5,)]), "Sin", "Tanh")
    found = jaxport.verify(late, model, [(5,)], replay=tmp_path)
    assert found.place.op == "Tanh"
    assert line("state = jnp.where(i > 3, jnp.sin(state), jnp.cos(state))") in found.place.source


@jaxport.onnx_function
def block(x):
    wide = jnp.sin(x)
    return wide @ weights(8, 8)


def test_inside_of_functions(tmp_path):
    def calls(x):
        return block(block(x))

    model = with_op(model_of(calls, [(4, 8)]), "Sin", "Cos")
    assert len(model.functions) == 1
    found = jaxport.verify(calls, model, [(4, 8)], replay=tmp_path)
    assert line("wide = jnp.sin(x)") in found.place.source
    assert found.place.op == "Cos"


def test_random_keys(tmp_path):
    def f(key, x):
        noise = jax.random.normal(key, (4, 8))
        return jnp.sin(x + noise)

    key = jax.random.key(0)
    inputs = [jax.ShapeDtypeStruct((), key.dtype), (4, 8)]
    model = model_of(f, inputs)
    assert jaxport.verify(f, model, inputs).ok
    found = jaxport.verify(f, with_op(model, "Sin", "Cos"), inputs, replay=tmp_path)
    assert "sin" in found.place.equation


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_few_digits(dtype, tmp_path):
    def f(x):
        return jnp.tanh(x @ weights(8, 8).astype(x.dtype)) * 3

    inputs = [jax.ShapeDtypeStruct((16, 8), dtype)]
    model = model_of(f, inputs)
    assert jaxport.verify(f, model, inputs).ok
    found = jaxport.verify(f, with_op(model, "Tanh", "Sigmoid"), inputs, replay=tmp_path)
    assert found.verdict == "different"
    assert "tanh" in found.place.equation


# --- the replay


@pytest.fixture
def wrong_lowering(monkeypatch):
    monkeypatch.setattr(lowering, "_registered", {})
    jaxport.register_lowering("cumsum", lambda c, x, **params: c.op.Cos(x))


def test_a_wrong_lowering_is_an_error_of_to_onnx(wrong_lowering):
    def f(x):
        y = x @ weights(8, 8)
        return jnp.tanh(lax.cumsum(y) + 1)

    with pytest.raises(jaxport.ConversionError, match="other numbers than JAX") as caught:
        model_of(f, [("B", 8)], verify=True)
    assert caught.value.code == "E100"
    assert "cumsum" in caught.value.equation
    assert line("return jnp.tanh(lax.cumsum(y) + 1)") in caught.value.source
    replay = caught.value.verification.replay
    assert replay.reproduces
    assert replay.equations == 1


def test_to_onnx_keeps_what_was_found():
    model = model_of(network, [("B", 8)], verify=True, return_mode="model")
    assert model.verification.verdict == "same"
    assert model_of(network, [("B", 8)], return_mode="model").verification is None
    assert isinstance(model_of(network, [(4, 8)], verify=True), onnx.ModelProto)


def test_the_replay_is_a_program_with_its_inputs(wrong_lowering, tmp_path):
    def f(x):
        return jnp.exp(lax.cumsum(x) / 8)

    found = jaxport.verify(f, model_of(f, [(4, 8)]), [(4, 8)], replay=tmp_path / "here")
    assert found.replay.folder == str(tmp_path / "here")
    assert found.replay.reproduces
    assert " cumsum " in (tmp_path / "here" / "program.jir").read_text()
    arrays = np.load(tmp_path / "here" / "inputs.npz")
    np.testing.assert_allclose(np.cumsum(arrays["x0"], 0), arrays["result_0"], rtol=1e-5)
    node = onnx.load(tmp_path / "here" / "node.onnx")
    operands = np.load(tmp_path / "here" / "node.npz")
    (result,) = runtime.run(runtime.open_session(node), list(operands.values())).values()
    np.testing.assert_allclose(result, np.cos(arrays["x0"]), rtol=1e-6)


def test_a_changed_file_is_not_the_compilers_fault(tmp_path):
    model = with_op(model_of(network, [(4, 8)]), "Tanh", "Sigmoid")
    assert not jaxport.verify(network, model, [(4, 8)], replay=tmp_path).replay.reproduces


# --- certificates


@pytest.fixture
def certified(tmp_path):
    """The paths of a model with external data and of its certificate."""
    path, certificate = str(tmp_path / "m.onnx"), str(tmp_path / "m.verify.json")
    model = model_of(
        network, [("B", 8)], return_mode="model", inline_limit=0, external_data_threshold=256
    )
    model.save(path)
    assert jaxport.verify(network, path, [("B", 8)], certificate=certificate).ok
    return path, certificate


def flip_a_byte(path, place):
    with open(path, "r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 1]))


def test_a_certificate_says_what_was_compared(certified, tmp_path):
    data = json.loads((tmp_path / "m.verify.json").read_text())
    assert data["verdict"] == "same"
    assert len(data["model_sha256"]) == 64
    assert [check["sizes"] for check in data["checks"]] == [{"B": 2}, {"B": 1}]
    assert set(data["versions"]) == {"jax", "jaxport", "onnxruntime", "kernel table"}
    again = str(tmp_path / "again.json")
    jaxport.verify(network, certified[0], [("B", 8)], certificate=again)
    assert (tmp_path / "again.json").read_text() == (tmp_path / "m.verify.json").read_text()


@pytest.mark.parametrize("suffix", ["", ".data"])
def test_a_changed_byte_ends_a_certificate(certified, suffix, capsys):
    path, certificate = certified
    assert command.check_certificate(path, certificate) == 0
    flip_a_byte(path + suffix, 20)
    assert command.check_certificate(path, certificate) == 1
    assert "was changed" in capsys.readouterr().out


def test_check_has_exit_codes(certified):
    path, certificate = certified

    def code(*arguments):
        run = [sys.executable, "-m", "jaxport", "check", *arguments]
        return subprocess.run(run, capture_output=True, check=False).returncode

    assert code(path, "--certificate", certificate) == 0
    flip_a_byte(path + ".data", 3)
    assert code(path, "--certificate", certificate) == 1
    assert code(path) == 0
    assert code(path, "--certificate", path) == 2


@pytest.mark.parametrize("text", ["", "{}", "[]", FIELDS % 2, FIELDS % 1, DEEP])
def test_what_is_no_certificate_is_an_error(text, tmp_path):
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(jaxport.ConversionError) as caught:
        command.check_certificate("m.onnx", str(tmp_path / "c.json"))
    assert caught.value.code == "E102"


def test_a_wrong_model_gets_no_certificate(tmp_path):
    model = with_op(model_of(network, [(4, 8)]), "Tanh", "Sigmoid")
    path = tmp_path / "c.json"
    jaxport.verify(network, model, [(4, 8)], certificate=path, replay=tmp_path)
    assert not path.exists()


# --- numbers


def test_units_in_the_last_place():
    one = np.ones(4, np.float32)
    have = np.array([1, 1 + 2**-23, 1 + 2**-20, 2], np.float32)
    np.testing.assert_array_equal(ulps(one, have), [0, 1, 8, 2**23])
    assert histogram(ulps(one, have)) == {"0": 1, "1": 1, "10": 1, "1e+07": 1}
    low = np.ones(1, ml_dtypes.bfloat16)
    np.testing.assert_array_equal(ulps(low, (low + low).astype(low.dtype)), [2**7])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_tolerances_are_relative_and_of_the_largest(dtype):
    tolerance = TOLERANCES[dtype]
    want = np.array([1000.0, 1.0, 0.0]).astype(dtype)
    assert near(want, want).all()
    slack = tolerance.of_largest * 1000
    inside = (want.astype(np.float64) + np.full(3, slack / 2)).astype(dtype)
    assert near(want, inside).all()
    outside = (want.astype(np.float64) + np.array([slack / 2, 0, slack * 3])).astype(dtype)
    assert list(near(want, outside)) == [True, True, False]
    untouched = (want.astype(np.float64) + np.array([0, 0, slack / 2])).astype(dtype)
    assert list(near(want, untouched)) == [True, True, False]


def test_what_is_no_number_is_compared_too():
    want = np.array([np.nan, np.inf, -np.inf, 0.0], np.float32)
    assert near(want, want).all()
    assert list(near(want, want[::-1])) == [False, False, False, False]
    assert not near(np.array([1]), np.array([2])).any()
    assert tolerances.tolerance_of(np.int32).relative == 0


# --- what must not pass


def verdict(right, wrong, inputs, **options):
    return jaxport.verify(right, jaxport.to_onnx(wrong, inputs, **options), inputs, **options)


def test_large_integers_that_a_float_cannot_tell_apart():
    inputs = [jax.ShapeDtypeStruct((4,), "int64")]
    double = {"enable_double_precision": True}
    found = verdict(lambda x: x + 2**60, lambda x: x + (2**60 + 3), inputs, **double)
    assert not found.ok
    assert found.checks[0].outputs[0].largest_difference >= 1


def test_one_element_without_digits_does_not_excuse_others():
    def part(factor):
        return lambda x: jnp.concatenate([(x[:1] + 1e8) - 1e8, x[1:] * factor])

    assert not verdict(part(2), part(-3), [(6,)]).ok


@pytest.mark.parametrize("fill", [-1e9, float(np.finfo(np.float32).min)])
def test_what_fills_a_mask_does_not_excuse_the_rest(fill):
    mask = np.arange(6) % 3 == 0
    wrong = verdict(
        lambda x: jnp.where(mask, fill, x), lambda x: jnp.where(mask, fill, 7 - x), [(6,)]
    )
    assert not wrong.ok
    right = lambda x: jnp.where(mask, fill, jnp.tanh(x) * 3)  # noqa: E731
    assert verdict(right, right, [(6,)]).ok


@pytest.mark.parametrize("sizes", [[], {}, {"B": []}])
def test_no_size_is_an_error(sizes):
    with pytest.raises(jaxport.ConversionError, match="sizes has no size"):
        jaxport.verify(jnp.sin, jaxport.to_onnx(jnp.sin, [("B",)]), [("B",)], sizes=sizes)


def test_sizes_of_numpy():
    model = jaxport.to_onnx(jnp.sin, [("B",)])
    assert jaxport.verify(jnp.sin, model, [("B",)], sizes={"B": np.int64(3)}).ok

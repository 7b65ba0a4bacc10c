# SPDX-License-Identifier: Apache-2.0
"""Models in half precision: what computes in it, what does not, and how far the results are."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest
from jax import lax
from onnx.reference import ReferenceEvaluator
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel

import jaxport
from jaxport import runtime

F16, BF16, F32 = 10, 16, 1
HALF = {"f16": F16, "bf16": BF16}
RNG = np.random.default_rng(0)


def weights(*shape):
    return (RNG.standard_normal(shape) / np.sqrt(shape[-2])).astype(np.float32)


def layer_norm(x, scale, bias):
    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-6) * scale + bias


def block(p, x, mask=None):
    y = layer_norm(x, p["s1"], p["b1"])
    q, k, v = (y @ p[n] for n in "qkv")
    heads = lambda a: a.reshape(*a.shape[:-1], 4, -1)  # noqa: E731
    y = jax.nn.dot_product_attention(heads(q), heads(k), heads(v), mask=mask)
    x = x + y.reshape(x.shape) @ p["o"]
    y = layer_norm(x, p["s2"], p["b2"])
    return x + jax.nn.gelu(y @ p["up"]) @ p["down"]


def block_params(d=64):
    p = {n: weights(d, d) for n in "qkvo"} | {"up": weights(d, 4 * d), "down": weights(4 * d, d)}
    for i in "12":
        p |= {f"s{i}": np.ones(d, np.float32), f"b{i}": np.zeros(d, np.float32)}
    return p


BLOCKS = [block_params() for _ in range(2)]
PATCH, TABLE = weights(48, 64), weights(500, 64)
KERNELS = [weights(3, 3, 3, 32), weights(3, 3, 32, 32), weights(3, 3, 32, 32)]
MLP = [weights(64, 256), weights(256, 256), weights(256, 10)]
CELL = (weights(32, 64), weights(64, 64))


def vit(images):
    b = images.shape[0]
    x = images.reshape(b, 4, 4, 4, 4, 3).transpose(0, 1, 3, 2, 4, 5).reshape(b, 16, 48) @ PATCH
    for p in BLOCKS:
        x = block(p, x)
    return x.mean(1)


def decoder(tokens):
    x = jnp.asarray(TABLE)[tokens]
    length = tokens.shape[1]
    position = jnp.arange(length, dtype=jnp.float32)[:, None]
    angle = position * 10000.0 ** (-jnp.arange(32) / 32)
    x = x + jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], -1)
    mask = jnp.tril(jnp.ones((length, length), bool))[None, None]
    for p in BLOCKS:
        x = block(p, x, mask)
    return jax.nn.log_softmax(x @ jnp.asarray(TABLE).T)


def resnet(x):
    conv = lambda x, k: lax.conv_general_dilated(  # noqa: E731
        x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    x = jax.nn.relu(conv(x, KERNELS[0]))
    x = x + conv(jax.nn.relu(conv(x, KERNELS[1])), KERNELS[2])
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return x.mean((1, 2))


def mlp(x):
    for w in MLP[:-1]:
        x = jax.nn.silu(x @ w)
    return jax.nn.softmax(x @ MLP[-1])


def scan(xs):
    def step(state, x):
        h, total = state
        h = jnp.sin(x @ CELL[0] + h @ CELL[1])
        return (h, total + h), h * 2

    b = xs.shape[1]
    return lax.scan(step, (jnp.zeros((b, 64)), jnp.zeros((b, 64))), xs)


NETWORKS = {
    "vit": (vit, [("B", 16, 16, 3)], 0.01),
    "decoder": (decoder, [jax.ShapeDtypeStruct((2, 12), jnp.int32)], 0.01),
    "resnet": (resnet, [("B", 16, 16, 3)], 0.01),
    "mlp": (mlp, [("B", 64)], 0.01),
    "scan": (scan, [(20, 2, 32)], 0.02),
}


def example(inputs):
    def array(spec):
        if isinstance(spec, jax.ShapeDtypeStruct):
            return RNG.integers(0, 500, spec.shape).astype(spec.dtype)
        return RNG.standard_normal([3 if n == "B" else n for n in spec]).astype(np.float32)

    return [array(spec) for spec in inputs]


def dtypes(model):
    """Of all values that nodes of all graphs compute or take, by name."""
    found = {}

    def visit(graph):
        for value in [*graph.input, *graph.output, *graph.value_info]:
            found[value.name] = value.type.tensor_type.elem_type
        for tensor in graph.initializer:
            found[tensor.name] = tensor.data_type
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    visit(attribute.g)

    visit(model.graph)
    return found


def nodes(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from nodes(attribute.g)


def run(model, arguments):
    """In ONNX Runtime, or in the reference evaluator: the former has no products of bf16."""
    try:
        return runtime.run(runtime.open_session(model), arguments)
    except NoKernel:
        pass
    named = dict(zip([value.name for value in model.graph.input], arguments, strict=True))
    results = ReferenceEvaluator(model).run(None, named)
    return dict(zip([value.name for value in model.graph.output], results, strict=True))


def rms_error(have, want):
    return np.sqrt(((have - want) ** 2).mean() / (want**2).mean())


@pytest.mark.parametrize("target", ["onnxruntime", "onnx"])
@pytest.mark.parametrize("precision", HALF)
@pytest.mark.parametrize("name", NETWORKS)
def test_network(name, precision, target):
    fn, inputs, tolerance = NETWORKS[name]
    full = jaxport.to_onnx(fn, inputs, target=target)
    model = jaxport.to_onnx(fn, inputs, target=target, precision=precision)
    onnx.checker.check_model(model)
    declared = [v.type.tensor_type.elem_type for v in [*model.graph.input, *model.graph.output]]
    assert HALF[precision] not in declared
    assert model.ByteSize() < 0.62 * full.ByteSize()
    types = dtypes(model)
    kept = {"f16": 1, "bf16": 8}[precision] * tolerance
    arguments = example(inputs)
    want = runtime.run(runtime.open_session(full), arguments)
    have = run(model, arguments)
    for key, array in want.items():
        assert have[key].dtype == array.dtype
        assert rms_error(have[key], array) < kept
    heavy = [n for n in nodes(model.graph) if n.op_type in ("MatMul", "Gemm", "Conv", "Attention")]
    assert heavy
    for node in heavy:  # the CPU has no kernels for halves; the specification has
        assert types[node.output[0]] == (HALF[precision] if target == "onnx" else F32), node
    for node in nodes(model.graph):
        if node.op_type in (
            "Softmax",
            "LogSoftmax",
            "ReduceMean",
            "ReduceSum",
            "Exp",
            "Sin",
            "Cos",
        ):
            assert types[node.output[0]] == F32, node
    no_round_trips(model)


def no_round_trips(model):
    """No value goes from halves to f32 and back, or from f32 to halves and back."""
    producers = {out: node for node in nodes(model.graph) for out in node.output}
    for node in nodes(model.graph):
        before = producers.get(node.input[0]) if node.op_type == "Cast" else None
        assert before is None or before.op_type != "Cast", node


def test_inputs_and_outputs_in_half_precision():
    model = jaxport.to_onnx(mlp, [("B", 64)], precision="f16", precision_io=True)
    declared = [v.type.tensor_type.elem_type for v in [*model.graph.input, *model.graph.output]]
    assert declared == [F16, F16]
    (x,) = example([("B", 64)])
    (have,) = runtime.run(runtime.open_session(model), [x.astype(np.float16)]).values()
    assert have.dtype == np.float16
    assert np.abs(have - mlp(x)).max() < 2e-3


def test_numbers_beyond_f16_stay_in_f32():
    """A mask that is added, positions, a scale that f16 lacks: no infinity, no NaN."""

    def fn(x, keep):
        scores = x @ MLP[0] + jnp.where(keep, 0.0, -1e9)
        position = jnp.arange(256) * 300.0
        return jax.nn.softmax(scores) + jnp.sin(position), (x @ MLP[0]) * 1e-9

    inputs = [("B", 64), jax.ShapeDtypeStruct((256,), jnp.bool_)]
    model = jaxport.to_onnx(fn, inputs, precision="f16", target="onnx")
    (x,) = example([("B", 64)])
    for keep in (np.arange(256) % 3 == 0, np.zeros(256, bool)):
        have = list(runtime.run(runtime.open_session(model), [x, keep]).values())
        for array, wanted in zip(have, fn(x, keep), strict=True):
            assert rms_error(array, np.asarray(wanted)) < 5e-3


def test_weights_beyond_f16_stay_as_they_are():
    large = weights(64, 64) * 1e6

    model = jaxport.to_onnx(
        lambda x: jnp.tanh(x @ large), [(2, 64)], precision="f16", target="onnx"
    )
    assert [t.data_type for t in model.graph.initializer if len(t.dims) == 2] == [F32]


def test_integers_and_f64_are_untouched():
    with jax.enable_x64(True):

        def fn(x, n):
            return x @ jnp.ones((64, 64), jnp.float64), n + 1

        inputs = [jax.ShapeDtypeStruct((2, 64), jnp.float64), jax.ShapeDtypeStruct((3,), jnp.int32)]
        full = jaxport.to_onnx(fn, inputs, enable_double_precision=True)
        half = jaxport.to_onnx(fn, inputs, enable_double_precision=True, precision="f16")
    assert half.graph == full.graph


def test_branches_and_functions():
    @jaxport.onnx_function
    def inner(x):
        return jax.nn.relu(x @ MLP[1])

    def fn(x, flag):
        y = lax.cond(flag, lambda v: inner(v) * 2, lambda v: v - 1, x)
        return inner(y)

    inputs = [(2, 256), jax.ShapeDtypeStruct((), jnp.bool_)]
    for target in ("onnx", "onnxruntime"):
        model = jaxport.to_onnx(fn, inputs, precision="f16", target=target)
        onnx.checker.check_model(model)
        assert len(model.functions) == 1
        (x,) = example([(2, 256)])
        for flag in (True, False):
            (have,) = runtime.run(runtime.open_session(model), [x, np.array(flag)]).values()
            assert rms_error(have, np.asarray(fn(x, flag))) < 3e-3


def test_report_says_what_was_not_measured():
    model = jaxport.to_onnx(mlp, [("B", 64)], precision="f16", target="onnx", return_mode="model")
    assert not model.report.precision.errors
    assert "the error against f32 was not measured: verify=True does that" in str(model.report)


def test_report_has_the_error():
    model = jaxport.to_onnx(
        mlp, [("B", 64)], precision="f16", target="onnx", verify=True, return_mode="model"
    )
    found = model.report.precision
    assert found.dtype == "f16"
    assert found.half_nodes > found.full_nodes > 0
    assert found.half_parameters == sum(w.size for w in MLP)
    assert [error.sizes for error in found.errors] == [{"B": 2}, {"B": 1}]
    assert all(0 < error.rms < 3e-3 and error.lost == 0 for error in found.errors)
    assert "rms" in str(model.report)
    assert '"half_nodes"' in model.report.json()
    assert model.verification.ok
    assert "not measured" not in str(model.report)
    plain = jaxport.to_onnx(mlp, [("B", 64)], return_mode="model")
    assert plain.report.precision is None


def test_an_error_that_cannot_be_measured():
    model = jaxport.to_onnx(
        mlp, [(2, 64)], precision="bf16", target="onnx", verify=True, return_mode="model"
    )
    assert model.verification.ok
    assert model.report.precision.errors == ()
    assert "not measured" in str(model.report)


def test_unknown_precision():
    with pytest.raises(jaxport.ConversionError, match=r"E075.*precision 'f8' is unknown"):
        jaxport.to_onnx(mlp, [("B", 64)], precision="f8")


def test_model_names_its_precision():
    model = jaxport.to_onnx(mlp, [("B", 64)], precision="bf16")
    assert {p.key: p.value for p in model.metadata_props}["jaxport.precision"] == "bf16"

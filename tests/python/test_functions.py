# SPDX-License-Identifier: Apache-2.0
"""jaxport.onnx_function: marked calls become functions that ONNX Runtime runs as JAX does."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime
import pytest
from flax import nnx
from jax import lax

import jaxport
from jaxport import onnx_function


def sample(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def check(fn, inputs, values=None, **options) -> onnx.ModelProto:
    """Converts, checks, runs and compares with JAX; symbols of `inputs` are 3."""
    model = jaxport.to_onnx(fn, inputs, **options)
    onnx.checker.check_model(model, full_check=True)
    if values is None:
        values = [sample([3 if isinstance(d, str) else d for d in shape]) for shape in inputs]
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [value.name for value in session.get_inputs()]
    actual = session.run(None, dict(zip(names, values, strict=False)))
    expected = jax.tree.leaves(fn(*values))
    for got, wanted in zip(actual, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=2e-5)
    return model


def functions(model) -> list[str]:
    return sorted(function.name for function in model.functions)


def calls(graph) -> list[str]:
    return [node.op_type for node in graph.node if node.domain not in ("", "ai.onnx")]


def function(model, name):
    (found,) = [f for f in model.functions if f.name == name]
    return found


@onnx_function
def gated(x, y):
    return jnp.sin(x) * y


@onnx_function(unique=True, namespace="my.model")
def square_shift(x, *, shift: float = 1.0):
    return jnp.square(x + shift)


# --- functions


def test_function():
    model = check(lambda x: gated(x, x + 1) - 1, [("B", 4)])
    assert [(f.domain, f.name) for f in model.functions] == [("custom", "gated")]
    assert len(function(model, "gated").input) == 2
    assert calls(model.graph) == ["gated"]
    assert {(o.domain, o.version) for o in model.opset_import} == {("", 23), ("custom", 1)}


def test_calls_of_one_function_share_it():
    model = check(lambda x: gated(gated(x, x), x), [(4,)])
    assert functions(model) == ["gated"]
    assert calls(model.graph) == ["gated", "gated"]


def test_other_shapes_make_other_functions():
    model = check(lambda x: gated(x, x).sum() + gated(x[:2], x[:2]).sum(), [(4,)])
    assert functions(model) == ["gated", "gated_2"]


def test_static_keywords_and_namespace():
    def fn(x):
        return square_shift(square_shift(x, shift=0.25), shift=0.25) + square_shift(x)

    model = check(fn, [("N", 4)])
    assert functions(model) == ["square_shift", "square_shift_2"]
    assert {f.domain for f in model.functions} == {"my.model"}


@pytest.mark.parametrize(
    ("options", "name"),
    [({"name": "a b"}, "a_b"), ({"type": "T"}, "T"), ({"name": "n", "type": "T"}, "T")],
)
def test_names(options, name):
    marked = onnx_function(lambda x: jnp.cos(x), **options)
    assert functions(check(lambda x: marked(x), [(3,)])) == [name]


def test_lambda_has_a_valid_name():
    assert functions(check(onnx_function(lambda x: x * 2), [(3,)])) == ["_lambda_"]


def test_marked_again():
    def plain(x):
        return x

    marked = onnx_function(plain, namespace="a", name="f")
    assert onnx_function(marked, namespace="a", unique=True).__wrapped__ is plain
    with pytest.raises(ValueError, match=r"a\.f"):
        onnx_function(marked, namespace="b")
    with pytest.raises(ValueError, match=r"a\.f"):
        onnx_function(marked, namespace="a", name="g")


def test_class_without_calls_stays_as_it_is():
    class NoCall:
        pass

    assert onnx_function(NoCall) is NoCall
    with pytest.raises(TypeError):
        NoCall()()


def test_what_cannot_be_marked():
    with pytest.raises(TypeError, match="functions and classes"):
        onnx_function(3)
    with pytest.raises(ValueError, match=r"ai\.onnx"):
        onnx_function(namespace="ai.onnx")(lambda x: x)


def test_results_of_all_kinds():
    @onnx_function
    def several(x, flag, *, mode):
        assert mode == "sum"
        return {"a": x * 2 if flag else x, "n": None, "text": mode, "pair": (x.sum(), 3)}

    def fn(x):
        found = several(x, True, mode="sum")
        assert found["text"] == "sum"
        return found["a"], found["pair"][0] + found["pair"][1]

    model = check(fn, [(4,)])
    assert len(function(model, "several").output) == 2


def test_sizes_are_read_inside():
    @onnx_function
    def flat(x):
        rows, columns = x.shape[:2]
        return jnp.reshape(x, (rows * columns, -1)) + jnp.arange(rows * columns)[:, None]

    model = check(lambda x: flat(x * 2), [("B", "T", 4)], [sample((2, 5, 4))])
    assert len(function(model, "flat").input) == 1
    assert "Shape" in [node.op_type for node in function(model, "flat").node]


def test_a_size_that_the_inputs_do_not_tell():
    @onnx_function
    def zeros_like_batch(s, n):
        return jnp.zeros((n, 2)) + s

    model = check(lambda x: zeros_like_batch(x.sum(), x.shape[0]), [("B", 4)])
    assert functions(model) == ["zeros_like_batch"]


# --- transformations


def test_vmap_and_scan_and_cond():
    def fn(x):
        a = jax.vmap(gated, in_axes=(0, None))(x, x[0])
        b, _ = lax.scan(lambda c, row: (gated(c, row), None), x[0], x)
        c = lax.cond(x.sum() > 0, lambda y: gated(y, y), lambda y: y, x)
        return a, b, c

    model = check(fn, [("B", 4)], [sample((6, 4))])
    names = functions(model)
    assert names[0] == "gated"
    assert set(calls(model.graph)) <= set(names)


def test_grad():
    def loss(x):
        return gated(x, gated(x, x)).sum()

    model = check(jax.value_and_grad(loss), [(4,)])
    assert len(model.functions) >= 2
    check(jax.vmap(jax.grad(lambda x: gated(x, x).sum())), [("B", 4)])


def test_inside_jit_that_was_traced_before():
    jitted = jax.jit(lambda x: gated(x, x))
    jitted(jnp.ones(4))
    assert functions(check(jitted, [(4,)])) == ["gated"]


def test_nothing_changes_outside():
    @onnx_function
    def branches(x):
        return x * 2 if x.sum() > 0 else x  # only possible with a number

    assert float(branches(jnp.ones(2))[0]) == 2
    np.testing.assert_allclose(jax.grad(lambda x: branches(x).sum())(jnp.ones(2)), 2)
    assert "onnx_function" not in str(jax.make_jaxpr(lambda x: gated(x, x))(jnp.ones(2)))


def test_options():
    def fn(x):
        return jnp.tanh(gated(x @ jnp.ones((4, 3)), x[:, :3]))

    for options in ({"opset": 17}, {"opset": 26, "target": "onnx"}, {"raise_": False}):
        assert functions(check(fn, [("B", 4)], **options)) == ["gated"]


# --- classes


@onnx_function
class NnxMlp(nnx.Module):
    def __init__(self, features: int, *, rngs: nnx.Rngs):
        self.norm = nnx.LayerNorm(features, rngs=rngs)
        self.first = nnx.Linear(features, 2 * features, rngs=rngs)
        self.drop = nnx.Dropout(0.1, rngs=rngs)
        self.second = nnx.Linear(2 * features, features, rngs=rngs)

    def __call__(self, x, deterministic: bool = True):
        x = self.drop(nnx.gelu(self.first(self.norm(x))), deterministic=deterministic)
        return self.second(x)


class NnxStack(nnx.Module):
    def __init__(self, kind, count: int, features: int, *, rngs: nnx.Rngs):
        self.blocks = nnx.List([kind(features, rngs=rngs) for _ in range(count)])

    def __call__(self, x):
        for block in self.blocks:
            x = x + block(x, deterministic=True)
        return x


def test_nnx_instances_have_their_own_functions():
    model = check(NnxStack(NnxMlp, 3, 8, rngs=nnx.Rngs(0)), [("B", 8)])
    assert functions(model) == ["NnxMlp", "NnxMlp_2", "NnxMlp_3"]
    names = {initializer.name for initializer in model.graph.initializer}
    assert {"blocks.0.first.kernel", "blocks.2.second.kernel"} <= names


def test_nnx_unique_shares():
    @onnx_function(unique=True)
    class Shared(NnxMlp):
        pass

    model = check(NnxStack(Shared, 3, 8, rngs=nnx.Rngs(0)), [("B", 8)])
    assert calls(model.graph) == ["Shared"] * 3
    assert functions(model) == ["Shared"]


def test_nnx_instance_called_twice():
    block = NnxMlp(8, rngs=nnx.Rngs(0))
    model = check(lambda x: block(block(x)), [("B", 8)])
    assert functions(model) == ["NnxMlp"]


def test_nnx_module_that_is_marked_itself():
    model = check(NnxMlp(8, rngs=nnx.Rngs(0)), [("B", 8)])
    assert functions(model) == ["NnxMlp"]
    assert [i.name for i in model.graph.input] == ["x"]


def test_weights_are_numbers_inside():
    @onnx_function
    class Table(nnx.Module):
        def __init__(self):
            self.periods = nnx.Param(jnp.arange(4.0))

        def __call__(self, x):
            return x * np.asarray(self.periods[...]).max()  # no tracer could do this

    assert functions(check(Table(), [("B", 4)])) == ["Table"]


def test_nnx_state_that_changes():
    @onnx_function
    class Counter(nnx.Module):
        def __init__(self):
            self.count = nnx.Variable(jnp.zeros(()))

        def __call__(self, x):
            self.count[...] = self.count[...] + 1
            return x * self.count[...]

    class Twice(nnx.Module):
        def __init__(self):
            self.counter = Counter()

        def __call__(self, x):
            return self.counter(x) + self.counter(x)

    class Inside(nnx.Module):
        def __init__(self):
            self.counter = Counter()

        def __call__(self, x):
            count_twice = onnx_function(lambda y: self.counter(y) + self.counter(y))
            return count_twice(x)

    x = sample((3,))
    for net in (Twice(), Inside()):
        model = jaxport.to_onnx(net, [(3,)])
        assert "Counter" in functions(model)
        session = onnxruntime.InferenceSession(model.SerializeToString())
        np.testing.assert_allclose(session.run(None, {"x": x})[0], 3 * x, rtol=1e-6)


def test_linen():
    @onnx_function
    class Block(nn.Module):
        features: int

        @nn.compact
        def __call__(self, x, *, train: bool = False):
            x = nn.Dense(self.features)(x)
            x = nn.BatchNorm(use_running_average=not train)(x)
            return nn.relu(x)

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            return Block(5)(Block(4)(x, train=False))

    variables = Net().init(jax.random.key(0), jnp.ones((2, 3)))
    model = check(lambda x: Net().apply(variables, x), [("B", 3)])
    assert functions(model) == ["Block", "Block_2"]


def test_linen_method_of_a_module_with_setup():
    class Net(nn.Module):
        def setup(self):
            self.encoder = nn.Dense(4)
            self.decoder = nn.Dense(3)

        @onnx_function
        def encode(self, x):
            return nn.tanh(self.encoder(x))

        def __call__(self, x):
            return self.decoder(self.encode(x))

    variables = Net().init(jax.random.key(0), jnp.ones((2, 3)))
    model = check(lambda x: Net().apply(variables, x), [("B", 3)])
    assert functions(model) == ["encode"]


def test_haiku():
    haiku = pytest.importorskip("haiku", reason="the oldest environment has no Haiku")

    @onnx_function
    class Block(haiku.Module):
        def __call__(self, x):
            return jax.nn.relu(haiku.Linear(4)(x))

    network = haiku.without_apply_rng(haiku.transform(lambda x: Block()(Block()(x))))
    parameters = network.init(jax.random.key(0), jnp.ones((2, 4)))
    model = check(lambda x: network.apply(parameters, x), [("B", 4)])
    assert functions(model) == ["Block", "Block_2"]


def test_equinox():
    @onnx_function
    class Block(eqx.Module):
        linear: eqx.nn.Linear
        activation: Any = eqx.field(static=True)

        def __init__(self, key):
            self.linear = eqx.nn.Linear(4, 4, key=key)
            self.activation = jax.nn.gelu

        def __call__(self, x):
            return self.activation(self.linear(x))

    class Net(eqx.Module):
        blocks: list[Block]

        def __call__(self, x):
            for block in self.blocks:
                x = block(x)
            return x

    net = Net([Block(key) for key in jax.random.split(jax.random.key(0), 2)])
    model = check(jax.vmap(net), [("B", 4)])
    assert functions(model) == ["Block", "Block_2"]


def test_plain_class_and_methods():
    class Scaler:
        def __init__(self, scale):
            self.scale = jnp.asarray(scale)

        @onnx_function
        def scaled(self, x):
            return x * self.scale

        @onnx_function(name="shift")
        def __call__(self, x, by=1):
            return self.scaled(x) + by

    model = check(Scaler(sample((4,))), [("B", 4)])
    assert functions(model) == ["scaled", "shift"]


def test_nested_functions():
    @onnx_function
    class Outer(nnx.Module):
        def __init__(self, rngs):
            self.inner = NnxMlp(8, rngs=rngs)

        def __call__(self, x):
            return gated(self.inner(x), x)

    model = check(Outer(nnx.Rngs(0)), [("B", 8)])
    assert functions(model) == ["NnxMlp", "Outer", "gated"]
    assert calls(model.graph) == ["Outer"]
    assert sorted(calls(function(model, "Outer"))) == ["NnxMlp", "gated"]


# --- functions="auto"


class Layer(nnx.Module):
    def __init__(self, features: int, *, rngs: nnx.Rngs):
        self.norm = nnx.LayerNorm(features, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(2, features, decode=False, rngs=rngs)
        self.dense = nnx.Linear(features, features, rngs=rngs)

    def __call__(self, x, deterministic: bool = True):
        y = self.norm(x)
        return nnx.gelu(self.dense(self.attention(y, deterministic=deterministic)))


def test_auto_finds_layers():
    net = NnxStack(Layer, 4, 8, rngs=nnx.Rngs(0))
    model = check(lambda x: jnp.sin(net(x)), [("B", "T", 8)], [sample((2, 5, 8))], functions="auto")
    assert functions(model) == ["blocks"]
    assert calls(model.graph) == ["blocks"] * 4
    assert functions(check(net, [(2, 5, 8)])) == []


def test_auto_of_many_layers():
    # More calls in a row than a body needs equations: they are no function of functions.
    weights = [sample((4, 4), seed) for seed in range(20)]

    def fn(x):
        for weight in weights:
            y = jnp.cos(x @ weight) + 1
            x = x + (jnp.tanh(y) * jnp.sin(y) + jnp.exp(-jnp.abs(y)) - jnp.square(y)) / 1000
        return x

    model = check(fn, [("B", 4)], functions="auto")
    assert len(model.functions) == 1
    assert len(calls(model.graph)) == 20


def test_auto_finds_layers_inside_jit():
    net = NnxStack(Layer, 3, 8, rngs=nnx.Rngs(0))
    model = check(jax.jit(lambda x: net(x)), [(2, 5, 8)], functions="auto")
    assert calls(model.graph) == ["blocks"] * 3


def test_auto_finds_equal_calls():
    @jax.jit
    def layer(x, weight):
        for _ in range(4):
            x = jnp.tanh(x @ weight) + jnp.cos(x)
        return x

    weights = [sample((4, 4), seed) for seed in range(3)]

    def fn(x):
        a = layer(x, weights[0])
        b = jnp.exp(-layer(a + 1, weights[1]))
        return b, layer(x * b, weights[2])

    model = check(fn, [("B", 4)], functions="auto")
    assert functions(model) == ["layer"]
    assert calls(model.graph) == ["layer"] * 3


def test_auto_keeps_layers_that_differ():
    def fn(x):
        for k in range(4):
            y = jnp.cos(x * (k + 1)) @ sample((4, 4), k)
            x = jnp.tanh(y + 1) * jnp.sin(y) + jnp.exp(-jnp.abs(y)) + jnp.square(x)
        return x

    model = check(fn, [("B", 4)], functions="auto")
    assert functions(model) == []  # the factor of each layer is another scalar


def test_auto_with_marks():
    model = check(NnxStack(NnxMlp, 3, 8, rngs=nnx.Rngs(0)), [("B", 8)], functions="auto")
    assert functions(model) == ["NnxMlp", "NnxMlp_2", "NnxMlp_3"]


def test_functions_option_is_checked():
    with pytest.raises(jaxport.ConversionError, match="functions 'all' is unknown"):
        jaxport.to_onnx(lambda x: x, [(2,)], functions="all")


# --- what else knows functions


def test_stats_and_text_and_files(tmp_path):
    def fn(x):
        return gated(gated(x, x), x)

    model = jaxport.to_onnx(fn, [(4,)], return_mode="model")
    ops = model.stats()["ops"]
    assert ops["gated"] == 2
    assert ops["Sin"] == 1
    text = model.text()
    assert 'domain: "custom"' in text
    assert onnx.parser.parse_model(text).functions[0].name == "gated"
    path = model.save(tmp_path / "m.onnx")
    assert functions(onnx.load(path)) == ["gated"]


def test_weights_in_a_file_beside_the_model(tmp_path):
    path = jaxport.to_onnx(
        NnxStack(NnxMlp, 2, 32, rngs=nnx.Rngs(0)),
        [("B", 32)],
        return_mode="file",
        output_path=tmp_path / "m.onnx",
        external_data_threshold=1,
        inline_limit=1,
    )
    onnx.checker.check_model(str(path), full_check=True)
    onnxruntime.InferenceSession(path).run(None, {"x": sample((3, 32))})

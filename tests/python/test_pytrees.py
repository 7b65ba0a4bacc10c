# SPDX-License-Identifier: Apache-2.0
"""Arguments and results that are no arrays: trees of every kind, None, Python numbers, inputs."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

import jaxport
from support.modules import check, inputs_of, numbers, outputs_of, run


class Point(NamedTuple):
    x: object
    y: object


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Batch:
    image: object
    label: object = None
    name: str = dataclasses.field(default="batch", metadata={"static": True})


class Box:
    """A pytree class of the user's own, whose leaves have no names."""

    def __init__(self, low, high):
        self.low, self.high = low, high


jax.tree_util.register_pytree_node(
    Box, lambda box: ((box.low, box.high), None), lambda _, c: Box(*c)
)


@jax.tree_util.register_pytree_with_keys_class
class Named(Box):
    def tree_flatten_with_keys(self):
        keys = map(jax.tree_util.GetAttrKey, ("low", "high"))
        return tuple(zip(keys, (self.low, self.high), strict=True)), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


class Module(eqx.Module):
    low: jax.Array
    scale: float


@pytest.mark.parametrize(
    ("fn", "inputs", "names"),
    [
        (lambda p: p.x - p.y, [Point((3,), (3,))], ["p.x", "p.y"]),
        (lambda b: b.image * 2, [Batch((3,))], ["b.image"]),
        (lambda b: b.image + b.label, [Batch((3,), (3,))], ["b.image", "b.label"]),
        (lambda b: b.low + b.high, [Box((3,), (3,))], ["b.0", "b.1"]),
        (lambda b: b.low + b.high, [Named((3,), (3,))], ["b.low", "b.high"]),
        (lambda t: t["a"] if t["b"] is None else 0, [{"a": (3,), "b": None}], ["t.a"]),
        (lambda x, mask: x if mask is None else 0, [(3,), None], ["x"]),
        (lambda p: p.x[0] + p.y["k"], [Point([("B", 2)], {"k": ("B", 2)})], ["p.x.0", "p.y.k"]),
    ],
    ids=[
        "NamedTuple",
        "dataclass",
        "dataclass full",
        "custom",
        "with keys",
        "None leaf",
        "None",
        "nested",
    ],
)
def test_arguments(fn, inputs, names):
    assert inputs_of(check(fn, inputs)) == names


@pytest.mark.parametrize(
    ("fn", "names"),
    [
        (lambda x: Point(x, -x), ["x_0", "y"]),
        (lambda x: Batch(x * 2, None), ["image"]),
        (lambda x: Batch(x * 2, -x), ["image", "label"]),
        (lambda x: Box(x * 2, -x), ["output_0", "output_1"]),
        (lambda x: Named(x * 2, -x), ["low", "high"]),
        (lambda x: {"a": None, "b": x * 2}, ["b"]),
        (lambda x: (None, x * 2), ["output_1"]),
        (lambda x: [x * 2, {"k": (x, None)}], ["output_0", "output_1.k.0"]),
    ],
    ids=["NamedTuple", "dataclass", "full", "custom", "with keys", "None leaf", "None", "nested"],
)
def test_results(fn, names):
    assert outputs_of(check(fn, [("B", 3)])) == names


@pytest.mark.parametrize(
    ("fn", "names"),
    [
        (lambda x: 3, ["output"]),
        (lambda x: (x, 2.5, True, 1 + 2j), ["output_0", "output_1", "output_2", "output_3"]),
        (lambda x: x.shape[1], ["output"]),
        (lambda x: (x + 1, x.shape[0]), ["output_0", "output_1"]),
        (lambda x: x, ["output"]),
        (lambda x: (x, x), ["output_0", "output_1"]),
        (lambda x: {"x": x, "y": x * 2}, ["x_0", "y"]),
        (
            lambda x: (lambda y: (y, y, {"again": y}))(x * 2),
            ["output_0", "output_1", "output_2.again"],
        ),
        (lambda x: jnp.float32(1), ["output"]),
        (lambda x: (numbers(3), jnp.ones(2)), ["output_0", "output_1"]),
    ],
    ids=[
        *(
            "number",
            "numbers",
            "size",
            "symbolic size",
            "input",
            "input twice",
            "input by its name",
        ),
        *("value twice", "scalar", "constants"),
    ],
)
def test_results_that_are_no_computation(fn, names):
    assert outputs_of(check(fn, [("B", 3)])) == names


def test_a_module_as_an_argument():
    module = Module(jnp.arange(3.0), 2.0)
    spec = eqx.tree_at(lambda m: m.low, module, jax.ShapeDtypeStruct((3,), jnp.float32))
    with pytest.raises(jaxport.ConversionError, match="describes no array"):
        jaxport.to_onnx(lambda m, x: m.low * x, [spec, (3,)])
    arrays = eqx.tree_at(lambda m: m.scale, spec, None)
    model = check(lambda m, x: m.low * x, [arrays, (3,)])
    assert inputs_of(model) == ["m.low", "x"]


@dataclasses.dataclass
class Unknown:
    x: object


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (Unknown, "returns a Unknown, which is no array"),
        (lambda x: (x, {"name": "text"}), "returns a str at 1.name, which is no array"),
    ],
    ids=["dataclass", "text"],
)
def test_results_that_are_no_arrays(fn, message):
    with pytest.raises(jaxport.ConversionError, match=message) as caught:
        jaxport.to_onnx(fn, [(3,)])
    assert caught.value.code == "E081"
    assert "register_dataclass" in caught.value.help


def test_an_argument_of_a_class_that_jax_does_not_know():
    with pytest.raises(jaxport.ConversionError, match="describes no array") as caught:
        jaxport.to_onnx(lambda d: d.x, [Unknown((3,))])
    assert "register_dataclass" in caught.value.help


def test_an_output_that_is_an_input_can_be_fed():
    model = check(lambda x, y: (y, x), [(3,), (2,)])
    given = run(model, x=numbers(3), y=numbers(2))
    assert [value.shape for value in given.values()] == [(2,), (3,)]

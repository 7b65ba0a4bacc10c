# SPDX-License-Identifier: Apache-2.0
"""JAX traces a function once, however it is converted: tracing takes longer than all the rest."""

import gc

import jax.numpy as jnp
import pytest
from flax import nnx

import jaxport
from jaxport import _core


class Counted:
    """A function that counts its calls."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x, scale=1.0):
        self.calls += 1
        return jnp.sin(x) * scale


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"return_mode": "ir"},
        {"return_mode": "model"},
        {"precision": "f16"},
        {"exact": True},
        {"functions": "auto"},
        {"target": "onnx"},
        {"enable_double_precision": True},
        {"state": "io"},
        {"inputs_as_nchw": [0], "outputs_as_nchw": [0]},
        {"input_params": {"scale": 2.0}},
        {"on_unsupported": "custom_op"},
        {"report": "report.html"},
    ],
    ids=str,
)
def test_a_function_is_traced_once(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fn = Counted()
    jaxport.to_onnx(fn, [("B", 4, 4, 3)], **options)
    assert fn.calls == 1


@pytest.mark.parametrize(
    ("options", "times"),
    # Which state changes is known when the function was traced.
    [({}, 1), ({"params_as_inputs": True}, 1), ({"state": "io"}, 2)],
    ids=str,
)
def test_a_module_is_traced_once_unless_its_state_becomes_inputs(options, times):
    calls = []

    class Block(nnx.Module):
        def __init__(self):
            self.linear = nnx.Linear(4, 8, rngs=nnx.Rngs(0))
            self.norm = nnx.BatchNorm(8, rngs=nnx.Rngs(0))

        def __call__(self, x):
            calls.append(x.shape)
            return self.norm(self.linear(x))

    jaxport.to_onnx(Block(), [("B", 4)], **options)
    assert len(calls) == times


def test_no_collection_falls_due_in_a_compilation(monkeypatch):
    """The first call of a process, after JAX made many objects, when the collector is due."""

    class Node:
        def __init__(self):
            self.itself = self

    stages: list[str] = []
    collected: list[str] = []
    for name in ("import_jaxpr", "compile"):
        original = getattr(_core, name)

        def watched(*args, original=original, stage=name, **kwargs):
            stages.append(stage)
            rubbish = [Node() for _ in range(20_000)]  # more than any generation takes
            del rubbish
            try:
                return original(*args, **kwargs)
            finally:
                stages.pop()

        monkeypatch.setattr(_core, name, watched)

    def on_collection(phase, info):
        if phase == "start" and stages:
            collected.append(stages[-1])

    gc.callbacks.append(on_collection)
    try:
        jaxport.to_onnx(jnp.sin, [("B", 4)])
    finally:
        gc.callbacks.remove(on_collection)
    assert collected == []

# SPDX-License-Identifier: Apache-2.0
"""Every example runs and gives what JAX gives."""

import importlib

import numpy as np
import pytest


def results_of(name):
    return importlib.import_module(f"examples.{name}").main()


def ops_of(graph):
    bodies = [a.g for node in graph.node for a in node.attribute if a.HasField("g")]
    return {node.op_type for node in graph.node}.union(*map(ops_of, bodies))


def test_a_decoder_says_the_same_words():
    results = results_of("decoder")
    assert len(results["have"]) == 40
    assert len(set(results["have"])) > 5
    assert results["have"] == results["want"]


def test_a_training_step_learns_as_in_jax():
    results = results_of("training_step")
    assert np.mean(results["have"][-5:]) < 0.1 * results["have"][0]
    np.testing.assert_allclose(results["have"], results["want"], rtol=1e-3)


@pytest.mark.parametrize(("name", "tolerance"), [("diffusion", 1e-4), ("neural_ode", 1e-3)])
def test_loops_in_the_model(name, tolerance):
    results = results_of(name)
    np.testing.assert_allclose(results["have"], results["want"], atol=tolerance)
    assert ops_of(results["model"].to_proto().graph) & {"Loop", "Scan"}


def test_a_policy_balances_the_pole():
    results = results_of("policy")
    assert results["have"] == results["want"] == 300


def test_five_frameworks_have_one_graph():
    results = results_of("frameworks")
    assert len(results) == 5
    for name, (equal, ops) in results.items():
        assert equal, name
        assert ops == ["Reshape", "Conv", "Relu", "ReduceMean", "Gemm"], name

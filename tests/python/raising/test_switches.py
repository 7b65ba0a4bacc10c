# SPDX-License-Identifier: Apache-2.0
"""The switches of raising: off, rules left out, norms as arithmetic; and its report."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxport
from raising.all_rows import SPELLINGS
from raising.page import PAGE
from raising.table import measure
from support.cases import assert_quiet

# Every 7th row: 7 divides no period in which spellings follow each other.
SAMPLE = SPELLINGS[::7]
SHAPES = [(2, 5, 3, 8)] * 3
MACROS = {
    "Attention", "Celu", "Elu", "Gelu", "HardSigmoid", "HardSwish", "InstanceNormalization",
    "LayerNormalization", "LeakyRelu", "Mish", "PRelu", "RMSNormalization", "RotaryEmbedding",
    "Selu", "Softmax", "Softsign",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("row", SAMPLE, ids=lambda row: row.id)
def test_without_raising_the_numbers_are_jax_s(row, capfd):
    measured = measure(row, raise_=False)
    assert_quiet(capfd)
    assert not MACROS & set(measured.ops)


def layer_norm(x):
    return jax.nn.standardize(x, axis=-1) * 2.0


def group_norm(x):
    groups = x.reshape(*x.shape[:-1], 4, 2)
    return jax.nn.standardize(groups, axis=(1, 2, 4)).reshape(x.shape) * np.arange(
        8, dtype=np.float32
    )


def attention(q, k, v):
    return jax.nn.dot_product_attention(q, k, v)


def normalised_by_another_axis(x):
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, ddof=1, keepdims=True) + 1e-5)


def ops(fn, shapes, **options):
    return set(jaxport.to_onnx(fn, shapes, return_mode="model", **options).stats()["ops"])


def test_a_rule_that_is_left_out_does_not_fire():
    found = ops(attention, SHAPES, without_rules=["attention"])
    assert "Attention" not in found
    assert "Softmax" in found
    assert not {"Attention", "Softmax"} & ops(
        attention, SHAPES, without_rules=["attention", "softmax"]
    )


def test_an_unknown_rule_is_an_error():
    with pytest.raises(jaxport.ConversionError) as info:
        jaxport.to_onnx(attention, SHAPES, without_rules=["atention"])
    assert info.value.code == "E060"
    assert "attention" in info.value.help


@pytest.mark.parametrize(
    ("mode", "native"), [("auto", True), ("prefer_native", True), ("force_decomposed", False)]
)
def test_the_normalization_mode_decides_about_norms(mode, native):
    found = ops(layer_norm, [(3, 8)], normalization_mode=mode)
    assert ("LayerNormalization" in found) == native


@pytest.mark.parametrize("target", ["onnxruntime", "onnx"])
@pytest.mark.parametrize(
    ("mode", "opset", "op"),
    [
        ("auto", 23, "InstanceNormalization"),
        ("prefer_native", 20, "InstanceNormalization"),
        ("prefer_native", 21, "GroupNormalization"),
        ("force_decomposed", 23, None),
    ],
)
def test_a_group_norm_has_its_op_where_that_is_preferred(mode, opset, op, target):
    found = ops(group_norm, [("B", 6, 6, 8)], normalization_mode=mode, opset=opset, target=target)
    assert found & {"GroupNormalization", "InstanceNormalization"} == ({op} if op else set())


@pytest.mark.parametrize("name", ["GroupNorm", "GroupNorm, symbolic image", "InstanceNorm"])
def test_native_norms_give_jax_s_numbers(name):
    [row] = [
        row for row in SPELLINGS if row.library == "nnx" and row.name.partition(" [")[0] == name
    ]
    measured = measure(row, normalization_mode="prefer_native")
    assert measured.count("GroupNormalization") == name.startswith("Group")


def test_the_report_names_the_line_of_what_was_raised():
    reports = []
    jaxport.to_onnx(attention, SHAPES, report=reports.append)
    [finding] = reports[0].raised
    assert finding.rule == "attention"
    assert finding.reason == ""
    assert "test_switches.py" in finding.source
    assert finding.line == "return jax.nn.dot_product_attention(q, k, v)"


def test_the_report_says_why_a_near_miss_was_not_raised():
    report = jaxport.to_onnx(normalised_by_another_axis, [(3, 8)], return_mode="model").report
    assert not report.raised
    assert report.near_misses
    assert all(finding.reason for finding in report.near_misses)
    assert all("test_switches.py" in finding.source for finding in report.near_misses)


def test_a_report_is_written_as_text_or_json(tmp_path):
    jaxport.to_onnx(layer_norm, [(3, 8)], report=tmp_path / "report.txt")
    jaxport.to_onnx(layer_norm, [(3, 8)], report=str(tmp_path / "report.json"))
    text = (tmp_path / "report.txt").read_text()
    content = json.loads((tmp_path / "report.json").read_text())
    assert text.startswith("raised: 1 layer_norm\n")
    assert [finding["rule"] for finding in content["raised"]] == ["layer_norm"]
    assert content["near_misses"] == []


def test_a_report_is_printed(capsys):
    jaxport.to_onnx(layer_norm, [(3, 8)], report=True)
    assert "layer_norm  at " in capsys.readouterr().out


def test_nothing_is_reported_without_raising():
    report = jaxport.to_onnx(attention, SHAPES, raise_=False, return_mode="model").report
    assert str(report) == "raised: nothing\nnear misses: 0"


def test_the_page_names_every_rule():
    with pytest.raises(jaxport.ConversionError) as info:
        jaxport.to_onnx(attention, SHAPES, without_rules=["?"])
    rules = info.value.help.removeprefix("the rules are ").split(", ")
    text = PAGE.read_text(encoding="utf-8")
    assert [rule for rule in rules if f"`{rule}`" not in text] == []

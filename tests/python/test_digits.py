# SPDX-License-Identifier: Apache-2.0
"""Functions keep the digits that docs/trust.md says they keep."""

from __future__ import annotations

import pathlib
import re

import jax
import jax.numpy as jnp
import pytest

import jaxport
from support.digits import DIGITS, measure_model

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "trust.md"


@pytest.mark.parametrize("row", DIGITS, ids=lambda row: row.name)
def test_a_function_has_these_digits(row):
    measured = measure_model(row.fn)
    assert measured.relative <= row.relative, measured
    assert measured.absolute <= row.absolute, measured


def test_the_page_lists_these_functions():
    digits = PAGE.read_text(encoding="utf-8").partition("## Digits")[2].partition("\n## ")[0]
    assert re.findall(r"(?m)^\| `(.+?)` \|", digits) == [row.name for row in DIGITS]


def ops_of(fn, **options):
    return jaxport.to_onnx(fn, [("B", 8)], return_mode="model", **options).stats()["ops"]


def test_only_onnx_runtime_gets_the_parts_of_an_elu():
    assert "Elu" not in ops_of(jax.nn.elu)
    assert ops_of(jax.nn.elu, target="onnx") == {"Elu": 1}


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: jnp.log(jax.nn.sigmoid(x)),
        lambda x: -jnp.log(jnp.clip(jax.nn.sigmoid(x), 1e-7, 1 - 1e-7)),
        lambda x: jnp.log(jnp.where(x > 0, jax.nn.sigmoid(x), 0.5) * 2),
        lambda x: 1 / jax.nn.sigmoid(x),
        lambda x: jax.nn.sigmoid(x) ** -2,
        lambda x: jnp.sqrt(jax.nn.sigmoid(x)),
    ],
)
def test_small_sigmoids_that_become_large_are_exact(fn):
    assert "Sigmoid" not in ops_of(fn)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: jnp.log(jax.nn.sigmoid(x) + 1),
        lambda x: jax.nn.sigmoid(x) / (1 + x * x),
        lambda x: jnp.exp(jax.nn.sigmoid(x)),
        lambda x: jax.nn.sigmoid(x) ** 2,
    ],
)
def test_other_sigmoids_are_the_op(fn):
    assert ops_of(fn)["Sigmoid"] == 1

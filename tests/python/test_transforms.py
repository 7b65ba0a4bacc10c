# SPDX-License-Identifier: Apache-2.0
"""The functions that `make transforms` runs: the list, its judge and its page."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
import pytest
from flax import nnx

import jaxport
from conformance import check, transforms, transforms_page
from conformance.case import Case, Program
from conformance.functions import functions
from conformance.functions.left_out import LEFT_OUT, reasons
from conformance.outcome import Known, Outcome
from conformance.tolerances import derivative_is_near

VERSION = (0, 10)  # the JAX whose functions are listed
MODULES: list[tuple[str, str, types.ModuleType]] = [
    ("jax.nn", "", jax.nn),
    ("jax.numpy", "", jnp),
    ("jax.numpy", "linalg.", jnp.linalg),
    ("jax.numpy", "fft.", jnp.fft),
    ("jax.lax", "", jax.lax),
    ("jax.random", "", jax.random),
    *(
        ("jax.scipy", f"{name}.", getattr(jsp, name))
        for name in ("fft", "integrate", "linalg", "ndimage", "signal", "special", "stats")
    ),
    *(
        ("jax.scipy.stats", f"{name}.", module)
        for name, module in vars(jsp.stats).items()
        if isinstance(module, types.ModuleType) and not name.startswith("_")
    ),
]


def public_functions(module: types.ModuleType) -> Iterator[str]:
    for name in dir(module):
        value = getattr(module, name)
        if not name.startswith("_") and callable(value) and not inspect.isclass(value):
            yield name


def public_layers(module: Any, base: type) -> Iterator[str]:
    for name in dir(module):
        value = getattr(module, name)
        if inspect.isclass(value) and issubclass(value, base):
            yield name


def public_names() -> set[tuple[str, str]]:
    names = {(g, prefix + name) for g, prefix, m in MODULES for name in public_functions(m)}
    names |= {("equinox.nn", name) for name in public_layers(eqx.nn, eqx.Module)}
    names |= {("flax.nnx", name) for name in public_layers(nnx, nnx.Module)}
    return names


needs_the_listed_version = pytest.mark.skipif(
    jax.__version_info__[:2] != VERSION, reason="the list is that of another version of JAX"
)


@pytest.fixture(scope="module")
def listed() -> set[tuple[str, str]]:
    return {(function.group, function.name.split(" (")[0]) for function in functions()}


@needs_the_listed_version
def test_every_public_function_has_a_row_or_a_reason(listed: set[tuple[str, str]]) -> None:
    left_out = {(group, name) for group in LEFT_OUT for name in reasons(group)}
    assert sorted(public_names() - listed - left_out) == []


@needs_the_listed_version
def test_what_is_left_out_exists_and_has_no_row(listed: set[tuple[str, str]]) -> None:
    left_out = {(group, name) for group in LEFT_OUT for name in reasons(group)}
    assert sorted(left_out & listed) == []
    assert sorted(left_out - public_names()) == []


def judged(program: Callable[[], Program]) -> Outcome:
    return check.check(Case("c", "g", "float32", program, compares_refusals=True), 23)


def program_of(fn: Callable[..., Any], jax_fn: Callable[..., Any]) -> Program:
    x = np.float32([1, 2])
    return Program(fn, [x], [x], lambda: [np.asarray(jax_fn(x))], lambda want, have: None)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("argmax", "grad requires real-valued outputs"),
        ("nextafter", "Differentiation rule for 'nextafter' not implemented"),
    ],
)
def test_a_refusal_is_that_of_jax(name: str, message: str) -> None:
    fn = jax.grad(lambda x: jnp.sum(getattr(jnp, name)(*[x] * (2 if name == "nextafter" else 1))))
    with pytest.raises((TypeError, NotImplementedError)) as wanted:
        fn(jnp.ones(3))
    with pytest.raises(jaxport.ConversionError) as given:
        jaxport.to_onnx(fn, [np.ones(3, np.float32)])
    assert message in str(wanted.value)
    assert given.value.code == "E074"
    first_line = str(wanted.value).splitlines()[0].rstrip(".")
    assert f"{type(wanted.value).__name__}: {first_line}" in given.value.message
    assert type(given.value.__cause__) is type(wanted.value)


def test_a_refusal_for_another_reason_is_found() -> None:
    no_gradient = jax.grad(lambda x: jnp.argmax(x))
    assert judged(lambda: program_of(no_gradient, no_gradient)).kind == "not run by jax"
    other = jax.grad(lambda x: x)  # of an array, which is another mistake
    assert judged(lambda: program_of(other, no_gradient)).kind == "another refusal"
    assert judged(lambda: program_of(jnp.sin, no_gradient)).kind == "another refusal"


def test_every_function_is_tried_under_every_transformation() -> None:
    names = {case.name for case in transforms.cases()}
    for transform in transforms.TRANSFORMS:
        assert f"jax.nn.relu, {transform}" in names
    assert "jax.nn.dot_product_attention, hessian" not in names


@pytest.mark.parametrize(
    ("want", "have", "near"),
    [
        ([1, 1000], [1.005, 1000], True),  # what cancels is lost at the size of the largest
        ([1, 1000], [1.02, 1000], False),
        ([1e-4], [1e-4 + 1e-5], False),
        ([np.nan, np.inf], [np.nan, np.inf], True),
        ([np.nan], [0], False),
        ([np.inf], [-np.inf], False),
    ],
)
def test_derivatives_are_compared_at_their_size(want: list, have: list, near: bool) -> None:
    assert derivative_is_near(np.float32(want), np.float32(have)).all() == near
    assert not derivative_is_near(np.int32([3]), np.int32([4])).any()


def test_the_page_has_a_mark_for_each_transformation() -> None:
    refused = "TypeError: grad requires real-valued outputs, but got int32. For others, use vjp"
    outcomes = [
        Outcome("jax.nn.relu, plain", "jax.nn", "float32", "pass"),
        Outcome("jax.nn.relu, vmap", "jax.nn", "float32", "wrong value", "output 0"),
        Outcome("jax.nn.relu, grad", "jax.nn", "float32", "not run by jax", refused),
    ]
    text = transforms_page.page(outcomes, [Known("a fault", "wrong value")], 23)
    assert "**1 of 2 hold.**" in text
    assert "| `relu` | ✓ | **✗** | · | - | · | · | · | · |" in text
    assert "| `dot_product_attention` | · | · | · | · | · | · | · |  |" in text
    assert f"{len(transforms.cases()) - 3:,} cases wait" in text
    assert "| `jax.nn.relu`: vmap | wrong value | a fault |" in text
    assert "| 1 | TypeError: grad requires real-valued outputs, but got … |" in text
    assert "| grad | 0 |  | 1 |" in text


def test_sizes_of_models_are_remembered() -> None:
    case = next(case for case in transforms.cases() if case.name == "jax.nn.relu, plain")
    outcome = check.check(case, 23)
    assert outcome.kind == "pass"
    assert outcome.facts["nodes"] == 1
    assert outcome.facts["bytes"] > 0

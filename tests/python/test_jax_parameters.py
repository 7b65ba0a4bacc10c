# SPDX-License-Identifier: Apache-2.0
"""A JAX that adds or renames a parameter gets an error that names it, never another graph."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxport
from jaxport import _core, _jax, decompose
from jaxport.session import watched

X = np.linspace(0.1, 0.9, 6, dtype=np.float32).reshape(2, 3)
PLACES = np.arange(6, dtype=np.int32).reshape(2, 3)


def programs() -> Iterator[tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Programs that have most primitives with parameters among them."""
    yield lambda x: (x.T, x.reshape(3, 2), x[None], jnp.squeeze(x[:1]), x[::-1], x[0:1, 1:]), (X,)
    yield lambda x: (x.sum(0), x.max(1), x.min(), x.prod(), jnp.argmax(x), jnp.argmin(x, 1)), (X,)
    yield lambda x: (jnp.all(x > 0), jnp.any(x > 1)), (X,)
    yield lambda x: (jnp.cumsum(x, 0), lax.cumprod(x), lax.cummax(x), lax.cummin(x)), (X,)
    yield lambda x: (lax.cumlogsumexp(x), jnp.sort(x), lax.top_k(x, 2), jnp.round(x)), (X,)
    yield lambda x, i: (x[i[:, 0] % 2], x.at[0].add(1.0), x.at[0].set(2.0)), (X, PLACES)
    yield lambda x: (x.at[0].max(1.0), x.at[0].min(1.0), x.at[0].multiply(2.0)), (X,)
    yield lambda x: (x @ x.T, jnp.pad(x, 1), jnp.concatenate([x, x]), jnp.split(x, 3, 1)), (X,)
    yield lambda x: (x.astype(jnp.float16), lax.bitcast_convert_type(x, jnp.int32), x**3), (X,)
    yield lambda x: (lax.reduce_precision(x, 5, 10), lax.dynamic_slice(x, (0, 1), (1, 2))), (X,)
    yield lambda x: lax.conv_general_dilated(x[None, None], x[None, None], (1, 1), "SAME"), (X,)
    yield lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2), (1, 1), "VALID"), (X,)
    yield lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2), (1, 1), "VALID"), (X,)
    yield (
        jax.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2), (1, 1), "VALID").sum()),
        (X,),
    )
    yield lambda x: lax.scan(lambda c, v: (c + v, c), x[0], x), (X,)
    yield lambda x: lax.while_loop(lambda c: c[0, 0] < 9, lambda c: c * 2, x), (X,)
    yield lambda x: lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x), (X,)
    yield lambda x: jax.checkpoint(jnp.sin)(x) + jax.jit(jnp.cos)(x) + jax.nn.relu(x), (X,)
    yield lambda x: (jnp.linalg.cholesky(x @ x.T), jnp.linalg.qr(x), jnp.linalg.svd(x)), (X,)
    yield lambda x: (jnp.linalg.eigh(x @ x.T), jnp.linalg.solve(x @ x.T, x)), (X,)
    yield lambda x: (jnp.fft.rfft(x), lax.approx_max_k(x, 2)), (X,)
    yield lambda s: jax.random.normal(jax.random.split(jax.random.key(s))[0], (3,)), (np.uint32(1),)


def equations(jaxpr: Any) -> Iterator[Any]:
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    for eqn in inner.eqns:
        yield eqn
        for value in eqn.params.values():
            for part in value if isinstance(value, tuple | list) else [value]:
                if hasattr(part, "eqns") or hasattr(part, "jaxpr"):
                    yield from equations(part)


def one_of_each() -> dict[str, Any]:
    """An equation of each primitive of the programs, as a jaxpr of its own."""
    found: dict[str, Any] = {}
    for fn, arrays in programs():
        for eqn in equations(jax.make_jaxpr(fn)(*arrays)):
            name = _jax.RENAMED.get(eqn.primitive.name, eqn.primitive.name)
            if _core.parameters(name) is not None and name not in _jax.ALIASES:
                found.setdefault(name, eqn)
    return found


EQUATIONS = one_of_each()


def imported(eqn: Any, params: dict[str, Any]) -> None:
    """Reads a program of one equation with these parameters."""
    core = jax.extend.core
    changed = eqn.replace(params=params)
    operands = list(dict.fromkeys(v for v in eqn.invars if isinstance(v, core.Var)))
    whole = jax.make_jaxpr(lambda: 0)()
    inner = whole.jaxpr.replace(invars=operands, outvars=list(eqn.outvars), eqns=[changed])
    names = [f"x{i}" for i in range(len(operands))]
    outs = [f"y{i}" for i in range(len(eqn.outvars))]
    try:
        with watched() as session:
            _core.import_jaxpr(
                session,
                core.ClosedJaxpr(inner, []),
                _jax.Reader(),
                "f",
                names,
                outs,
                lambda _: "",
                [],
            )
    except jaxport.ConversionError as error:
        raise _jax.explained(error) from None


def test_the_programs_have_most_primitives() -> None:
    assert len(EQUATIONS) > 60


@pytest.mark.parametrize("name", sorted(EQUATIONS))
def test_a_parameter_that_is_not_known_is_named(name: str) -> None:
    eqn = EQUATIONS[name]
    changes = [{**eqn.params, "novelty": None}, {**eqn.params, "novelty": 1}]
    for old in eqn.params.keys() - _jax.IGNORED:
        renamed = {("novelty" if key == old else key): value for key, value in eqn.params.items()}
        changes.append(renamed)
    for params in changes:
        with pytest.raises(jaxport.ConversionError) as caught:
            imported(eqn, params)
        assert caught.value.code == "E031"
        assert "'novelty'" in caught.value.message
        assert f"'{name}'" in caught.value.message
        assert f"traced with JAX {jax.__version__}" in str(caught.value)


def test_every_primitive_of_jax_that_is_known_has_its_parameters_listed() -> None:
    names = {
        primitive.name
        for primitive in vars(jax.extend.core.primitives).values()
        if isinstance(primitive, jax.extend.core.Primitive)
    }
    assert len(names) > 150
    known = {name for name in names if _core.knows(name) or name in decompose._HOMES}
    missing = {name for name in known if _core.parameters(name) is None}
    assert not missing


def test_in_a_jir_file(tmp_path: Any) -> None:
    """The same for programs in text, whose parameters have their one spelling."""
    path = tmp_path / "f.jir"
    path.write_text(
        "func @f(%x: f32[4]) {\n"
        "  %y: f32[4] = sort %x {dimension = 0, is_stable = true, novelty = 1, num_keys = 1}\n"
        "  return %y\n}\n"
    )
    command = [sys.executable, "-m", "jaxport", "convert", path, "-o", tmp_path / "f.onnx"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "error[JXP-E031]: primitive 'sort' has a parameter 'novelty'" in done.stderr

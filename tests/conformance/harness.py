# SPDX-License-Identifier: Apache-2.0
"""JAX's own cases for its primitives. The only module that knows JAX's private test harness."""

from __future__ import annotations

import functools
import zlib
from typing import Any

import jax
import numpy as np
from jax._src.internal_test_util import test_harnesses

from conformance.case import Case, Program, unpacked
from conformance.ties import settled
from conformance.tolerances import difference
from jaxport import _jax


def _case(harness: Any) -> Case:
    dtype = np.dtype(harness.dtype).name
    return Case(harness.fullname, harness.group_name, dtype, functools.partial(_program, harness))


def _program(harness: Any) -> Program:
    random = np.random.RandomState(zlib.crc32(harness.fullname.encode()))
    arguments = [jax.tree.map(_array, argument) for argument in harness.dyn_args_maker(random)]
    return program_of(harness.dyn_fun, arguments, harness.group_name, harness.params)


def program_of(fn: Any, arguments: list[Any], group: str, params: Any = None) -> Program:
    """A function that is compared with itself at the tolerances of a group of primitives."""

    def expected() -> list[np.ndarray]:
        return list(map(np.asarray, jax.tree.leaves(jax.jit(fn)(*arguments))))

    def compare(wanted: list[np.ndarray], outputs: list[np.ndarray]) -> str | None:
        given = [unpacked(want, have) for want, have in zip(wanted, outputs, strict=True)]
        lhs, rhs = (settled(group, params, arguments, side) for side in (wanted, given))
        for i, (want, have) in enumerate(zip(lhs, rhs, strict=True)):
            found = difference(want, have, group)
            if found:
                return f"output {i} {found}"
        return None

    feeds = [_jax.host_array(value) for value in jax.tree.leaves(arguments)]
    options = {"enable_double_precision": bool(jax.config.jax_enable_x64)}
    return Program(fn, arguments, feeds, expected, compare, options)


def _array(leaf: Any) -> Any:
    return np.asarray(jax.numpy.asarray(leaf))  # of a dtype that JAX has


def cases() -> list[Case]:
    """Every case that JAX itself runs on a CPU, sorted by name.

    64-bit types take part when JAX has them enabled while this module is imported.
    """
    runnable = (h for h in test_harnesses.all_harnesses if h.filter("cpu"))
    return sorted(map(_case, runnable), key=lambda case: case.name)

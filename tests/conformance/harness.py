# SPDX-License-Identifier: Apache-2.0
"""JAX's own cases for its primitives. The only module that knows JAX's private test harness."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from jax._src.internal_test_util import test_harnesses


@dataclasses.dataclass(frozen=True)
class Case:
    """A function with a maker of its arguments. `name` is unique and the same in every process."""

    name: str
    group: str
    dtype: str
    fn: Callable[..., Any]
    make_arguments: Callable[[], list[Any]]
    params: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def _case(harness: Any) -> Case:
    def make_arguments() -> list[Any]:
        random = np.random.RandomState(zlib.crc32(harness.fullname.encode()))
        return [jax.tree.map(_array, argument) for argument in harness.dyn_args_maker(random)]

    dtype = np.dtype(harness.dtype).name
    return Case(
        harness.fullname,
        harness.group_name,
        dtype,
        harness.dyn_fun,
        make_arguments,
        harness.params,
    )


def _array(leaf: Any) -> Any:
    return np.asarray(jax.numpy.asarray(leaf))  # of a dtype that JAX has


def cases() -> list[Case]:
    """Every case that JAX itself runs on a CPU, sorted by name.

    64-bit types take part when JAX has them enabled while this module is imported.
    """
    runnable = (h for h in test_harnesses.all_harnesses if h.filter("cpu"))
    return sorted(map(_case, runnable), key=lambda case: case.name)

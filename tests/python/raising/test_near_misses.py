# SPDX-License-Identifier: Apache-2.0
"""What only looks like a macro op keeps its own arithmetic and JAX's numbers."""

from __future__ import annotations

import pytest

import jaxport
from raising.near_misses import NEAR_MISSES
from raising.table import measure
from support.cases import assert_quiet, structs


@pytest.mark.parametrize("near_miss", NEAR_MISSES, ids=lambda near_miss: near_miss.id)
def test_a_near_miss_is_not_raised(near_miss, capfd):
    measured = measure(near_miss.row())
    assert_quiet(capfd)
    op, _, attribute = near_miss.op.partition(".")
    if attribute:
        assert not _attributes(near_miss, op, attribute)
    else:
        assert op not in measured.ops


def _attributes(near_miss, op, name):
    """The values of an attribute that are not zero."""
    model = jaxport.to_onnx(near_miss.fn, structs(near_miss.inputs))
    found = (a for node in model.graph.node if node.op_type == op for a in node.attribute)
    return [a for a in found if a.name == name and (a.i or any(a.ints))]


def test_there_are_enough_near_misses():
    ids = [near_miss.id for near_miss in NEAR_MISSES]
    assert len(ids) == len(set(ids)) >= 60

# SPDX-License-Identifier: Apache-2.0
"""What the nodes of a model cost when layouts are compared, as in src/lower/layout/layout.h."""

from __future__ import annotations

from collections.abc import Mapping

# Relative to any other node.
PRICES = {"Transpose": 3, "Expand": 2}


def price_of(ops: Mapping[str, int]) -> int:
    """The price of a model that has so many nodes of each op."""
    return sum(PRICES.get(op, 1) * count for op, count in ops.items())

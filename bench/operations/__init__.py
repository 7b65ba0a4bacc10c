# SPDX-License-Identifier: Apache-2.0
"""The single operations that `make bench-ops` converts and runs, at sizes that networks have."""

from operations import arrays, elements, loops, numeric
from operations.operation import Operation

OPERATIONS: tuple[Operation, ...] = (
    *elements.OPERATIONS,
    *arrays.OPERATIONS,
    *numeric.OPERATIONS,
    *loops.OPERATIONS,
)

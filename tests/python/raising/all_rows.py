# SPDX-License-Identifier: Apache-2.0
"""All spellings of the suite, in the order of docs/raising.md."""

from __future__ import annotations

import warnings

from raising import (
    activations,
    attention,
    attention_by_hand,
    attention_variants,
    idioms,
    norms,
    norms_by_hand,
    resizing,
    rotary,
    stress,
    structures,
)
from raising.table import Measured, measure

SPELLINGS = [
    *attention.ROWS,
    *attention_by_hand.ROWS,
    *attention_variants.ROWS,
    *rotary.ROWS,
    *norms.ROWS,
    *norms_by_hand.ROWS,
    *activations.ROWS,
    *idioms.ROWS,
    *resizing.ROWS,
]

# Whole networks, and graphs whose layouts disagree.
MODELS = [*structures.ROWS, *stress.ROWS]
ROWS = [*SPELLINGS, *MODELS]


def measure_at(index: int) -> Measured:
    """Measures ROWS[index]; a row itself cannot be sent to another process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # libraries about each other
        return measure(ROWS[index])

# SPDX-License-Identifier: Apache-2.0
"""All spellings of the suite, in the order of docs/raising.md."""

from __future__ import annotations

from raising import (
    activations,
    attention,
    attention_by_hand,
    idioms,
    norms,
    rotary,
    stress,
    structures,
)

SPELLINGS = [
    *attention.ROWS,
    *attention_by_hand.ROWS,
    *rotary.ROWS,
    *norms.ROWS,
    *activations.ROWS,
    *idioms.ROWS,
]

# Whole networks, and graphs whose layouts disagree.
MODELS = [*structures.ROWS, *stress.ROWS]

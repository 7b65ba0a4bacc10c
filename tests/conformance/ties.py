# SPDX-License-Identifier: Apache-2.0
"""Results that JAX leaves open: in which order equal keys come when a sort need not be stable."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from conformance.harness import Case


def settled(
    case: Case, arguments: Sequence[np.ndarray], results: list[np.ndarray]
) -> list[np.ndarray]:
    """The results with a choice among equal keys that is the same for JAX and for a model."""
    if case.group == "approx_top_k" and len(results) == 2:
        elements, positions = results
        return [elements, np.take_along_axis(arguments[0], positions, axis=-1)]
    if case.group == "sort" and not case.params["is_stable"]:
        keys = case.params["num_keys"]
        axis = case.params["dimension"]
        order = np.lexsort(results[::-1], axis=axis)  # the last one is the primary key
        others = [np.take_along_axis(result, order, axis=axis) for result in results[keys:]]
        return [*results[:keys], *others]
    return results

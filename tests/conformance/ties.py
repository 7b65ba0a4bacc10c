# SPDX-License-Identifier: Apache-2.0
"""Results that JAX leaves open.

In which order equal keys come when a sort need not be stable, in which order eigenvalues come and
which sign or phase an eigenvector has, and which vectors span the space of an eigenvalue that
occurs several times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def settled(
    group: str,
    params: Mapping[str, Any],
    arguments: Sequence[np.ndarray],
    results: list[np.ndarray],
) -> list[np.ndarray]:
    """The results with a choice among equal keys that is the same for JAX and for a model."""
    if group == "approx_top_k" and len(results) == 2:
        elements, positions = results
        return [elements, np.take_along_axis(arguments[0], positions, axis=-1)]
    if group == "sort" and not params["is_stable"]:
        keys = params["num_keys"]
        axis = params["dimension"]
        order = np.lexsort(results[::-1], axis=axis)  # the last one is the primary key
        others = [np.take_along_axis(result, order, axis=axis) for result in results[keys:]]
        return [*results[:keys], *others]
    if group in _FACTORS and (len(results) > 1 or group == "eig"):
        return _FACTORS[group](results)
    return results


def _eig(results: list[np.ndarray]) -> list[np.ndarray]:
    """Eigenvalues in order, pairs of conjugate ones together; of each vector v the matrix v v^H."""
    w, *vectors = results
    if w.size == 0:
        return results
    size = np.abs(w).max(axis=-1, keepdims=True)
    order = np.lexsort((w.imag, np.round(w.real / size, 3)), axis=-1)
    columns = [np.take_along_axis(v, order[..., None, :], axis=-1) for v in vectors]
    projectors = [np.einsum("...ij,...kj->...jik", v, np.conj(v)) for v in columns]
    return [np.take_along_axis(w, order, axis=-1), *projectors]


def _eigh(results: list[np.ndarray]) -> list[np.ndarray]:
    """V diag(w) V^H, V^H V and w do not depend on the choice."""
    v, w = results
    return [_product(v * w[..., None, :], _adjoint(v)), _product(_adjoint(v), v), w]


def _svd(results: list[np.ndarray]) -> list[np.ndarray]:
    """The same for U diag(s) V^H; columns beyond the singular values span what is left."""
    s, u, vh = results
    count = s.shape[-1]
    matrix = _product(u[..., :count] * s[..., None, :], vh[..., :count, :])
    return [s, matrix, _product(_adjoint(u), u), _product(vh, _adjoint(vh))]


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    wide = np.complex128 if np.iscomplexobj(a) else np.float64
    return np.matmul(a.astype(wide), b.astype(wide)).astype(np.result_type(a, b))


def _adjoint(a: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(a, -1, -2))


_FACTORS = {"eig": _eig, "eigh": _eigh, "svd": _svd}

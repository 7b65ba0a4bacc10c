# SPDX-License-Identifier: Apache-2.0
"""How far a model may be from JAX: units in the last place by dtype and kind of arithmetic."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

# "exact": data movement, integers and comparisons. "rounding": one correctly rounded operation.
# "function": a library function such as exp, whose last bits differ between libraries.
# "sum": many roundings in another order; counted at the largest magnitude of the result.
# "network": whole networks.
ULPS = {
    "exact": {"float32": 0, "float64": 0, "bfloat16": 0, "float16": 0},
    "rounding": {"float32": 1, "float64": 1, "bfloat16": 1, "float16": 1},
    "function": {"float32": 16, "float64": 16, "bfloat16": 2, "float16": 2},
    "sum": {"float32": 32, "float64": 32, "bfloat16": 4, "float16": 4},
    "network": {"float32": 256, "float64": 256, "bfloat16": 16, "float16": 16},
}
_AT_LARGEST = {"sum", "network"}


def allowed(want: np.ndarray, kind: str) -> np.ndarray:
    """The largest allowed difference for each element of `want`."""
    if not jnp.issubdtype(want.dtype, jnp.floating):
        return np.zeros(want.shape)
    info = jnp.finfo(want.dtype)
    magnitude = np.abs(np.nan_to_num(want.astype(np.float64), posinf=0.0, neginf=0.0))
    if kind in _AT_LARGEST and want.size:
        magnitude = np.full(want.shape, magnitude.max())
    unit = np.maximum(magnitude, float(info.tiny)) * float(info.eps)
    return ULPS[kind][want.dtype.name] * unit


def assert_close(name: str, want: np.ndarray, have: np.ndarray, kind: str) -> None:
    """Fails with the output, the index and both values of the worst element."""
    assert have.dtype == want.dtype, f"{name}: dtype {have.dtype}, JAX has {want.dtype}"
    assert have.shape == want.shape, f"{name}: shape {have.shape}, JAX has {want.shape}"
    lhs, rhs = want.astype(np.float64), have.astype(np.float64)
    same = (want == have) | (np.isnan(lhs) & np.isnan(rhs))
    with np.errstate(invalid="ignore"):
        off = np.where(same, 0.0, np.abs(lhs - rhs) - allowed(want, kind))
    off = np.where(np.isnan(off), np.inf, off)
    if off.size and off.max() > 0:
        index = np.unravel_index(int(np.argmax(off)), off.shape)
        place = tuple(int(i) for i in index)
        raise AssertionError(f"{name}{list(place)}: {have[index]}, JAX has {want[index]} ({kind})")

# SPDX-License-Identifier: Apache-2.0
"""Rows of jax.numpy: functions that move elements."""

from __future__ import annotations

from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np

from conformance.functions.samples import M, Row, X, by, real, same, whole


def rows() -> Iterator[Row]:
    yield from same(
        jnp,
        "sort argsort ravel transpose matrix_transpose fliplr flipud flip rot90 squeeze atleast_1d "
        "atleast_2d atleast_3d diff ediff1d unwrap triu tril diagonal diag diagflat trace "
        "sort_complex array asarray unstack",
    )
    yield from _axes()
    yield from _joined()
    yield from _padded()
    yield from _picked()
    yield from _updated()
    yield from _sets()


def _axes() -> Iterator[Row]:
    yield "reshape", lambda x: jnp.reshape(x, (2, 6)), (X,)
    yield "resize", lambda x: jnp.resize(x, (5, 4)), (X,)
    yield "broadcast_to", lambda x: jnp.broadcast_to(x, (2, 3, 4)), (X,)
    yield "broadcast_arrays", lambda x, y: jnp.broadcast_arrays(x, y), (X, real(4))
    yield "expand_dims", lambda x: jnp.expand_dims(x, 1), (X,)
    yield "swapaxes", lambda x: jnp.swapaxes(x, 0, 1), (X,)
    yield "moveaxis", lambda x: jnp.moveaxis(x, 0, 1), (X,)
    yield "rollaxis", lambda x: jnp.rollaxis(x, 2), (real(2, 3, 2),)
    yield "apply_along_axis", lambda x: jnp.apply_along_axis(jnp.cumsum, 1, x), (X,)
    yield "apply_over_axes", lambda x: jnp.apply_over_axes(jnp.sum, x, [0, 1]), (X,)
    yield "meshgrid", lambda x, y: jnp.meshgrid(x, y), (real(3), real(2))
    yield "ix_", lambda x: x[jnp.ix_(np.array([0, 2]), np.array([1, 3]))], (X,)


def _joined() -> Iterator[Row]:
    yield "concatenate", lambda x, y: jnp.concatenate([x, y, x]), (X, X)
    yield "stack", lambda x, y: jnp.stack([x, y], 1), (X, X)
    yield from by(jnp, "hstack vstack dstack column_stack", lambda f, x, y: f([x, y]), X, X)
    yield "append", lambda x, y: jnp.append(x, y, axis=0), (X, X)
    yield "block", lambda x, y: jnp.block([[x, y], [y, x]]), (X, X)
    yield "split", lambda x: jnp.split(x, 2, 1), (X,)
    yield "array_split", lambda x: jnp.array_split(x, 3, 1), (X,)
    yield "hsplit", lambda x: jnp.hsplit(x, 2), (X,)
    yield "vsplit", lambda x: jnp.vsplit(x, 3), (X,)
    yield "dsplit", lambda x: jnp.dsplit(x, 2), (real(2, 3, 2),)
    yield "tile", lambda x: jnp.tile(x, (2, 1)), (X,)
    yield "repeat", lambda x: jnp.repeat(x, 2, 1), (X,)
    yield "roll", lambda x: jnp.roll(x, 1, 1), (X,)


def _padded() -> Iterator[Row]:
    yield "pad", lambda x: jnp.pad(x, 1), (X,)
    for mode in ("reflect", "edge", "wrap", "symmetric", "linear_ramp", "mean"):
        yield f"pad ({mode})", lambda x, m=mode: jnp.pad(x, 1, mode=m), (X,)


def _picked() -> Iterator[Row]:
    yield "x[1:, ::2]", lambda x: x[1:, ::2], (X,)
    yield "x[indices]", lambda x: x[jnp.array([2, 0, 2])], (X,)
    yield "take", lambda x: jnp.take(x, jnp.array([1, 3]), axis=1), (X,)
    yield "take (positions of a sort)", lambda x: jnp.take(x, jnp.argsort(x.ravel())[:3]), (X,)
    yield (
        "take_along_axis",
        lambda x: jnp.take_along_axis(x, jnp.argsort(-x, axis=1), axis=1),
        (X,),
    )
    yield "choose", lambda x: jnp.choose(jnp.array([1, 0, 2, 1]), x, mode="clip"), (X,)
    yield "compress", lambda x: jnp.compress(x[:, 0] > -9, x, axis=0, size=2), (X,)
    yield "extract", lambda x: jnp.extract(x > 0, x, size=5), (X,)
    yield "delete", lambda x: jnp.delete(x, 1, axis=1), (X,)
    yield "partition", lambda x: jnp.sort(jnp.partition(x, 2, axis=1)[:, :2], axis=1), (X,)
    yield "argpartition", lambda x: jnp.argpartition(x, 2, axis=1)[:, 2], (X,)
    yield "lexsort", lambda x: jnp.lexsort(x), (X,)


def _updated() -> Iterator[Row]:
    yield "x[mask] = 0", lambda x: jnp.where(jnp.abs(x) > 1, 0, x), (X,)
    yield "x.at[].add", lambda x: x.at[jnp.array([0, 2, 0])].add(x[:3] * 2), (X,)
    yield "x.at[].set", lambda x, y: x.at[1, 2:].set(y), (X, real(2))
    yield "x.at[].multiply", lambda x, y: x.at[jnp.array([0, 2])].multiply(y), (X, real(2, 4))
    yield "x.at[].max", lambda x, y: x.at[jnp.array([0, 2])].max(y), (X, real(2, 4))
    yield "x.at[].min", lambda x, y: x.at[jnp.array([0, 2])].min(y), (X, real(2, 4))
    yield "x.at[].apply", lambda x: x.at[jnp.array([0, 2])].apply(jnp.sin), (X,)
    yield "x.at[].get", lambda x: x.at[jnp.array([0, 7])].get(mode="fill", fill_value=0), (X,)
    yield "insert", lambda x: jnp.insert(x, 1, 0.5, axis=1), (X,)
    yield "put", lambda x: jnp.put(x, jnp.array([1, 5]), x[0, :2], inplace=False), (X,)
    yield (
        "put_along_axis",
        lambda x: jnp.put_along_axis(x, jnp.array([[0], [2], [1]]), x[:, 1:2], 1, inplace=False),
        (X,),
    )
    yield "place", lambda x: jnp.place(x, x > 0, x[0], inplace=False), (X,)
    yield "fill_diagonal", lambda x: jnp.fill_diagonal(x, x[0, 1], inplace=False), (M,)


def _sets() -> Iterator[Row]:
    """Functions whose result has as many elements as the data say, with a size that is given."""
    yield "nonzero", lambda x: jnp.nonzero(x > 0, size=5), (X,)
    yield "argwhere", lambda x: jnp.argwhere(x > 0, size=5), (X,)
    yield "flatnonzero", lambda x: jnp.flatnonzero(x > 0, size=5), (X,)
    yield "unique", lambda x: jnp.unique(jnp.round(x), size=4), (X,)
    yield from by(
        jnp,
        "unique_values unique_counts unique_inverse unique_all",
        lambda f, x: tuple(f(jnp.round(x), size=4))[:1],
        X,
    )
    yield from by(
        jnp,
        "union1d intersect1d setdiff1d setxor1d",
        lambda f, x, y: f(jnp.round(x), jnp.round(y), size=4),
        *(real(4), real(4)),
    )
    yield "isin", lambda x: jnp.isin(whole(x), jnp.array([1, 3])), (X,)

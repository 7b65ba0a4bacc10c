# SPDX-License-Identifier: Apache-2.0
"""Images that grow and shrink: Resize."""

from __future__ import annotations

import jax

from raising.idioms import IMAGE, NCHW, row
from raising.libraries import HAS_KERAS, with_keras
from raising.table import Row
from support.cases import f32

ROWS: list[Row] = []


def hand(name, fn, inputs, moves=0, nodes=1, **ops):
    ROWS.append(row("by hand", name, fn, inputs, moves, nodes, **ops))


hand(
    "image.resize, nearest",
    lambda x: jax.image.resize(x, (2, 4, 12, 12), "nearest"),
    NCHW,
    nodes=1,
    Resize=1,
)
hand(
    "image.resize, bilinear",
    lambda x: jax.image.resize(x, (2, 4, 12, 12), "bilinear"),
    NCHW,
    nodes=1,
    Resize=1,
)
hand(
    "image.resize, bilinear, NHWC",
    lambda x: jax.image.resize(x, (2, 12, 9, 4), "bilinear"),
    IMAGE,
    Resize=1,
)
hand(
    "image.resize, nearest, to odd sizes",
    lambda x: jax.image.resize(x, (2, 5, 11, 4), "nearest"),
    IMAGE,
    Resize=1,
)
hand(
    "image.resize, smaller, antialiased",
    lambda x: jax.image.resize(x, (2, 4, 3, 4), "bilinear"),
    NCHW,
    Resize=1,
)
hand(
    "image.resize, smaller, not antialiased",
    lambda x: jax.image.resize(x, (2, 3, 4, 4), "linear", antialias=False),
    IMAGE,
    Resize=1,
)
hand(
    "image.resize, bicubic", lambda x: jax.image.resize(x, (2, 9, 3, 4), "bicubic"), IMAGE, Resize=1
)
hand(
    "image.resize of one image, mapped",
    jax.vmap(lambda x: jax.image.resize(x, (12, 12, 4), "linear")),
    IMAGE,
    Resize=1,
)
hand(
    "image.resize of a sequence",
    lambda x: jax.image.resize(x, (2, 24, 4), "linear"),
    [f32(2, 6, 4)],
    moves=2,
    nodes=3,
    Resize=1,
)
hand(
    "image.resize of tokens",
    lambda x: jax.image.resize(x.reshape(2, 4, 4, 5), (2, 6, 6, 5), "bilinear").reshape(2, 36, 5),
    [f32(2, 16, 5)],
    moves=2,
    nodes=3,
    Resize=1,
)
hand(
    "repeat of rows and columns",
    lambda x: x.repeat(2, 2).repeat(2, 3),
    NCHW,
    Resize=1,
)
hand("repeat of rows and columns, NHWC", lambda x: x.repeat(3, 1).repeat(2, 2), IMAGE, Resize=1)
if HAS_KERAS:
    ROWS += [
        row(
            "keras",
            f"UpSampling2D, {method}",
            with_keras(
                lambda keras, method=method: keras.layers.UpSampling2D(2, interpolation=method),
                lambda m, x: m(x),
                (2, 6, 6, 4),
            ),
            IMAGE,
            Resize=1,
        )
        for method in ("nearest", "bilinear")
    ]
hand("repeat of elements, symbolic", lambda x: x.repeat(3, 1), [f32("B", 7)], Resize=1)

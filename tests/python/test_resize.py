# SPDX-License-Identifier: Apache-2.0
"""jax.image.resize and repetitions: ONNX Resize where it gives JAX's numbers, else as written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxport
from jaxport import runtime
from support.cases import Case, bf16, boolean, case, check, f16, f32, f64, i32, i64, parity, u8

SIZES = [(6, 6, 12, 12), (6, 8, 9, 4), (16, 12, 5, 7), (4, 5, 5, 4), (7, 7, 7, 11), (2, 3, 1, 9)]
SETTINGS = [("nearest", True)] + [(m, a) for m in ("linear", "cubic") for a in (True, False)]


def resize(method: str, *sizes: int, first: int = 1, antialias: bool = True) -> Callable[..., Any]:
    """A function that gives the dims from `first` on these sizes."""

    def resized(x: jax.Array) -> jax.Array:
        shape = (*x.shape[:first], *sizes, *x.shape[first + len(sizes) :])
        return jax.image.resize(x, shape, method, antialias)

    return resized


def of_tokens(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: fn(x.reshape(-1, 4, 4, 5)).reshape(-1, 42, 5)


IMAGES = [
    case(
        f"{method}, {to_h}x{to_w}, antialias {antialias}",
        resize(method, to_h, to_w, antialias=antialias),
        [f32("B", h, w, 3)],
        tolerance="network",
    )
    for method, antialias in SETTINGS
    for h, w, to_h, to_w in SIZES
]
CHANNELS_FIRST = [
    case(
        f"{method}, {to_h}x{to_w}, antialias {antialias}, NCHW",
        resize(method, to_h, to_w, first=2, antialias=antialias),
        [f32(2, 3, h, w)],
        tolerance="network",
    )
    for method, antialias in SETTINGS
    for h, w, to_h, to_w in SIZES[:3]
]
SHAPES = [
    row
    for method, antialias in SETTINGS
    for row in [
        case(
            f"one axis, {method}, antialias {antialias}",
            resize(method, 9, first=0, antialias=antialias),
            [f32(6)],
            also=[[f32(6, 4)], [f32(6, "B", 2)]],
            tolerance="network",
        ),
        case(
            f"last axis, {method}, antialias {antialias}",
            resize(method, 3, first=2, antialias=antialias),
            [f32(2, "B", 6)],
            also=[[f32(4, 1, 6)], [f32(2, 1, 6, 2, 3)]],
            tolerance="network",
        ),
        case(
            f"no channels, {method}, antialias {antialias}",
            resize(method, 9, 3, first=0, antialias=antialias),
            [f32(6, 7)],
            also=[[f32(6, 7, 2)], [f32(5, 6, 2, 3)]],
            tolerance="network",
        ),
        case(
            f"volume, {method}, antialias {antialias}",
            resize(method, 5, 3, 7, antialias=antialias),
            [f32(2, 4, 4, 6, 3)],
            tolerance="network",
        ),
        case(
            f"mapped, {method}, antialias {antialias}",
            jax.vmap(jax.vmap(resize(method, 8, 6, first=0, antialias=antialias)), 3, 1),
            [f32("B", 4, 3, 2)],
            tolerance="network",
        ),
        case(
            f"tokens, {method}, antialias {antialias}",
            of_tokens(resize(method, 7, 6, antialias=antialias)),
            [f32("B", 16, 5)],
            tolerance="network",
        ),
    ]
]
DTYPES = [
    case(
        f"dtypes, {method}",
        resize(method, 8, 6),
        [bf16(2, 4, 3, 2)],
        also=[[f16(2, 4, 3, 2)], [f64(2, 4, 3, 2)]],
        tolerance="network",
    )
    for method, _ in SETTINGS[::2]
] + [
    case(
        "dtypes, integers",
        resize("nearest", 8, 5),
        [u8(2, 4, 3, 2)],
        also=[[i32(2, 4, 3, 2)], [i64(2, 4, 3, 2)], [boolean(2, 4, 3, 2)]],
        tolerance="exact",
    ),
]
LEFT = [  # sizes and kernels that stay as they are written
    case("large, odd ratio", resize("linear", 160, 3), [f32(1, 224, 6, 2)], tolerance="network"),
    case("lanczos3", resize("lanczos3", 9, 4), [f32(2, 6, 6, 3)], tolerance="network"),
    case(
        "symbolic size",
        lambda x: jax.image.resize(x, (x.shape[0], 2 * x.shape[1], x.shape[2]), "nearest"),
        [f32(2, "H", 3)],
        tolerance="exact",
    ),
]


@parity([*IMAGES, *CHANNELS_FIRST, *SHAPES, *DTYPES, *LEFT])
def test_values(case: Case, capfd: pytest.CaptureFixture[str]) -> None:
    check(case, capfd)


def ops(fn: Callable[..., Any], shape: tuple[int, ...], **options: Any) -> dict[str, int]:
    model = jaxport.to_onnx(fn, [shape], return_mode="ir", **options)
    return dict(model.stats()["ops"])


@pytest.mark.parametrize(
    ("fn", "shape"),
    [
        (resize("nearest", 9, 7), (2, 6, 6, 3)),
        (resize("linear", 12, 12), (2, 6, 6, 3)),
        (resize("linear", 448, 448, first=2), (1, 3, 224, 224)),
        (resize("linear", 3, 4), (2, 6, 6, 3)),
        (resize("cubic", 3, 12), (2, 6, 6, 3)),
        (resize("linear", 3, 12, first=2, antialias=False), (2, 3, 6, 6)),
        (jax.vmap(resize("linear", 12, 12, first=0)), (2, 6, 6, 3)),
    ],
)
def test_is_one_resize(fn: Callable[..., Any], shape: tuple[int, ...]) -> None:
    assert ops(fn, shape) == {"Resize": 1}


@pytest.mark.parametrize(
    ("options", "fn"),
    [
        ({"opset": 17}, resize("linear", 12, 12)),
        ({"raise_": False}, resize("linear", 12, 12)),
        ({"without_rules": ["resize"]}, resize("nearest", 9, 9)),
        ({}, resize("lanczos3", 12, 12)),
        ({}, resize("linear", 160, 160)),  # of 224: the weights of ONNX Runtime are 1e-5 off
        ({}, resize("cubic", 3, 3, antialias=False)),  # 16 times as slow as its parts
    ],
)
def test_stays_as_it_is(options: dict[str, Any], fn: Callable[..., Any]) -> None:
    side = 224 if fn(jnp.zeros((1, 6, 6, 1))).shape[1] == 160 else 6
    assert "Resize" not in ops(fn, (2, side, side, 3), **options)


def test_cubic_of_many_small_images_is_left_to_matmul() -> None:
    grow = resize("cubic", 32, 32)
    assert "Resize" not in ops(grow, (8, 16, 16, 64))
    assert ops(grow, (8, 16, 16, 64), target="onnx") == {"Resize": 1}


def test_nearest_takes_the_same_elements_at_all_sizes() -> None:
    sizes = range(1, 33)
    arrays = [np.arange(n, dtype=np.float32) for n in sizes]
    for to in sizes:
        one = resize("nearest", to, first=0)
        model = jaxport.to_onnx(
            lambda *xs, one=one: [one(x) for x in xs], [x.shape for x in arrays]
        )
        have = runtime.run(runtime.open_session(model), arrays).values()
        with jax.disable_jit():  # compiled, JAX divides by multiplying with a reciprocal
            expected = [one(x) for x in arrays]
        for x, want, got in zip(arrays, expected, have, strict=True):
            assert np.array_equal(want, got), f"{x.size} to {to}"

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

SIZES = [(6, 6, 12, 12), (16, 12, 5, 7), (4, 5, 5, 4), (7, 7, 7, 11), (2, 3, 1, 9)]
SETTINGS = [("nearest", True)] + [(m, a) for m in ("linear", "cubic") for a in (True, False)]


def resize(method: str, *sizes: int, first: int = 1, antialias: bool = True) -> Callable[..., Any]:
    """A function that gives the dims from `first` on these sizes."""

    def resized(x: jax.Array) -> jax.Array:
        shape = (*x.shape[:first], *sizes, *x.shape[first + len(sizes) :])
        return jax.image.resize(x, shape, method, antialias)

    return resized


def of_tokens(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: fn(x.reshape(-1, 4, 4, 5)).reshape(-1, 42, 5)


# Shapes are tested with a method that gathers and one that computes, methods with one shape each.
LAYOUTS = SETTINGS[:2]


def row(
    name: str, setting: tuple[str, bool], fn: Callable[..., Any], *shapes: tuple[int | str, ...]
) -> list[Case]:
    """At the first of these shapes, and at the others where shapes are tested."""
    first, *others = [[f32(*shape)] for shape in shapes]
    also = others if setting in LAYOUTS else []
    method, antialias = setting
    return case(f"{name}, {method}, antialias {antialias}", fn, first, also, tolerance="network")


def rows_of(setting: tuple[str, bool]) -> list[list[Case]]:
    def to(*sizes: int, first: int = 1) -> Callable[..., Any]:
        return resize(setting[0], *sizes, first=first, antialias=setting[1])

    mapped = jax.vmap(jax.vmap(to(8, 6, first=0)), 3, 1)
    return [
        row("NHWC", setting, to(9, 4), (2, 6, 8, 3), ("B", 6, 8, 3)),
        row("NCHW", setting, to(9, 4, first=2), (2, 3, 6, 8)),
        row("one axis", setting, to(9, first=0), (6,), (6, 4), (6, "B", 2)),
        row(
            "last axis",
            setting,
            to(3, first=2),
            (4, 1, 6),
            (2, "B", 6),
            (2, 1, 6, 2, 3),
        ),
        row("no channels", setting, to(9, 3, first=0), (6, 7), (6, 7, 2), (5, 6, 2, 3)),
        row("volume", setting, to(5, 3, 7), (2, 4, 4, 6, 3)),
        row("mapped", setting, mapped, (2, 4, 3, 2), ("B", 4, 3, 2)),
        row("tokens", setting, of_tokens(to(7, 6)), (2, 16, 5), ("B", 16, 5)),
    ]


SHAPES = [row for setting in SETTINGS for row in rows_of(setting)]
OTHER_SIZES = [
    row(
        f"{h}x{w} to {to_h}x{to_w}",
        setting,
        resize(setting[0], to_h, to_w, antialias=setting[1]),
        (2, h, w, 3),
    )
    for setting in SETTINGS
    for h, w, to_h, to_w in SIZES
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


@parity([*SHAPES, *OTHER_SIZES, *DTYPES, *LEFT])
def test_numbers_are_jax_s(case: Case, capfd: pytest.CaptureFixture[str]) -> None:
    check(case, capfd)


def ops(fn: Callable[..., Any], shape: tuple[int, ...], **options: Any) -> dict[str, int]:
    model = jaxport.to_onnx(fn, [shape], return_mode="model", **options)
    return dict(model.stats()["ops"])


@pytest.mark.parametrize(
    ("fn", "shape"),
    [
        (resize("linear", 448, 448, first=2), (1, 3, 224, 224)),
        (resize("linear", 3, 12, first=2, antialias=False), (2, 3, 6, 6)),
    ],
)
def test_it_is_one_resize(fn: Callable[..., Any], shape: tuple[int, ...]) -> None:
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
def test_it_stays_as_it_is(options: dict[str, Any], fn: Callable[..., Any]) -> None:
    side = 224 if fn(jnp.zeros((1, 6, 6, 1))).shape[1] == 160 else 6
    assert "Resize" not in ops(fn, (2, side, side, 3), **options)


def test_cubic_of_many_small_images_is_left_to_matmul() -> None:
    grow = resize("cubic", 32, 32)
    assert "Resize" not in ops(grow, (8, 16, 16, 64))
    assert ops(grow, (8, 16, 16, 64), target="onnx") == {"Resize": 1}


def nearest(size: int, to: int) -> np.ndarray:
    """The places that JAX computes. Compiled, it divides by multiplying with a reciprocal."""
    half = np.float32(0.5)
    return np.floor((np.arange(to, dtype=np.float32) + half) * np.float32(size) / np.float32(to))


def test_nearest_takes_the_same_elements_at_all_sizes() -> None:
    sizes = range(1, 33)
    arrays = [np.arange(n, dtype=np.float32) for n in sizes]
    for to in sizes:
        one = resize("nearest", to, first=0)
        model = jaxport.to_onnx(
            lambda *xs, one=one: [one(x) for x in xs], [x.shape for x in arrays]
        )
        have = runtime.run(runtime.open_session(model), arrays).values()
        for size, got in zip(sizes, have, strict=True):
            assert np.array_equal(nearest(size, to), got), f"{size} to {to}"


def test_jax_takes_the_same_elements() -> None:
    with jax.disable_jit():
        for size, to in ((10, 25), (7, 12), (32, 5)):
            want = resize("nearest", to, first=0)(jnp.arange(size, dtype=jnp.float32))
            assert np.array_equal(want, nearest(size, to)), f"{size} to {to}"

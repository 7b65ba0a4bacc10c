# SPDX-License-Identifier: Apache-2.0
"""Weights that are equal are stored once, wherever they come from."""

import numpy as np

import jaxport

SHAPE = (256, 256)
BYTES = 4 * 256 * 256


def weight() -> np.ndarray:
    return np.random.default_rng(0).standard_normal(SHAPE, dtype=np.float32)


def stored(fn) -> int:
    return jaxport.to_onnx(fn, [SHAPE], return_mode="model").stats()["initializer_bytes"]


def test_equal_arrays_at_different_addresses():
    a, b = weight(), weight()
    assert stored(lambda x: (x @ a) @ b) == BYTES


def test_arrays_that_differ_in_one_element():
    a, b = weight(), weight()
    b[100, 101] += 1
    assert stored(lambda x: (x @ a) @ b) == 2 * BYTES


def test_equal_arrays_that_are_transposed_alike():
    a, b = weight(), weight()
    assert stored(lambda x: (x @ a.T) @ b.T) == BYTES


def test_zeros_of_both_signs_are_not_equal():
    a, b = np.zeros(SHAPE, np.float32), np.full(SHAPE, -0.0, np.float32)
    assert stored(lambda x: (x + a) * (x / b)) == 2 * BYTES


def test_nan_of_the_same_bits_is_equal():
    a, b = (np.full(SHAPE, np.nan, np.float32) * np.tri(256, dtype=np.float32) for _ in range(2))
    assert stored(lambda x: (x + a) @ (x * b)) == BYTES

# SPDX-License-Identifier: Apache-2.0
"""Random chains of stacks, reshapes, transposes and broadcasts with a symbolic batch."""

from __future__ import annotations

import math
import random

import jax.numpy as jnp
import numpy as np
import pytest

import jaxport
from jaxport import runtime
from support.cases import examples_of, f32, load, run_jax, structs
from support.tolerances import assert_close

LARGEST = 3000  # elements at a batch of 3


class Chain:
    """An array and its dims (c, p), each of size c * B**p.

    Steps choose by these pairs alone: they are the same for a symbolic batch and for every number.
    """

    def __init__(self, numpy, pick, batch, x, dims):
        self.numpy, self.pick, self.batch, self.x, self.dims = numpy, pick, batch, x, dims

    def sizes(self, dims):
        return tuple(c * self.batch**p if p else c for c, p in dims)

    def reshape(self, dims):
        self.x, self.dims = self.x.reshape(self.sizes(dims)), dims

    def at(self, extra=0):
        return self.pick.randrange(len(self.dims) + extra)

    def has_room(self):
        return len(self.dims) < 6 and math.prod(c * 3**p for c, p in self.dims) < LARGEST

    def merge(self):
        if len(self.dims) > 1:
            i = self.pick.randrange(len(self.dims) - 1)
            (c, p), (d, q) = self.dims[i : i + 2]
            self.reshape([*self.dims[:i], (c * d, p + q), *self.dims[i + 2 :]])

    def split(self):
        i = self.at()
        c, p = self.dims[i]
        factor = next((n for n in (2, 3) if c % n == 0), 1)
        parts = [(factor, 0), (c // factor, p)]
        self.pick.shuffle(parts)
        self.reshape([*self.dims[:i], *parts, *self.dims[i + 1 :]])

    def regroup(self):
        """The batch in front, all else behind it."""
        c, p = math.prod(c for c, _ in self.dims), sum(p for _, p in self.dims)
        if p:
            self.reshape([(1, 1), *[(1, 0)] * self.pick.randrange(2), (c, p - 1)])

    def unit(self):
        i = self.at(1)
        self.reshape([*self.dims[:i], (1, 0), *self.dims[i:]])

    def transpose(self):
        order = self.pick.sample(range(len(self.dims)), len(self.dims))
        self.x, self.dims = self.x.transpose(order), [self.dims[i] for i in order]

    def broadcast(self):
        i, size = self.at(1), self.pick.choice([(2, 0), (3, 0), (1, 1)])
        if self.has_room():
            self.dims.insert(i, size)
            more = self.numpy.expand_dims(self.x, i)
            self.x = self.numpy.broadcast_to(more, self.sizes(self.dims))

    def stack(self):
        i = self.at(1)
        if self.has_room():
            self.dims.insert(i, (2, 0))
            self.x = self.numpy.stack([self.x, self.numpy.cos(self.x)], i)

    def concatenate(self):
        i = self.at()
        if self.has_room():
            self.dims[i] = (2 * self.dims[i][0], self.dims[i][1])
            self.x = self.numpy.concatenate([self.x, self.numpy.sin(self.x)], i)

    def take(self):
        i = self.at()
        if len(self.dims) > 1:
            del self.dims[i]
            self.x = self.numpy.take(self.x, 0, i)

    def compute(self):
        sums = self.numpy.cos(self.x).sum(self.at(), keepdims=True)
        self.x = self.numpy.sin(self.x) + sums


STEPS = (
    *(Chain.merge, Chain.split, Chain.regroup, Chain.unit, Chain.transpose, Chain.broadcast),
    *(Chain.stack, Chain.concatenate, Chain.take, Chain.compute),
)


def function_of(seed, numpy):
    """A function of arrays [B,1,6], [B,6] and [B,4], in NumPy or in jax.numpy."""

    def run(a, b, c):
        pick = random.Random(seed)
        batch = a.shape[0]
        starts = [
            (a * numpy.sin(b), [(1, 1), (1, 1), (6, 0)]),
            (a * numpy.sin(b[:, None]), [(1, 1), (1, 0), (6, 0)]),
            (b[:, None] - c[:, :, None], [(1, 1), (4, 0), (6, 0)]),
            (c, [(1, 1), (4, 0)]),
        ]
        chain = Chain(numpy, pick, batch, *pick.choice(starts))
        for _ in range(pick.randrange(4, 10)):
            pick.choice(STEPS)(chain)
        return chain.x

    return run


@pytest.mark.parametrize("seed", range(80))
def test_a_chain_has_the_numbers_of_numpy(seed):
    specs = [f32("B", 1, 6), f32("B", 6), f32("B", 4)]
    session = load(jaxport.to_onnx(function_of(seed, jnp), structs(specs), opset=23), 23)
    for arrays in examples_of(specs, sizes=(1, 2, 3)):
        (have,) = runtime.run(session, arrays).values()
        assert_close(f"chain {seed}", function_of(seed, np)(*arrays), have, "network")


def test_reshape_that_fits_only_some_sizes():
    """JAX traces it; the model is right where it fits and refuses the other sizes."""
    specs = [f32("B", 1, 3), f32("B", 3)]

    def fn(a, b):
        return jnp.stack([a * b, a + b], -1).reshape(a.shape[0], 1, 6)

    session = load(jaxport.to_onnx(fn, structs(specs), opset=23), 23)
    one, two, _ = examples_of(specs, sizes=(1, 2, 3))
    (have,) = runtime.run(session, one).values()
    assert_close("output", run_jax(fn, one)[0], have, "exact")
    with pytest.raises(Exception, match="cannot be reshaped"):
        runtime.run(session, two)


def test_reshape_that_fits_no_size():
    with pytest.raises(jaxport.ConversionError, match="the numbers of elements differ"):
        jaxport.to_onnx(lambda x: x.reshape(x.shape[0], 6), structs([f32("B", 12)]))

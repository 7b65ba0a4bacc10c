# SPDX-License-Identifier: Apache-2.0
"""Programs that look like a macro op and are none: the op must not appear."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from raising.table import Row
from support.cases import Spec, boolean, f32

softmax, exp, tanh, erf = jax.nn.softmax, jnp.exp, jnp.tanh, lax.erf
X = [f32(3, 7)]
XY = [f32(3, 7), f32(3, 7)]


@dataclasses.dataclass(frozen=True)
class NearMiss:
    """A function that must not become `op`; "Op.attribute" means the op with this attribute set."""

    op: str
    name: str
    fn: Callable[..., Any]
    inputs: Sequence[Spec]

    @property
    def id(self) -> str:
        return f"{self.op}: {self.name}"

    def row(self) -> Row:
        return Row("near miss", "by hand", self.name, self.fn, self.inputs, {})


NEAR_MISSES: list[NearMiss] = []


def near(op, name, inputs=X):
    """Adds a function to the near misses."""

    def add(fn):
        NEAR_MISSES.append(NearMiss(op, name, fn, inputs))
        return fn

    return add


def hand(op, name, fn, inputs=X):
    NEAR_MISSES.append(NearMiss(op, name, fn, inputs))


# --- attention; q, k, v are (batch, heads, time, size)

QKV = [f32(2, 4, 5, 8), f32(2, 4, 7, 8), f32(2, 4, 7, 8)]
SELF = [f32(2, 4, 5, 8)] * 3
MASKED = [*QKV, boolean(5, 7)]


def scores_of(q, k):
    return q @ k.mT / math.sqrt(8)


@near("Attention", "the weights are returned too", QKV)
def weights_returned(q, k, v):
    weights = softmax(scores_of(q, k))
    return weights @ v, weights


hand("Attention", "softmax over the queries", lambda q, k, v: softmax(scores_of(q, k), 2) @ v, QKV)
hand("Attention", "softmax over the heads", lambda q, k, v: softmax(scores_of(q, k), 1) @ v, QKV)
hand(
    "Attention",
    "softmax over heads and keys",
    lambda q, k, v: softmax(scores_of(q, k), (1, 3)) @ v,
    QKV,
)
hand("Attention", "relu instead of softmax", lambda q, k, v: jax.nn.relu(scores_of(q, k)) @ v, QKV)
hand(
    "Attention",
    "sigmoid instead of softmax",
    lambda q, k, v: jax.nn.sigmoid(scores_of(q, k)) @ v,
    QKV,
)
hand("Attention", "log_softmax", lambda q, k, v: jax.nn.log_softmax(scores_of(q, k)) @ v, QKV)
hand("Attention", "softmax twice", lambda q, k, v: softmax(softmax(scores_of(q, k))) @ v, QKV)
hand("Attention", "squared scores", lambda q, k, v: softmax(scores_of(q, k) ** 2) @ v, QKV)
hand(
    "Attention",
    "weights used transposed",
    lambda q, k, v: jnp.einsum("bhts,bhtd->bhsd", softmax(scores_of(q, k)), v),
    SELF,
)
hand(
    "Attention", "scores times a mask", lambda q, k, v, m: softmax(scores_of(q, k) * m) @ v, MASKED
)
hand(
    "Attention",
    "masked with zero",
    lambda q, k, v, m: softmax(jnp.where(m, scores_of(q, k), 0.0)) @ v,
    MASKED,
)
hand(
    "Attention",
    "masked with a small number",
    lambda q, k, v, m: softmax(jnp.where(m, scores_of(q, k), -2.0)) @ v,
    MASKED,
)
hand(
    "Attention",
    "masked after softmax",
    lambda q, k, v, m: jnp.where(m, softmax(scores_of(q, k)), 0.0) @ v,
    MASKED,
)
hand(
    "Attention",
    "masked scores times an input",
    lambda q, k, v, m, t: softmax(jnp.where(m, scores_of(q, k), -1e9) * t) @ v,
    [*MASKED, f32(lo=-1, hi=0)],
)
hand(
    "Attention",
    "a bias beside a fill of -1e9",
    lambda q, k, v, m, b: softmax(jnp.where(m, scores_of(q, k) + b, -1e9)) @ v,
    [*MASKED, f32(5, 7)],
)
hand(
    "Attention",
    "a bias outside of a fill of -1e4",
    lambda q, k, v, m, b: softmax(jnp.where(m, scores_of(q, k), -1e4) + b) @ v,
    [*MASKED, f32(5, 7)],
)
hand(
    "Attention",
    "a factor of the values' summed axis",
    lambda q, k, v, g: jnp.einsum("bhtsj,bhsj->bht", softmax(scores_of(q, k))[..., None] * g, v),
    [*QKV, f32(8)],
)
hand(
    "Attention",
    "scaled by a table of queries and keys",
    lambda q, k, v, m: softmax(scores_of(q, k) * m) @ v,
    [*QKV, f32(5, 7)],
)
hand(
    "Attention",
    "heads mixed after softmax",
    lambda q, k, v, m: jnp.einsum("bhts,hg->bgts", softmax(scores_of(q, k)), m) @ v,
    [*QKV, f32(4, 4)],
)
hand(
    "Attention",
    "additive scores",
    lambda q, k, v: softmax(tanh(q[..., :, None, :] + k[..., None, :, :]).sum(-1)) @ v,
    QKV,
)
hand("Attention", "linear attention", lambda q, k, v: softmax(q) @ (softmax(k, -2).mT @ v), QKV)
hand(
    "Attention",
    "scores by distance",
    lambda q, k, v: softmax(-jnp.abs(q[..., :, None, :] - k[..., None, :, :]).sum(-1)) @ v,
    QKV,
)


hand(
    "Attention",
    "a value for each query and key",
    lambda q, k, v: jnp.einsum("bhts,bhtsd->bhtd", softmax(scores_of(q, k)), v),
    [*QKV[:2], f32(2, 4, 5, 7, 8)],
)
hand(
    "Attention",
    "values of the queries",
    lambda q, k, v: jnp.einsum("bhts,bhtd->bhtd", softmax(scores_of(q, k)), v),
    SELF,
)
hand("Attention", "squared weights", lambda q, k, v: softmax(scores_of(q, k)) ** 2 @ v, QKV)
hand(
    "Attention",
    "difference of two softmaxes",
    lambda q, k, v: (softmax(scores_of(q, k)) - 0.3 * softmax(scores_of(k, q))) @ v,
    SELF,
)
hand(
    "Attention",
    "weights below a threshold dropped",
    lambda q, k, v: (lambda w: jnp.where(w >= 0.2, w, 0.0) @ v)(softmax(scores_of(q, k))),
    QKV,
)
hand(
    "Attention",
    "a mask that is large",
    lambda q, k, v, m: softmax(jnp.where(m, scores_of(q, k), 1e9)) @ v,
    MASKED,
)
hand(
    "Attention",
    "masked below the cap",
    lambda q, k, v, m: softmax(5 * tanh(jnp.where(m, scores_of(q, k), -1e9))) @ v,
    MASKED,
)
hand(
    "Attention",
    "one more logit that no value belongs to",
    lambda q, k, v: softmax(jnp.pad(scores_of(q, k), ((0, 0),) * 3 + ((0, 1),)))[..., :-1] @ v,
    QKV,
)


@near("Attention", "masked exponentials by the whole sum", MASKED)
def masked_by_whole(q, k, v, m):
    e = exp(scores_of(q, k))
    return (e * m / e.sum(-1, keepdims=True)) @ v


@near("Attention", "masked exponentials by the sum of another mask", MASKED)
def masked_by_other(q, k, v, m):
    e = exp(scores_of(q, k))
    return (e * m / (e * ~m).sum(-1, keepdims=True)) @ v


@near("Attention", "exponentials set to one", MASKED)
def set_to_one(q, k, v, m):
    e = jnp.where(m, exp(scores_of(q, k)), 1.0)
    return (e / e.sum(-1, keepdims=True)) @ v


@near("Attention", "an eps in the sum of masked exponentials", MASKED)
def masked_with_eps(q, k, v, m):
    e = exp(scores_of(q, k)) * m
    return (e / (e.sum(-1, keepdims=True) + 1e-6)) @ v


@near("Attention", "softmax with one more in the sum", QKV)
def softmax_one(q, k, v):
    e = exp(scores_of(q, k))
    return (e / (1 + e.sum(-1, keepdims=True))) @ v


@near("Attention", "sum over the queries", QKV)
def sum_over_queries(q, k, v):
    e = exp(scores_of(q, k))
    return (e / e.sum(-2, keepdims=True)) @ v


@near("Attention", "late normalisation by another sum", QKV)
def other_sum(q, k, v):
    scores = scores_of(q, k)
    return (exp(scores) @ v) / exp(0.9 * scores).sum(-1, keepdims=True)


@near("Attention", "cap around the mask", MASKED)
def cap_around_mask(q, k, v, keep):
    scores = jnp.where(keep, scores_of(q, k), -1e9)
    return softmax(3.0 * tanh(scores / 3.0)) @ v


@near("Attention", "dropout of the weights", QKV)
def weights_dropped(q, k, v):
    keep = jax.random.bernoulli(jax.random.key(0), 0.8, (5, 7))
    return jnp.where(keep, softmax(scores_of(q, k)) / 0.8, 0.0) @ v


def masked_by(name, make, inputs=SELF):
    def fn(q, k, v):
        keep = make(q.shape[2], k.shape[2])
        return softmax(jnp.where(keep, scores_of(q, k), -1e9)) @ v

    hand("Attention.is_causal", name, fn, inputs)


masked_by("causal with the next key", lambda t, s: jnp.tri(t, s, 1, dtype=bool))
masked_by("strictly causal", lambda t, s: jnp.tri(t, s, -1, dtype=bool))
masked_by("anti-causal", lambda t, s: ~jnp.tri(t, s, -1, dtype=bool))
masked_by("causal from the end", lambda t, s: jnp.tri(t, s, s - t, dtype=bool), QKV)
masked_by("causal in blocks", lambda t, s: jnp.arange(s) // 2 <= jnp.arange(t)[:, None] // 2)
masked_by("causal and one cell", lambda t, s: jnp.tri(t, s, dtype=bool).at[0, 4].set(True))
masked_by("every second key", lambda t, s: jnp.broadcast_to(jnp.arange(s) % 2 == 0, (t, s)))

# --- softmax

hand("Softmax", "a constant in the sum", lambda x: exp(x) / (exp(x).sum(-1, keepdims=True) + 0.1))
hand("Softmax", "another exponent above", lambda x: exp(2 * x) / exp(x).sum(-1, keepdims=True))
hand("Softmax", "maximum instead of sum", lambda x: exp(x) / exp(x).max(-1, keepdims=True))
hand(
    "Softmax",
    "maximum over another axis",
    lambda x: exp(x - x.max(0)) / exp(x).sum(-1, keepdims=True),
)
hand("Softmax", "sum of another tensor", lambda x, y: exp(x) / exp(y).sum(-1, keepdims=True), XY)
hand("LogSoftmax", "half of the sum", lambda x: x - 0.5 * jax.nn.logsumexp(x, -1, keepdims=True))
hand(
    "LogSoftmax", "a constant in the sum", lambda x: x - jnp.log(1 + exp(x).sum(-1, keepdims=True))
)
hand("LogSoftmax", "of another tensor", lambda x, y: y - jax.nn.logsumexp(x, -1, keepdims=True), XY)
hand("ReduceLogSumExp", "sums that overflow", lambda x: jnp.log(exp(40 * x).sum(-1)))
hand("ReduceLogSumExp", "a constant in the sum", lambda x: jnp.log(1 + exp(x).sum(-1)))

# --- norms


def mean(x, axis=-1):
    return x.mean(axis, keepdims=True)


def var(x, axis=-1, **options):
    return x.var(axis, keepdims=True, **options)


LN = "LayerNormalization"
RMS = "RMSNormalization"
hand(LN, "ddof=1", lambda x: (x - mean(x)) / jnp.sqrt(var(x, ddof=1) + 1e-5))
hand(LN, "mean over another axis", lambda x: (x - mean(x, 0)) / jnp.sqrt(var(x) + 1e-5))
hand(LN, "variance over another axis", lambda x: (x - mean(x)) / jnp.sqrt(var(x, 0) + 1e-5))
hand(LN, "variance over more axes", lambda x: (x - mean(x)) / jnp.sqrt(x.var() + 1e-5))
hand(LN, "epsilon outside of the root", lambda x: (x - mean(x)) / (jnp.sqrt(var(x)) + 0.1))
hand(LN, "no root", lambda x: (x - mean(x)) / (var(x) + 1e-5))
hand(LN, "mean absolute deviation", lambda x: (x - mean(x)) / (mean(jnp.abs(x - mean(x))) + 1e-5))
hand(LN, "variance of another tensor", lambda x, y: (x - mean(x)) / jnp.sqrt(var(y) + 1e-5), XY)
hand(LN, "mean of another tensor", lambda x, y: (x - mean(y)) / jnp.sqrt(var(x) + 1e-5), XY)
hand(LN, "nothing subtracted", lambda x: x * lax.rsqrt(var(x) + 1e-5))
hand(
    LN, "mean square of x, not of x - mean", lambda x: (x - mean(x)) * lax.rsqrt(mean(x * x) + 1e-5)
)
hand(
    LN,
    "maximum instead of mean",
    lambda x: (x - x.max(-1, keepdims=True)) * lax.rsqrt(var(x) + 1e-5),
)
hand(LN, "power -0.4", lambda x: (x - mean(x)) * (var(x) + 1e-5) ** -0.4)
hand(
    LN, "E[x^2] - E[x]", lambda x: (x - mean(x)) * lax.rsqrt(jnp.abs(mean(x * x) - mean(x)) + 1e-5)
)
hand(LN, "E[x^2] + E[x]^2", lambda x: (x - mean(x)) * lax.rsqrt(mean(x * x) + mean(x) ** 2 + 1e-5))
hand(LN, "variance from below", lambda x: (x - mean(x)) * lax.rsqrt(jnp.maximum(var(x), 5.0)))
hand(RMS, "epsilon outside of the root", lambda x: x / (jnp.sqrt(mean(x * x)) + 0.1))
hand(RMS, "mean of absolute values", lambda x: x * lax.rsqrt(mean(jnp.abs(x)) + 1e-5))
hand(RMS, "fourth powers", lambda x: x * lax.rsqrt(mean(x**4) + 1e-5))
hand(RMS, "of another tensor", lambda x, y: y * lax.rsqrt(mean(x * x) + 1e-5), XY)
hand(RMS, "square of the mean", lambda x: x * lax.rsqrt(mean(x) ** 2 + 1e-5))
hand(RMS, "product of two tensors", lambda x, y: x * lax.rsqrt(jnp.abs(mean(x * y)) + 1e-5), XY)
hand(
    "LpNormalization",
    "epsilon beside the norm",
    lambda x: x / (jnp.linalg.norm(x, axis=-1, keepdims=True) + 0.1),
)
hand(
    "LpNormalization",
    "norm from below",
    lambda x: x / jnp.maximum(jnp.linalg.norm(x, axis=-1, keepdims=True), 5.0),
)
hand(
    "BatchNormalization",
    "statistics of the batch",
    lambda x: (x - mean(x, (0, 1, 2))) * lax.rsqrt(var(x, (0, 1, 2)) + 1e-5),
    [f32(2, 4, 4, 3)],
)


@near("GroupNormalization", "variance of channels, mean of groups", [f32(2, 8, 4, 4)])
def mixed_groups(x):
    groups = x.reshape(2, 4, -1)
    middle = jnp.broadcast_to(mean(groups), groups.shape).reshape(x.shape)
    return (x - middle) * lax.rsqrt(var(x, (2, 3)) + 1e-5)


# --- activations

GELU = math.sqrt(2 / math.pi)
hand("Gelu", "another cubic coefficient", lambda x: 0.5 * x * (1 + tanh(GELU * (x + 0.05 * x**3))))
hand("Gelu", "another inner scale", lambda x: 0.5 * x * (1 + tanh(0.9 * (x + 0.044715 * x**3))))
hand(
    "Gelu",
    "a square instead of a cube",
    lambda x: 0.5 * x * (1 + tanh(GELU * (x + 0.044715 * x**2))),
)
hand("Gelu", "erf(x / 1.5)", lambda x: 0.5 * x * (1 + erf(x / 1.5)))
hand("Gelu", "x * (1 - erf)", lambda x: 0.5 * x * (1 - erf(x / math.sqrt(2))))
hand("Gelu", "another factor", lambda x, y: 0.5 * y * (1 + erf(x / math.sqrt(2))), XY)
hand("Sigmoid", "a constant beside", lambda x: 1 / (1.001 + exp(-x)))
hand("Sigmoid", "2 + exp(-x)", lambda x: 1 / (2 + exp(-x)))
hand("Sigmoid", "a tanh of x / 3", lambda x: 0.5 * (1 + tanh(x / 3)) + 0.5 * tanh(x))
hand("Softplus", "log(1.1 + exp(x))", lambda x: jnp.log(1.1 + exp(x)))
hand(
    "Softplus",
    "log1p(exp(x)) + log1p(exp(y)) of a product",
    lambda x, y: jnp.log1p(exp(x) * (1 + exp(y))),
    XY,
)
hand("Mish", "softplus of another tensor", lambda x, y: x * tanh(jax.nn.softplus(y)), XY)
hand("Softsign", "1.5 + |x|", lambda x: x / (1.5 + jnp.abs(x)))
hand("Softsign", "1 + x^2", lambda x: x / (1 + x * x))
hand("Softsign", "another denominator", lambda x, y: x / (1 + jnp.abs(y)), XY)
hand("Elu", "expm1(2 x)", lambda x: jnp.where(x > 0, x, jnp.expm1(2 * x)))
hand("Elu", "threshold at 1", lambda x: jnp.where(x > 1, x, jnp.expm1(x)))
hand(
    "Selu", "another scale", lambda x: 1.1 * jnp.where(x > 0, x, 1.6732632423543772 * jnp.expm1(x))
)
hand("Celu", "two alphas", lambda x: jnp.maximum(x, 0) + jnp.minimum(0, 2.0 * jnp.expm1(x / 3.0)))
hand("HardSigmoid", "up to 2", lambda x: jnp.clip(2 * x / 3 + 0.5, 0, 2))
hand("HardSwish", "divided by 5", lambda x: x * jnp.clip(x + 3, 0, 6) / 5)
hand("HardSwish", "x + 2", lambda x: x * jnp.clip(x + 2, 0, 6) / 6)
hand("HardSwish", "another factor", lambda x, y: y * jnp.clip(x + 3, 0, 6) / 6, XY)
hand("LeakyRelu", "another tensor below zero", lambda x, y: jnp.where(x > 0, x, 0.1 * y), XY)
hand("LeakyRelu", "threshold at 1", lambda x: jnp.where(x > 1, x, 0.1 * x))
hand("LeakyRelu", "a shift", lambda x: jnp.where(x > 0, x, 0.1 * x - 1))
hand(
    "PRelu",
    "slope above zero",
    lambda x: jnp.where(x > 0, np.float32([2, 3, 4, 5, 6, 7, 8]) * x, x),
)
hand("ThresholdedRelu", "NaN at -inf", lambda x: x * (x > 0.5))
hand("Relu", "from 0.001", lambda x: jnp.maximum(x, 1e-3))
hand("Relu", "one below zero", lambda x: jnp.where(x > 0, x, 1.0))
hand("Relu", "another tensor", lambda x, y: jnp.where(x > 0, y, 0.0), XY)
hand("ThresholdedRelu", "x - 1", lambda x: jnp.where(x > 1, x - 1, 0.0))
hand(
    "ThresholdedRelu",
    "the threshold itself is kept",
    lambda x: jnp.where(jnp.round(x) >= 1, jnp.round(x), 0.0),
)

hand("Mish", "bool instead of x", lambda x: x.astype(bool) * tanh(jax.nn.softplus(x)))
hand("Gelu", "bool instead of x", lambda x: x.astype(bool) * 0.5 * (1 + erf(x / math.sqrt(2))))
hand("Gelu", "int instead of x", lambda x: x.astype(int) * 0.5 * (1 + erf(x / math.sqrt(2))))
hand("ThresholdedRelu", "the threshold is kept", lambda x: jnp.where(x >= 1, x, 0.0))
hand("ThresholdedRelu", "a rounded threshold", lambda x: jnp.where(3 * x > 1, x, 0.0))
hand("ThresholdedRelu", "two thresholds", lambda x: jnp.where((x > 1) & (x < 1e30), x, 0.0))
hand("Softplus", "an eps inside", lambda x: jnp.log(1 + 1e-6 + exp(x)))
hand("HardSwish", "a threshold beside", lambda x: x * jnp.clip(x + 3.001, 0, 6) / 6)

# --- rotary embedding


def rotated(x, cos_1, sin_1, cos_2, sin_2):
    lo, hi = jnp.split(x, 2, -1)
    return jnp.concatenate([lo * cos_1 - hi * sin_1, hi * cos_2 + lo * sin_2], -1)


ANGLES = np.arange(6, dtype=np.float32)[:, None] * np.float32([1, 0.3, 0.1, 0.03])
COS, SIN = np.cos(ANGLES), np.sin(ANGLES)
HEADS = [f32(2, 4, 6, 8)]
ROPE = "RotaryEmbedding"
hand(ROPE, "wrong sign", lambda x: rotated(x, COS, -SIN, COS, SIN), HEADS)
hand(ROPE, "wrong sign below", lambda x: rotated(x, COS, SIN, COS, -SIN), HEADS)
hand(ROPE, "sines that differ", lambda x: rotated(x, COS, SIN, COS, 2 * SIN), HEADS)
hand(ROPE, "cosines that differ", lambda x: rotated(x, COS, SIN, COS + 1, SIN), HEADS)
hand(ROPE, "cos and sin exchanged below", lambda x: rotated(x, COS, SIN, SIN, COS), HEADS)
hand(
    ROPE,
    "tables that differ by half",
    lambda x: (
        x * np.cos(np.arange(48, dtype=np.float32)).reshape(6, 8)
        + jnp.concatenate([-x[..., 4:], x[..., :4]], -1)
        * np.sin(np.arange(48, dtype=np.float32)).reshape(6, 8)
    ),
    HEADS,
)


@near(ROPE, "the second half reads the rotated first", HEADS)
def rotated_in_turn(x):
    lo, hi = jnp.split(x, 2, -1)
    lo = lo * COS - hi * SIN
    return jnp.concatenate([lo, hi * COS + lo * SIN], -1)


@near(ROPE, "updates that read what was updated", HEADS)
def updated_in_turn(x):
    x = x.at[..., ::2].set(x[..., ::2] * COS - x[..., 1::2] * SIN)
    return x.at[..., 1::2].set(x[..., 1::2] * COS + x[..., ::2] * SIN)


hand(ROPE, "sines of other positions", lambda x: rotated(x, COS, SIN, COS, SIN[::-1]), HEADS)
hand(
    ROPE,
    "halves without a sign",
    lambda x: x * np.tile(COS, 2) + jnp.roll(x, 4, -1) * np.tile(SIN, 2),
    HEADS,
)
hand(
    ROPE,
    "interleaved tables on halves",
    lambda x: (
        x * COS.repeat(2, -1) + jnp.concatenate([-x[..., 4:], x[..., :4]], -1) * SIN.repeat(2, -1)
    ),
    HEADS,
)

# --- idioms

SQUARE = [f32(6, 6)]
ROW, COLUMN = np.arange(6)[:, None], np.arange(6)
hand("Relu", "max(x, 1e-20)", lambda x: jnp.maximum(x, 1e-20))
hand("ThresholdedRelu", "1e-20 below", lambda x: jnp.where(x > 0, x, 1e-20))
hand("ReduceMean", "sum / (n - 1)", lambda x: x.sum(-1) / 6)
hand("ReduceMean", "sum / size of another axis", lambda x: x.sum(1) / 3)
hand("Trilu", "i <= 2 j", lambda x: jnp.where(ROW <= 2 * COLUMN, x, 0.0), SQUARE)
hand("Trilu", "i + j < 6", lambda x: jnp.where(ROW + COLUMN < 6, x, 0.0), SQUARE)
hand("Trilu", "one outside", lambda x: jnp.where(ROW >= COLUMN, x, 1.0), SQUARE)
hand("EyeLike", "i == 2 j", lambda x: x + (ROW == 2 * COLUMN), SQUARE)
hand("CumSum", "cumprod", lambda x: jnp.cumprod(x, 1))
hand("CumSum", "cummax", lambda x: lax.cummax(x, 1))
hand(
    "Resize", "lanczos3", lambda x: jax.image.resize(x, (2, 4, 9, 9), "lanczos3"), [f32(2, 4, 6, 6)]
)
PLACES = {
    "aligned corners": np.arange(12) * 5 / 11,
    "asymmetric": np.arange(12) / 2,
    "a quarter too far": np.arange(12) / 2 + 0.25,
    "almost linear": (np.arange(12) + 0.5) / 2 - 0.5 + 1e-4,
}
for name, places in PLACES.items():
    near = np.maximum(0, 1 - np.abs(places - np.arange(6)[:, None])).astype(np.float32)
    near /= near.sum(0)
    hand("Resize", f"linear, {name}", lambda x, w=near: x @ w, SQUARE)
hand(
    "Resize",
    "antialiased for another size",
    lambda x: jax.image.scale_and_translate(
        x, (6, 3), (1,), jnp.array([0.4]), jnp.array([0.0]), "linear"
    ),
    SQUARE,
)
hand("Resize", "rounded down", lambda x: x[:, (np.arange(9) * 6) // 9], SQUARE)
hand("Resize", "in reverse", lambda x: x[:, ((np.arange(9) * 2 + 1) * 6 // 18)[::-1]], SQUARE)
hand(
    "DepthToSpace",
    "rows and columns exchanged",
    lambda x: x.reshape(2, 2, 2, 2, 3, 3).transpose(0, 1, 4, 3, 5, 2).reshape(2, 2, 6, 6),
    [f32(2, 8, 3, 3)],
)
hand(
    "MaxPool.pads",
    "zeros around the image",
    lambda x: lax.reduce_window(
        jnp.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))),
        -jnp.inf,
        lax.max,
        (1, 1, 3, 3),
        (1, 1, 1, 1),
        "VALID",
    ),
    [f32(2, 3, 5, 5, lo=-3, hi=-1)],
)
hand(
    "BatchNormalization",
    "a shift before a padded convolution",
    lambda x: lax.conv(
        x * 2 + 1, np.sin(np.arange(54, dtype=np.float32)).reshape(2, 3, 3, 3), (1, 1), "SAME"
    ),
    [f32(2, 3, 5, 5)],
)

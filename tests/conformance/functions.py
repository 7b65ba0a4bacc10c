# SPDX-License-Identifier: Apache-2.0
"""Functions that people use, each with arguments to try it on: the rows of docs/transforms.md."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from flax import nnx
from jax import lax


@dataclasses.dataclass(frozen=True)
class Function:
    """A function of float arrays; `name` is unique. Derivatives are taken by its first argument."""

    group: str
    name: str
    fn: Callable[..., Any]
    arguments: tuple[np.ndarray, ...]


def _random(name: str) -> np.random.Generator:
    return np.random.default_rng(sum(map(ord, name)))


# What an argument is made of: a shape, and the numbers that the function takes.
@dataclasses.dataclass(frozen=True)
class Sample:
    shape: tuple[int, ...] = (3, 4)
    low: float = -2.0
    high: float = 2.0

    def array(self, random: np.random.Generator) -> np.ndarray:
        # Distinct numbers with a distance to each other and to small integers, where functions
        # have kinks and jumps: derivatives there are a matter of taste.
        count = int(np.prod(self.shape, dtype=int))
        grid = self.low + (self.high - self.low) * (np.arange(count) + 0.37) / max(count, 1)
        return random.permutation(grid).reshape(self.shape).astype(np.float32)


def real(*shape: int) -> Sample:
    return Sample(shape)


def positive(*shape: int) -> Sample:
    return Sample(shape, 0.3, 3.0)


def unit(*shape: int) -> Sample:
    return Sample(shape, 0.05, 0.95)


def above_one(*shape: int) -> Sample:
    return Sample(shape, 1.1, 4.0)


def inside(*shape: int) -> Sample:
    return Sample(shape, -0.95, 0.95)


X, XP, XU, XI, XA = real(3, 4), positive(3, 4), unit(3, 4), inside(3, 4), above_one(3, 4)
M = real(4, 4)

Row = tuple[str, Callable[..., Any], tuple[Sample, ...]]


def _unary(module: Any, names: str, sample: Sample = X) -> Iterator[Row]:
    for name in names.split():
        yield name, getattr(module, name), (sample,)


def _binary(module: Any, names: str, *samples: Sample) -> Iterator[Row]:
    for name in names.split():
        yield name, getattr(module, name), samples


def _nn() -> Iterator[Row]:
    nn = jax.nn
    yield from _unary(
        nn,
        "relu relu6 sigmoid softplus sparse_plus sparse_sigmoid soft_sign silu log_sigmoid "
        "leaky_relu hard_sigmoid hard_silu hard_tanh tanh elu celu selu gelu glu squareplus mish "
        "softmax log_softmax logsumexp standardize identity",
    )
    yield "gelu (exact)", functools.partial(nn.gelu, approximate=False), (X,)
    yield "softmax (where)", lambda x: nn.softmax(x, where=x > -1), (X,)
    yield "one_hot", lambda x: nn.one_hot(jnp.argsort(x), 4) * x[..., None], (X,)
    qkv = (real(2, 5, 2, 4), real(2, 5, 2, 4), real(2, 5, 2, 4))
    yield "dot_product_attention", nn.dot_product_attention, qkv
    yield (
        "dot_product_attention (causal)",
        (functools.partial(nn.dot_product_attention, is_causal=True)),
        qkv,
    )


def _numpy() -> Iterator[Row]:
    yield from _unary(
        jnp,
        "abs negative sign square exp exp2 expm1 sin cos tan sinh cosh tanh arctan arcsinh cbrt "
        "floor ceil trunc rint round sinc i0 deg2rad rad2deg nan_to_num isnan isfinite signbit "
        "sum prod mean var std max min ptp median nansum nanmean nanvar nanmax nanmin "
        "argmax argmin sort argsort cumsum cumprod nancumsum ravel transpose fliplr flipud flip "
        "rot90 squeeze atleast_3d diff ediff1d trapezoid unwrap triu tril diagonal diag trace "
        "count_nonzero any all logical_not real conj zeros_like ones_like corrcoef cov",
    )
    yield from _unary(jnp, "log log2 log10 log1p sqrt reciprocal gradient", XP)
    yield from _unary(jnp, "arcsin arccos arctanh", XI)
    yield from _unary(jnp, "arccosh", XA)
    yield from _binary(
        jnp,
        "add subtract multiply divide maximum minimum fmax fmin arctan2 hypot logaddexp "
        "logaddexp2 copysign heaviside floor_divide mod fmod remainder greater less equal "
        "not_equal logical_and logical_or nextafter",
        X,
        real(3, 4),
    )
    yield from _binary(jnp, "power float_power", XP, X)
    yield from _binary(jnp, "dot matmul inner tensordot", real(3, 4), real(4, 4))
    yield from _binary(jnp, "outer kron convolve correlate", real(4), real(3))
    yield from _binary(jnp, "vdot", real(4), real(4))
    yield from _binary(jnp, "cross", real(2, 3), real(2, 3))
    yield from _numpy_with_options()


def _numpy_with_options() -> Iterator[Row]:
    yield "clip", lambda x: jnp.clip(x, -0.6, 0.7), (X,)
    yield "where", lambda x, y: jnp.where(x > 0.1, x, y), (X, X)
    yield "einsum", lambda x, y: jnp.einsum("ij,kj->ki", x, y), (X, real(2, 4))
    yield "concatenate", lambda x, y: jnp.concatenate([x, y, x]), (X, X)
    yield "stack", lambda x, y: jnp.stack([x, y], 1), (X, X)
    yield "split", lambda x: jnp.split(x, 2, 1), (X,)
    yield "pad", lambda x: jnp.pad(x, 1), (X,)
    yield "pad (reflect)", lambda x: jnp.pad(x, 1, mode="reflect"), (X,)
    yield "roll", lambda x: jnp.roll(x, 1, 1), (X,)
    yield "tile", lambda x: jnp.tile(x, (2, 1)), (X,)
    yield "repeat", lambda x: jnp.repeat(x, 2, 1), (X,)
    yield "reshape", lambda x: x.reshape(2, 6), (X,)
    yield "broadcast_to", lambda x: jnp.broadcast_to(x, (2, 3, 4)), (X,)
    yield "expand_dims", lambda x: jnp.expand_dims(x, 1), (X,)
    yield "swapaxes", lambda x: jnp.swapaxes(x, 0, 1), (X,)
    yield "x[1:, ::2]", lambda x: x[1:, ::2], (X,)
    yield "x[indices]", lambda x: x[jnp.array([2, 0, 2])], (X,)
    yield "x[mask] = 0", lambda x: x.at[jnp.abs(x) > 1].set(0), (X,)
    yield "x.at[].add", lambda x: x.at[jnp.array([0, 2, 0])].add(x[:3] * 2), (X,)
    yield "x.at[].set", lambda x, y: x.at[1, 2:].set(y), (X, real(2))
    yield "take", lambda x: jnp.take(x, jnp.array([1, 3]), axis=1), (X,)
    yield (
        "take_along_axis",
        lambda x: jnp.take_along_axis(x, jnp.argsort(-x, axis=1), axis=1),
        (X,),
    )
    yield "percentile", lambda x: jnp.percentile(x, 30.0, axis=1), (X,)
    yield "quantile", lambda x: jnp.quantile(x, 0.7, axis=0), (X,)
    yield "interp", lambda x: jnp.interp(x, jnp.arange(5.0) - 2, jnp.arange(5.0) ** 2), (X,)
    yield "searchsorted", lambda x: jnp.searchsorted(jnp.arange(5.0) - 2, x) * x, (X,)
    yield "digitize", lambda x: jnp.digitize(x, jnp.arange(5.0) - 2) * x, (X,)
    yield "polyval", lambda x: jnp.polyval(jnp.array([1.0, -2.0, 0.5]), x), (X,)
    yield "meshgrid", lambda x, y: jnp.meshgrid(x, y), (real(3), real(2))
    yield "histogram", lambda x: jnp.histogram(x, bins=4, range=(-2, 2))[0], (X,)
    yield "linspace", lambda x: jnp.linspace(x[0], x[1], 5), (X,)
    yield "vander", lambda x: jnp.vander(x[0], 3), (X,)
    yield "linalg.norm", jnp.linalg.norm, (X,)
    yield from _linear_algebra()
    yield from _transforms_of_fourier()


def _well_conditioned(x: Any) -> Any:
    return x @ x.swapaxes(-1, -2) + 3 * jnp.eye(x.shape[-1])


def _linear_algebra() -> Iterator[Row]:
    for name in ("inv", "det", "slogdet", "cholesky", "eigvalsh", "matrix_norm", "pinv"):
        function = getattr(jnp.linalg, name)
        yield f"linalg.{name}", lambda x, f=function: f(_well_conditioned(x)), (M,)
    yield "linalg.solve", lambda x, b: jnp.linalg.solve(_well_conditioned(x), b), (M, real(4))
    yield "linalg.qr", lambda x: jnp.linalg.qr(_well_conditioned(x))[1], (M,)
    yield "linalg.svd", lambda x: jnp.linalg.svd(x, compute_uv=False), (real(3, 2),)
    yield "linalg.matrix_power", lambda x: jnp.linalg.matrix_power(x, 3), (M,)
    yield "linalg.multi_dot", lambda x, y: jnp.linalg.multi_dot([x, y, x]), (M, M)


def _transforms_of_fourier() -> Iterator[Row]:
    yield "fft.fft", lambda x: jnp.abs(jnp.fft.fft(x)), (X,)
    yield "fft.rfft", lambda x: jnp.real(jnp.fft.rfft(x)), (X,)
    yield "fft.irfft", lambda x: jnp.fft.irfft(x + 0.5j), (X,)
    yield "fft.fft2", lambda x: jnp.imag(jnp.fft.fft2(x)), (X,)
    yield "fft.fftshift", jnp.fft.fftshift, (X,)


def _lax() -> Iterator[Row]:
    yield from _unary(lax, "erf erfc bessel_i0e bessel_i1e logistic is_finite")
    yield from _unary(lax, "rsqrt lgamma digamma", XP)
    yield from _unary(lax, "erf_inv", XI)
    yield from _binary(lax, "igamma igammac", XP, XP)
    yield from _binary(lax, "zeta", above_one(3, 4), XP)
    yield from _binary(lax, "atan2 rem max min", X, X)
    yield "betainc", lax.betainc, (XP, XP, XU)
    yield "integer_pow", lambda x: lax.integer_pow(x, 3), (X,)
    yield "clamp", lambda x: lax.clamp(-0.7, x, 0.9), (X,)
    yield "top_k", lambda x: lax.top_k(x, 2)[0], (X,)
    yield "cumlogsumexp", lambda x: lax.cumlogsumexp(x, 1), (X,)
    yield "cummax", lambda x: lax.cummax(x, 1), (X,)
    yield "dynamic_slice", lambda x: lax.dynamic_slice(x, (1, 1), (2, 2)), (X,)
    yield (
        "dynamic_update_slice",
        lambda x, y: lax.dynamic_update_slice(x, y, (1, 1)),
        (X, real(2, 2)),
    )
    yield "reduce_precision", lambda x: lax.reduce_precision(x, 8, 7), (X,)
    yield "stop_gradient", lambda x: x * lax.stop_gradient(x), (X,)
    yield "associative_scan", lambda x: lax.associative_scan(jnp.multiply, x), (X,)
    yield "map", lambda x: lax.map(lambda row: jnp.sin(row).sum(), x), (X,)
    yield "cond", lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), (X,)
    yield "switch", lambda x: lax.switch(1, [jnp.sin, jnp.cos, jnp.tanh], x), (X,)
    yield (
        "scan",
        lambda x: lax.scan(lambda c, row: (jnp.tanh(c + row), c * row), x[0], x),
        (X,),
    )
    yield "fori_loop", lambda x: lax.fori_loop(0, 3, lambda i, v: jnp.sin(v) + i, x), (X,)
    yield (
        "while_loop",
        lambda x: lax.while_loop(lambda v: v.sum() < 30, lambda v: v + 1.5, x),
        (X,),
    )
    image, kernel = real(1, 5, 5, 2), real(3, 3, 2, 3)
    numbers = ("NHWC", "HWIO", "NHWC")
    yield (
        "conv",
        lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=numbers),
        (image, kernel),
    )
    yield (
        "conv_transpose",
        lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=numbers),
        (image, kernel),
    )


def _scipy() -> Iterator[Row]:
    yield from _unary(jsp.special, "erf erfc expit i0 i0e i1 i1e ndtr log_ndtr")
    yield from _unary(jsp.special, "gammaln digamma entr gamma", XP)
    yield from _unary(jsp.special, "logit ndtri", XU)
    yield from _binary(jsp.special, "xlogy xlog1py betaln rel_entr kl_div beta", XP, XP)
    yield "special.logsumexp", jsp.special.logsumexp, (X,)
    yield "special.polygamma", lambda x: jsp.special.polygamma(1, x), (XP,)
    yield "stats.norm.logpdf", jsp.stats.norm.logpdf, (X,)
    yield "stats.norm.cdf", jsp.stats.norm.cdf, (X,)
    yield "stats.laplace.logpdf", jsp.stats.laplace.logpdf, (X,)
    yield "stats.gamma.logpdf", lambda x: jsp.stats.gamma.logpdf(x, 2.0), (XP,)
    yield "stats.beta.logpdf", lambda x: jsp.stats.beta.logpdf(x, 2.0, 3.0), (XU,)
    yield "stats.t.logpdf", lambda x: jsp.stats.t.logpdf(x, 4.0), (X,)
    yield "stats.expon.logpdf", jsp.stats.expon.logpdf, (XP,)
    yield "linalg.expm", jsp.linalg.expm, (real(3, 3),)
    yield (
        "linalg.cho_solve",
        lambda x, b: jsp.linalg.cho_solve(jsp.linalg.cho_factor(_well_conditioned(x)), b),
        (M, real(4)),
    )
    yield (
        "linalg.solve_triangular",
        lambda x, b: jsp.linalg.solve_triangular(jnp.tril(x) + 3 * jnp.eye(4), b, lower=True),
        (M, real(4)),
    )
    yield "linalg.lu", lambda x: jsp.linalg.lu(_well_conditioned(x))[2], (M,)
    yield "signal.convolve", lambda x, y: jsp.signal.convolve(x, y), (real(5), real(3))
    yield (
        "ndimage.map_coordinates",
        lambda x, at: jsp.ndimage.map_coordinates(x, [at, at], order=1),
        (X, unit(5)),
    )
    yield "integrate.trapezoid", jsp.integrate.trapezoid, (X,)


def _samplers() -> Iterator[Row]:
    key = jax.random.key(7)
    random = jax.random
    for name in ("normal", "uniform", "exponential", "gumbel", "laplace", "logistic", "cauchy"):
        sampler = getattr(random, name)
        yield name, lambda x, f=sampler: x * f(key, x.shape), (X,)
    yield "truncated_normal", lambda x: random.truncated_normal(key, x, x + 1), (X,)
    yield "bernoulli", lambda p: jnp.where(random.bernoulli(key, p), p, -p), (XU,)
    yield "categorical", lambda x: random.categorical(key, x), (X,)
    yield "permutation", lambda x: random.permutation(key, x), (X,)
    yield "choice", lambda x: random.choice(key, x[0], (5,)), (X,)
    yield "randint", lambda x: x * random.randint(key, x.shape, 0, 9), (X,)
    yield "rademacher", lambda x: x * random.rademacher(key, x.shape, jnp.float32), (X,)
    yield "gamma", lambda a: random.gamma(key, a), (positive(4),)
    yield "beta", lambda a: random.beta(key, a, a + 1), (positive(4),)
    yield "dirichlet", lambda a: random.dirichlet(key, a), (positive(4),)
    yield "poisson", lambda x: random.poisson(key, x), (positive(4),)
    yield (
        "multivariate_normal",
        lambda m: random.multivariate_normal(key, m, jnp.eye(4) + 0.1),
        (real(4),),
    )
    yield "split", lambda x: x * jax.vmap(random.normal)(random.split(key, 4)), (X,)
    yield "fold_in", lambda x: x * random.uniform(random.fold_in(key, 3)), (X,)


def _equinox() -> Iterator[Row]:
    key = jax.random.key(3)
    nn = eqx.nn
    yield "Linear", nn.Linear(4, 3, key=key), (real(4),)
    yield "MLP", nn.MLP(4, 2, 8, 2, key=key), (real(4),)
    yield "Conv2d", nn.Conv2d(2, 3, 3, padding=1, key=key), (real(2, 5, 5),)
    yield "ConvTranspose2d", nn.ConvTranspose2d(2, 3, 3, stride=2, key=key), (real(2, 4, 4),)
    yield "LayerNorm", nn.LayerNorm((4,)), (real(4),)
    yield "RMSNorm", nn.RMSNorm((4,)), (real(4),)
    yield "GroupNorm", nn.GroupNorm(2, 4), (real(4, 3),)
    yield "Embedding", lambda x: nn.Embedding(7, 4, key=key)(jnp.int32(2)) * x, (real(4),)
    yield "AvgPool2d", nn.AvgPool2d(2, 2), (real(2, 4, 4),)
    yield "MaxPool2d", nn.MaxPool2d(2, 2), (real(2, 4, 4),)
    yield "AdaptiveAvgPool2d", nn.AdaptiveAvgPool2d(2), (real(2, 4, 4),)
    yield "PReLU", nn.PReLU(0.2), (real(4),)
    yield "LSTMCell", lambda x: nn.LSTMCell(4, 3, key=key)(x, (x[:3], x[1:])), (real(4),)
    yield "GRUCell", lambda x: nn.GRUCell(4, 3, key=key)(x, x[:3]), (real(4),)
    attention = nn.MultiheadAttention(2, 4, key=key)
    yield "MultiheadAttention", lambda x: attention(x, x, x), (real(5, 4),)
    yield "RotaryPositionalEmbedding", nn.RotaryPositionalEmbedding(4), (real(5, 4),)
    yield "Dropout", nn.Dropout(0.5, inference=True), (real(4),)


def _nnx() -> Iterator[Row]:
    rngs = nnx.Rngs(0)
    yield "Linear", nnx.Linear(4, 3, rngs=rngs), (X,)
    yield "LinearGeneral", nnx.LinearGeneral(4, (2, 3), rngs=rngs), (X,)
    yield "Einsum", nnx.Einsum("ij,jk->ik", (4, 3), rngs=rngs), (X,)
    yield "Conv", nnx.Conv(2, 3, (3, 3), rngs=rngs), (real(1, 5, 5, 2),)
    yield (
        "ConvTranspose",
        nnx.ConvTranspose(2, 3, (3, 3), strides=(2, 2), rngs=rngs),
        (real(1, 4, 4, 2),),
    )
    yield "LayerNorm", nnx.LayerNorm(4, rngs=rngs), (X,)
    yield "RMSNorm", nnx.RMSNorm(4, rngs=rngs), (X,)
    yield "GroupNorm", nnx.GroupNorm(4, num_groups=2, rngs=rngs), (real(2, 3, 4),)
    yield "InstanceNorm", nnx.InstanceNorm(4, rngs=rngs), (real(2, 3, 4),)
    yield "BatchNorm", nnx.BatchNorm(4, use_running_average=True, rngs=rngs), (X,)
    embed = nnx.Embed(7, 4, rngs=rngs)
    yield "Embed", lambda x: embed(jnp.array([2, 0, 5])) * x, (X,)
    attention = nnx.MultiHeadAttention(2, 4, decode=False, rngs=rngs)
    yield "MultiHeadAttention", attention, (real(2, 5, 4),)
    lstm, gru = nnx.LSTMCell(4, 3, rngs=rngs), nnx.GRUCell(4, 3, rngs=rngs)
    yield "LSTMCell", lambda x: lstm((x[:, :3], x[:, 1:]), x)[1], (X,)
    yield "GRUCell", lambda x: gru(x[:, :3], x)[1], (X,)
    yield "RNN", nnx.RNN(nnx.LSTMCell(4, 3, rngs=rngs)), (real(2, 5, 4),)
    yield "Dropout", nnx.Dropout(0.5, deterministic=True, rngs=rngs), (X,)
    yield "avg_pool", lambda x: nnx.avg_pool(x, (2, 2), (2, 2)), (real(1, 4, 4, 2),)
    yield "max_pool", lambda x: nnx.max_pool(x, (2, 2), (2, 2)), (real(1, 4, 4, 2),)


_GROUPS: dict[str, Callable[[], Iterator[Row]]] = {
    "jax.nn": _nn,
    "jax.numpy": _numpy,
    "jax.lax": _lax,
    "jax.scipy": _scipy,
    "jax.random": _samplers,
    "equinox.nn": _equinox,
    "flax.nnx": _nnx,
}


def functions() -> list[Function]:
    """All rows, in the order of the page."""
    found = []
    for group, rows in _GROUPS.items():
        for name, fn, samples in rows():
            random = _random(group + name)
            arguments = tuple(sample.array(random) for sample in samples)
            found.append(Function(group, name, fn, arguments))
    return found

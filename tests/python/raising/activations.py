# SPDX-License-Identifier: Apache-2.0
"""Activations of each library and by hand: one node each."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from raising.libraries import HAS_KERAS, over_batch, with_equinox, with_keras
from raising.table import Row
from support.cases import bf16, f16, f32

X = [f32(3, 7)]
# What stands for a macro op that has no kernel in a runtime, or one that is slow or loses digits:
# its ops, the number of nodes, and the rule that the report names.
FORMS = {
    "Swish": ("Swish|Sigmoid", 2, "silu"),
    "ReduceLogSumExp": ("ReduceLogSumExp|Log", 7, "logsumexp"),
    "PRelu": ("PRelu|Where", 3, "prelu"),
    "Mish": ("Mish|Exp", 7, "mish"),
    "Softplus": ("Softplus|Log", 10, "softplus"),
    "Elu": ("Elu|Tanh", 9, "elu"),
    "Celu": ("Celu|Tanh", 10, "celu"),
    "Selu": ("Selu|Tanh", 10, "selu"),
}
ROWS: list[Row] = []


def row(op, library, name, fn, inputs=X, nodes=1, moves=0):
    ops, most, rule = FORMS.get(op, (op, 1, ""))
    return Row(
        "activation",
        library,
        f"{name} [{op}]",
        fn,
        inputs,
        {ops: 1},
        moves,
        nodes + most - 1,
        tolerance="sum",
        rule=rule,
    )


def by_name(op, name, **options):
    return row(op, "jax.nn", name, lambda x: getattr(jax.nn, name)(x, **options))


ROWS += [
    by_name("Relu", "relu"),
    by_name("Clip", "relu6"),
    by_name("Sigmoid", "sigmoid"),
    by_name("Softplus", "softplus"),
    by_name("Softsign", "soft_sign"),
    by_name("Swish", "silu"),
    by_name("Swish", "swish"),
    by_name("Mish", "mish"),
    by_name("Elu", "elu"),
    row("Elu", "jax.nn", "elu, alpha", lambda x: jax.nn.elu(x, 0.7)),
    by_name("Selu", "selu"),
    row("Celu", "jax.nn", "celu, alpha", lambda x: jax.nn.celu(x, 1.7)),
    row("Gelu", "jax.nn", "gelu, tanh", lambda x: jax.nn.gelu(x)),
    row("Gelu", "jax.nn", "gelu, exact", lambda x: jax.nn.gelu(x, approximate=False)),
    by_name("HardSigmoid", "hard_sigmoid"),
    by_name("HardSwish", "hard_swish"),
    by_name("LeakyRelu", "leaky_relu"),
    row("LeakyRelu", "jax.nn", "leaky_relu, slope", lambda x: jax.nn.leaky_relu(x, 0.3)),
    row("Clip", "jax.nn", "hard_tanh", jax.nn.hard_tanh),
    by_name("Softmax", "softmax"),
    row("Softmax", "jax.nn", "softmax, first axis", lambda x: jax.nn.softmax(x, 0)),
    by_name("LogSoftmax", "log_softmax"),
    row("LogSoftmax", "jax.nn", "log_softmax, symbolic", jax.nn.log_softmax, [f32("B", 7)]),
    row(
        "ReduceLogSumExp",
        "jax.nn",
        "logsumexp",
        lambda x: jax.nn.logsumexp(x, -1),
        nodes=2,
        moves=1,
    ),
    row(
        "ReduceLogSumExp",
        "jax.nn",
        "logsumexp, keepdims",
        lambda x: jax.nn.logsumexp(x, (0, 2), keepdims=True),
        [f32(3, 4, 5)],
    ),
    row("Gelu", "jax.nn", "gelu, bf16", jax.nn.gelu, [bf16(3, 7)], nodes=3),
    row("Gelu", "jax.nn", "gelu, f16", jax.nn.gelu, [f16(3, 7)], nodes=3),
    row("Swish", "jax.nn", "silu, bf16", jax.nn.silu, [bf16(3, 7)], nodes=5),
    row("Softmax", "jax.nn", "softmax, f16", jax.nn.softmax, [f16(3, 7)], nodes=3),
    row("Gelu", "jax.nn", "gelu, vmap", jax.vmap(jax.nn.gelu), [f32("B", 4)]),
    row("Gelu", "nnx", "gelu", nnx.gelu),
    row("Swish", "nnx", "silu", nnx.silu),
    row("Celu", "nnx", "celu", lambda x: nnx.celu(x, 0.5)),
    row("LeakyRelu", "nnx", "leaky_relu", nnx.leaky_relu),
    row("Softmax", "nnx", "softmax", nnx.softmax),
    row(
        "LeakyRelu",
        "equinox",
        "PReLU",
        with_equinox(lambda: eqx.nn.PReLU(0.2), over_batch(lambda m, x: m(x))),
    ),
]


def from_keras(op, name, **options):
    fn = with_keras(
        lambda keras: keras.activations.get(name), lambda activation, x: activation(x, **options)
    )
    label = ", ".join([name, *options])
    return row(op, "keras", label, fn)


if HAS_KERAS:
    ROWS += [
        from_keras("Relu", "relu"),
        from_keras("Clip", "relu6"),
        from_keras("LeakyRelu", "leaky_relu", negative_slope=0.15),
        from_keras("Gelu", "gelu"),
        from_keras("Gelu", "gelu", approximate=True),
        from_keras("Swish", "silu"),
        from_keras("Mish", "mish"),
        from_keras("Elu", "elu"),
        from_keras("Selu", "selu"),
        from_keras("Celu", "celu", alpha=0.8),
        from_keras("Softplus", "softplus"),
        from_keras("Softsign", "softsign"),
        from_keras("HardSigmoid", "hard_sigmoid"),
        from_keras("HardSwish", "hard_silu"),
        from_keras("Softmax", "softmax"),
        from_keras("LogSoftmax", "log_softmax"),
        from_keras("ThresholdedRelu", "threshold", threshold=0.9, default_value=0.0),
    ]
    ROWS += [
        row(
            "PRelu",
            "keras",
            "PReLU",
            with_keras(lambda keras: keras.layers.PReLU(), lambda m, x: m(x), (3, 7)),
        ),
    ]


# --- by hand


def spelled(op, name, inputs=X, nodes=1, moves=0):
    """Adds a function to the rows."""

    def add(fn):
        ROWS.append(row(op, "by hand", name, fn, inputs, nodes, moves))
        return fn

    return add


def hand(op, name, fn, inputs=X, nodes=1):
    ROWS.append(row(op, "by hand", name, fn, inputs, nodes))


erf, tanh, exp = jax.lax.erf, jnp.tanh, jnp.exp
ROOT_2_PI = np.sqrt(2 / np.pi).astype(np.float32)
SLOPES = np.linspace(0.1, 0.7, 7, dtype=np.float32)

hand("Gelu", "0.5 x (1 + erf(x / sqrt 2))", lambda x: 0.5 * x * (1 + erf(x / np.sqrt(2))))
hand("Gelu", "x * (0.5 + 0.5 erf)", lambda x: x * (0.5 + 0.5 * erf(x * 0.70710678)))
hand("Gelu", "x * norm.cdf(x)", lambda x: x * jax.scipy.stats.norm.cdf(x))
hand("Gelu", "x erfc(-x / sqrt 2) / 2", lambda x: x * jax.lax.erfc(-x / np.sqrt(2)) / 2)
hand(
    "Gelu",
    "tanh, x*x*x",
    lambda x: 0.5 * x * (1 + tanh(ROOT_2_PI * (x + 0.044715 * x * x * x))),
)
hand(
    "Gelu",
    "tanh, jnp.power",
    lambda x: x / 2 * (1 + tanh(0.7978845608 * (x + 0.044715 * jnp.power(x, 3)))),
)
hand(
    "Gelu",
    "tanh, factored",
    lambda x: 0.5 * x * (1 + tanh(x * 0.7978845608 * (1 + 0.044715 * x * x))),
)
hand("Swish", "x * sigmoid(x)", lambda x: x * jax.nn.sigmoid(x))
hand("Swish", "x / (1 + exp(-x))", lambda x: x / (1 + exp(-x)))
hand("Sigmoid", "x * sigmoid(1.702 x)", lambda x: x * jax.nn.sigmoid(1.702 * x), nodes=3)
hand("Swish", "x * (1 + tanh(x / 2)) / 2", lambda x: x * (1 + tanh(x / 2)) / 2)
hand("Sigmoid", "1 / (1 + exp(-x))", lambda x: 1 / (1 + exp(-x)))
hand("Sigmoid", "(1 + tanh(x / 2)) / 2", lambda x: 0.5 * (tanh(0.5 * x) + 1))
hand("Sigmoid", "lax.logistic", jax.lax.logistic)
hand("Softplus", "log(1 + exp(x))", lambda x: jnp.log(1 + exp(x)))
hand("Softplus", "log1p(exp(x))", lambda x: jnp.log1p(exp(x)))
hand("Softplus", "logaddexp(x, 0)", lambda x: jnp.logaddexp(x, 0.0))
hand(
    "Softplus",
    "max(x, 0) + log1p(exp(-|x|))",
    lambda x: jnp.maximum(x, 0) + jnp.log1p(exp(-jnp.abs(x))),
)
hand("Mish", "x * tanh(softplus(x))", lambda x: x * tanh(jax.nn.softplus(x)))
hand("Softsign", "x / (1 + |x|)", lambda x: x / (1 + jnp.abs(x)))
hand("Relu", "maximum(x, 0)", lambda x: jnp.maximum(x, 0))
hand("Relu|ThresholdedRelu", "where(x > 0, x, 0)", lambda x: jnp.where(x > 0, x, 0.0))
hand("Relu", "clip(x, min=0)", lambda x: jnp.clip(x, min=0))
hand("Clip", "clip(x, -1, 2)", lambda x: jnp.clip(x, -1.0, 2.0))
hand("Clip", "minimum(maximum(x, 0), 6)", lambda x: jnp.minimum(jnp.maximum(x, 0), 6))
hand("LeakyRelu", "where(x > 0, x, 0.1 x)", lambda x: jnp.where(x > 0, x, 0.1 * x))
hand("LeakyRelu", "maximum(x, 0.2 x)", lambda x: jnp.maximum(x, 0.2 * x))
hand("PRelu", "where(x >= 0, x, a x)", lambda x: jnp.where(x >= 0, x, SLOPES * x))
hand("PRelu", "max(x, 0) + a min(x, 0)", lambda x: jnp.maximum(x, 0) + SLOPES * jnp.minimum(x, 0))
hand("Elu", "where(x > 0, x, exp(x) - 1)", lambda x: jnp.where(x > 0, x, exp(x) - 1))
hand("Elu", "where(x > 0, x, a expm1(x))", lambda x: jnp.where(x > 0, x, 1.3 * jnp.expm1(x)))
hand(
    "Selu",
    "scale * where(x > 0, x, alpha expm1(x))",
    lambda x: 1.0507009873554805 * jnp.where(x > 0, x, 1.6732632423543772 * jnp.expm1(x)),
)
hand(
    "Celu",
    "max(x, 0) + min(0, a expm1(x / a))",
    lambda x: jnp.maximum(x, 0) + jnp.minimum(0, 2.0 * jnp.expm1(x / 2.0)),
)
hand("ThresholdedRelu", "where(x > 1, x, 0)", lambda x: jnp.where(x > 1.0, x, 0.0))
hand(
    "ThresholdedRelu",
    "celu(where(x > 1.5, x, 0))",
    lambda x: jax.nn.celu(jnp.where(x > 1.5, x, 0.0), 2.0),
)
hand("Mish", "mish where x is not 0", lambda x: x.astype(bool) * jax.nn.mish(x))
hand("Clip", "clip of a clip", lambda x: jnp.clip(jnp.clip(x, -2, 8), 0, 6))
hand("HardSigmoid", "clip(x / 6 + 0.5, 0, 1)", lambda x: jnp.clip(x / 6 + 0.5, 0, 1))
hand("HardSigmoid", "clip(0.2 x + 0.5, 0, 1)", lambda x: jnp.clip(0.2 * x + 0.5, 0, 1))
hand("HardSwish", "x * relu6(x + 3) / 6", lambda x: x * jnp.clip(x + 3, 0, 6) / 6)
hand("HardSwish", "x * hard_sigmoid(x)", lambda x: x * jax.nn.hard_sigmoid(x))


@spelled("Softmax", "exp, max and sum")
def softmax_stable(x):
    e = exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@spelled("Softmax", "exp and sum")
def softmax_naive(x):
    return exp(x) / exp(x).sum(-1, keepdims=True)


@spelled("Softmax", "two axes", [f32(2, 3, 4)], nodes=3, moves=2)
def softmax_two_axes(x):
    return jax.nn.softmax(x, (1, 2))


@spelled("Softmax", "middle axis, vmap", [f32(2, 3, 4)])
def softmax_vmap(x):
    return jax.vmap(lambda y: jax.nn.softmax(y, 0))(x)


@spelled("LogSoftmax", "x - logsumexp(x)")
def log_softmax_lse(x):
    return x - jax.nn.logsumexp(x, -1, keepdims=True)


@spelled("ReduceLogSumExp", "max + log(sum(exp(x - max)))")
def log_sum_exp_stable(x):
    top = x.max(-1, keepdims=True)
    return top + jnp.log(exp(x - top).sum(-1, keepdims=True))

# SPDX-License-Identifier: Apache-2.0
"""Operations on each element: functions, activations, integers, conversions."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from operations.operation import family, integers, normal, uniform

WIDE = (normal(197, 1536),)  # a hidden layer of a small vision transformer
POSITIVE = (uniform(197, 1536, lo=0.5, hi=20),)
WHOLE = (integers(256, 256, lo=-1000, hi=1000),)

OPERATIONS = (
    *family(
        "functions of 197x1536",
        ("exp", jnp.exp, WIDE),
        ("log", jnp.log, POSITIVE),
        ("log1p", jnp.log1p, POSITIVE),
        ("expm1", jnp.expm1, WIDE),
        ("sqrt", jnp.sqrt, POSITIVE),
        ("rsqrt", lax.rsqrt, POSITIVE),
        ("square", jnp.square, WIDE),
        ("x ** 3", lambda x: x**3, WIDE),
        ("x ** 2.5", lambda x: x**2.5, POSITIVE),
        ("sin", jnp.sin, WIDE),
        ("erf", lax.erf, WIDE),
        ("erf_inv", lax.erf_inv, (uniform(197, 1536, lo=-0.99, hi=0.99),)),
        ("lgamma", lax.lgamma, POSITIVE),
        ("atan2", jnp.arctan2, (normal(197, 1536), normal(197, 1536, seed=1))),
        ("sign", jnp.sign, WIDE),
        ("round", jnp.round, WIDE),
        ("clip", lambda x: jnp.clip(x, -1, 1), WIDE),
        ("where", lambda x, y: jnp.where(x > 0, x, y), (WIDE[0], normal(1536, seed=1))),
        ("add a row", jnp.add, (WIDE[0], normal(1536, seed=1))),
        ("x / y", jnp.divide, (WIDE[0], POSITIVE[0])),
        ("logaddexp", jnp.logaddexp, (WIDE[0], POSITIVE[0])),
    ),
    *family(
        "activations of 197x1536",
        ("relu", jax.nn.relu, WIDE),
        ("sigmoid", jax.nn.sigmoid, WIDE),
        ("tanh", jnp.tanh, WIDE),
        ("gelu, tanh", jax.nn.gelu, WIDE),
        ("gelu, erf", lambda x: jax.nn.gelu(x, approximate=False), WIDE),
        ("silu", jax.nn.silu, WIDE),
        ("softplus", jax.nn.softplus, WIDE),
        ("mish", jax.nn.mish, WIDE),
        ("elu", jax.nn.elu, WIDE),
        ("selu", jax.nn.selu, WIDE),
        ("leaky_relu", jax.nn.leaky_relu, WIDE),
        ("hard_swish", jax.nn.hard_swish, WIDE),
        ("log_sigmoid", jax.nn.log_sigmoid, WIDE),
    ),
    *family(
        "integers and conversions",
        ("i32 % 7, 256x256", lambda x: x % 7, WHOLE),
        ("i32 // 7, 256x256", lambda x: x // 7, WHOLE),
        ("i32 % i32, 256x256", jnp.mod, (WHOLE[0], integers(256, 256, lo=1, hi=50))),
        ("i32 // i32, 256x256", jnp.floor_divide, (WHOLE[0], integers(256, 256, lo=1, hi=50))),
        ("lax.rem, 256x256", lax.rem, (WHOLE[0], integers(256, 256, lo=1, hi=50))),
        ("f32 % 2.5, 256x256", lambda x: x % 2.5, (normal(256, 256),)),
        ("f32 to u8, 256x256", lambda x: x.astype(np.uint8), (uniform(256, 256, hi=255),)),
        ("f32 to i32, 256x256", lambda x: x.astype(np.int32), (normal(256, 256) * 100,)),
        ("u8 to f32, 256x256", lambda x: x.astype(np.float32), (np.ones((256, 256), np.uint8),)),
        ("shift and xor, 256x256", lambda x: (x << 3) ^ (x >> 2), WHOLE),
    ),
)

# SPDX-License-Identifier: Apache-2.0
"""Public functions without a row, by reason; what has neither is found by a test."""

from __future__ import annotations

ALIAS = "another name of a function in the table"
CONSTANT = "makes an array of numbers that are known at the export, a constant of the model"
NO_ARRAY = "says something about dtypes, shapes or options; no operation on arrays"
HOST = "reads or writes memory, files or text of the host"
LOGARITHM = "the logarithm of `cdf` or `sf`, or the other way round, which are in the table"
EXPONENTIAL = "the exponential of `logpdf` or `logpmf`, which is in the table"
DATA_SIZE = "the size of the result depends on the data, and cannot be given: JAX cannot trace it"
SEVERAL_DEVICES = "is about several devices; a model runs on one"
ORDER_OF_EFFECTS = "is about effects and the order of equations; it does not change values"
PLATFORM = "gives other numbers on each platform"
NARROW_FLOATS = "is about block-scaled 8- and 4-bit floats, which have no derivatives"
GENERAL = "the general form of a function in the table"
BASE = "what other layers are made of, not a layer itself"
STATE = "is about state, parameters or sharding of modules, not about values"

LEFT_OUT: dict[str, dict[str, str]] = {
    "jax.nn": {
        ALIAS: "hard_swish swish",
        NARROW_FLOATS: "get_scaled_dot_general_config scaled_dot_general scaled_matmul",
    },
    "jax.numpy": {
        ALIAS: "absolute acos acosh amax amin around asin asinh atan atan2 atanh "
        "bitwise_left_shift bitwise_not bitwise_right_shift concat conjugate degrees invert "
        "permute_dims pow radians true_divide linalg.cross linalg.diagonal linalg.matmul "
        "linalg.matrix_transpose linalg.outer linalg.tensordot linalg.trace linalg.vecdot",
        CONSTANT: "arange bartlett blackman diag_indices diag_indices_from empty eye fft.fftfreq "
        "fft.rfftfreq fromfunction full hamming hanning identity indices kaiser mask_indices ones "
        "tri tril_indices tril_indices_from triu_indices triu_indices_from zeros",
        NO_ARRAY: "broadcast_shapes can_cast einsum_path frompyfunc get_printoptions iscomplexobj "
        "isdtype isrealobj isscalar issubdtype iterable ndim printoptions promote_types "
        "result_type set_printoptions shape size",
        HOST: "array_repr array_str from_dlpack frombuffer fromfile fromiter fromstring load save "
        "savez",
        DATA_SIZE: "trim_zeros",
    },
    "jax.lax": {
        CONSTANT: "broadcasted_iota empty full iota",
        NO_ARRAY: "ConvGeneralDilatedDimensionNumbers DotDimensionNumbers PrecisionLike axis_size "
        "broadcast_shapes conv_dimension_numbers conv_general_permutations "
        "conv_general_shape_tuple conv_shape_tuple conv_transpose_shape_tuple dtype "
        "padtype_to_pads reduce_window_shape_tuple shape_as_value",
        SEVERAL_DEVICES: "pbroadcast pcast precv psend ragged_all_to_all with_sharding_constraint",
        ORDER_OF_EFFECTS: "after_all create_token dce_sink stage",
        PLATFORM: "rng_bit_generator rng_uniform",
        NARROW_FLOATS: "scaled_dot",
        GENERAL: "ragged_dot_general",
    },
    "jax.scipy": {
        CONSTANT: "linalg.dft linalg.hadamard linalg.helmert linalg.hilbert linalg.invhilbert "
        "linalg.invpascal linalg.pascal special.bernoulli",
    },
    "jax.scipy.stats": {
        EXPONENTIAL: "bernoulli.pmf beta.pdf betabinom.pmf binom.pmf cauchy.pdf chi2.pdf "
        "dirichlet.pdf expon.pdf gamma.pdf gennorm.pdf geom.pmf gumbel_l.pdf gumbel_r.pdf "
        "laplace.pdf logistic.pdf multinomial.pmf multivariate_normal.pdf nbinom.pmf norm.pdf "
        "pareto.pdf poisson.pmf t.pdf truncnorm.pdf uniform.pdf vonmises.pdf wrapcauchy.pdf",
        LOGARITHM: "beta.logcdf beta.logsf cauchy.logcdf cauchy.logsf chi2.logcdf chi2.logsf "
        "expon.logsf gamma.logcdf gamma.logsf gumbel_l.logsf gumbel_r.logsf pareto.logsf "
        "truncnorm.logsf",
    },
    "jax.random": {
        NO_ARRAY: "key_dtype key_impl",
        CONSTANT: "PRNGKey key key_data",
    },
    "equinox.nn": {
        BASE: "AdaptivePool Conv ConvTranspose Pool StatefulLayer",
        STATE: "Shared StateIndex",
    },
    "flax.nnx": {
        BASE: "Module RNNCellBase",
        STATE: "Dict List",
    },
}


def reasons(group: str) -> dict[str, str]:
    """The reason of each name of a group that has no row."""
    listed = LEFT_OUT.get(group, {})
    return {name: reason for reason, names in listed.items() for name in names.split()}

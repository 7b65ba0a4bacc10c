// SPDX-License-Identifier: Apache-2.0
#include "front/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "jaxport/error.h"

namespace jaxport::front {
namespace {

constexpr std::string_view kMeaningless[] = {
    // where and how values are stored
    "sharding", "out_sharding", "in_shardings", "out_shardings", "in_layouts", "out_layouts",
    "donated_invars", "ctx_mesh", "devices", "srcs", "copy_semantics",
    // hints to the compiler
    "accuracy", "compiler_options_kvs", "inline", "keep_unused", "prevent_cse", "policy", "linear",
    "_split_transpose", "weak_type",
    // how to differentiate, and Python functions whose jaxpr stands beside them
    "jvp_jaxpr_fun", "fwd_jaxpr_thunk", "bwd", "out_trees", "symbolic_zeros", "differentiated",
    "computation"};

// Of JAX 0.7 to 0.11, and as jaxport._jax spells what changed between them; without those above.
constexpr Signature kSignatures[] = {
    // sorted by name
    {"ConvDimensionNumbers", "lhs_spec out_spec rhs_spec"},
    {"GatherDimensionNumbers",
     "collapsed_slice_dims offset_dims operand_batching_dims start_index_map "
     "start_indices_batching_dims"},
    {"ScatterDimensionNumbers",
     "inserted_window_dims operand_batching_dims scatter_dims_to_operand_dims "
     "scatter_indices_batching_dims update_window_dims"},
    {"_LinearSolveTuple", "matvec solve transpose_solve vecmat"},
    {"abs", ""},
    {"acos", ""},
    {"acosh", ""},
    {"add", ""},
    {"add_any", ""},
    {"all_gather", "all_gather_dimension axis_index_groups axis_name axis_size tiled"},
    {"all_gather_invariant", "all_gather_dimension axis_index_groups axis_name axis_size tiled"},
    {"all_to_all", "axis_index_groups axis_name concat_axis split_axis tiled"},
    {"and", ""},
    {"approx_top_k",
     "aggregate_to_topk is_max_k k recall_target reduction_dimension "
     "reduction_input_size_override"},
    {"argmax", "axes index_dtype"},
    {"argmin", "axes index_dtype"},
    {"asin", ""},
    {"asinh", ""},
    {"atan", ""},
    {"atan2", ""},
    {"atanh", ""},
    {"axis_index", "axis_name"},
    {"bessel_i0e", ""},
    {"bessel_i1e", ""},
    {"bitcast_convert_type", "new_dtype"},
    {"broadcast_in_dim", "broadcast_dimensions shape"},
    {"call_hi_primitive", "_prim"},
    {"cbrt", ""},
    {"ceil", ""},
    {"checkpoint", "jaxpr"},
    {"cholesky", ""},
    {"cholesky_update", ""},
    {"clamp", ""},
    {"closed_call", "call_jaxpr jaxpr name subfuns"},
    {"clz", ""},
    {"complex", ""},
    {"composite", "attributes call_jaxpr jaxpr name version"},
    {"concatenate", "dimension"},
    {"cond", "branches branches_platforms"},
    {"conj", "input_dtype"},
    {"conv_general_dilated",
     "batch_group_count dimension_numbers feature_group_count lhs_dilation padding precision "
     "preferred_element_type rhs_dilation window_strides"},
    {"convert_element_type", "new_dtype"},
    {"copy", ""},
    {"copy_p", ""},
    {"core_call", "call_jaxpr jaxpr name subfuns"},
    {"cos", ""},
    {"cosh", ""},
    {"cumlogsumexp", "axis reverse"},
    {"cummax", "axis reverse"},
    {"cummin", "axis reverse"},
    {"cumprod", "axis reverse"},
    {"cumsum", "axis reverse"},
    {"custom_jvp_call", "call_jaxpr num_consts subfuns"},
    {"custom_linear_solve", "const_lengths jaxprs"},
    {"custom_vjp_call", "call_jaxpr num_consts subfuns"},
    {"custom_vjp_call_jaxpr", "fun_jaxpr num_consts"},
    {"device_put", ""},
    {"digamma", ""},
    {"dim_as_value", "dim"},
    {"div", ""},
    {"dot_general", "dimension_numbers precision preferred_element_type"},
    {"dynamic_slice", "slice_sizes"},
    {"dynamic_update_slice", ""},
    {"eig",
     "compute_left_eigenvectors compute_right_eigenvectors enable_eigvec_derivs implementation "
     "use_magma"},
    {"eigh", "algorithm lower sort_eigenvalues subset_by_index"},
    {"empty", "dtype memory_space shape"},
    {"empty2", "dtype memory_space shape"},
    {"eq", ""},
    {"eq_to", ""},
    {"erf", ""},
    {"erf_inv", ""},
    {"erfc", ""},
    {"exp", ""},
    {"exp2", ""},
    {"expm1", ""},
    {"fft", "fft_lengths fft_type"},
    {"floor", ""},
    {"gather", "dimension_numbers fill_value indices_are_sorted mode slice_sizes unique_indices"},
    {"ge", ""},
    {"geqp3", "use_magma"},
    {"geqrf", ""},
    {"gt", ""},
    {"hessenberg", ""},
    {"householder_product", ""},
    {"igamma", ""},
    {"igamma_grad_a", ""},
    {"igammac", ""},
    {"imag", ""},
    {"integer_pow", "y"},
    {"iota", "dimension dtype shape"},
    {"iota_2x32_shape", "shape"},
    {"is_finite", ""},
    {"jit", "call_jaxpr jaxpr name subfuns"},
    {"layout_constraint", "layout"},
    {"le", ""},
    {"le_to", ""},
    {"lgamma", ""},
    {"log", ""},
    {"log1p", ""},
    {"log2", ""},
    {"logistic", ""},
    {"lt", ""},
    {"lt_to", ""},
    {"lu", ""},
    {"lu_pivots_to_permutation", "permutation_size"},
    {"max", ""},
    {"mesh_cast", "dst_sharding"},
    {"min", ""},
    {"mul", "out_dtype"},
    {"mulhi", ""},
    {"name", "name"},
    {"ne", ""},
    {"neg", ""},
    {"nextafter", ""},
    {"not", ""},
    {"one_minus_square", ""},
    {"optimization_barrier", ""},
    {"or", ""},
    {"ormqr", "left transpose"},
    {"pad", "padding_config"},
    {"pcast", "axes axis_index_groups axis_name to"},
    {"pjit", "call_jaxpr jaxpr name subfuns"},
    {"platform_index", "platforms"},
    {"pmax", "axes axis_index_groups"},
    {"pmin", "axes axis_index_groups"},
    {"polygamma", ""},
    {"population_count", ""},
    {"pow", ""},
    {"psum", "axes axis_index_groups"},
    {"psum_invariant", "axes axis_index_groups"},
    {"pvary", "axes axis_index_groups"},
    {"qr", "full_matrices pivoting use_magma"},
    {"ragged_dot_general",
     "group_offset precision preferred_element_type ragged_dot_dimension_numbers"},
    {"random_bits", "bit_width shape"},
    {"random_clone", ""},
    {"random_fold_in", ""},
    {"random_gamma", "log_space"},
    {"random_gamma_grad", ""},
    {"random_seed", "impl"},
    {"random_split", "shape"},
    {"random_unwrap", ""},
    {"random_wrap", "impl"},
    {"real", ""},
    {"reduce", "dimensions jaxpr"},
    {"reduce_and", "axes"},
    {"reduce_max", "axes"},
    {"reduce_min", "axes"},
    {"reduce_or", "axes"},
    {"reduce_precision", "exponent_bits mantissa_bits"},
    {"reduce_prod", "axes"},
    {"reduce_scatter", "axis_index_groups axis_name axis_size scatter_dimension tiled"},
    {"reduce_sum", "axes"},
    {"reduce_window",
     "base_dilation consts jaxpr padding window_dilation window_dimensions window_strides"},
    {"reduce_window_max", "base_dilation padding window_dilation window_dimensions window_strides"},
    {"reduce_window_min", "base_dilation padding window_dilation window_dimensions window_strides"},
    {"reduce_window_sum", "base_dilation padding window_dilation window_dimensions window_strides"},
    {"reduce_xor", "axes"},
    {"regularized_incomplete_beta", ""},
    {"rem", ""},
    {"remat", "jaxpr"},
    {"remat2", "jaxpr"},
    {"reshape", "dimensions new_sizes"},
    {"rev", "dimensions"},
    {"rng_bit_generator", "algorithm dtype shape"},
    {"rng_uniform", "shape"},
    {"round", "rounding_method"},
    {"rsqrt", ""},
    {"scaled_dot", "dimension_numbers preferred_element_type"},
    {"scan", "ft_in ft_out jaxpr length num_carry num_consts reverse unroll"},
    {"scatter",
     "dimension_numbers indices_are_sorted mode unique_indices update_consts update_jaxpr"},
    {"scatter-add",
     "dimension_numbers indices_are_sorted mode unique_indices update_consts update_jaxpr"},
    {"scatter-max",
     "dimension_numbers indices_are_sorted mode unique_indices update_consts update_jaxpr"},
    {"scatter-min",
     "dimension_numbers indices_are_sorted mode unique_indices update_consts update_jaxpr"},
    {"scatter-mul",
     "dimension_numbers indices_are_sorted mode unique_indices update_consts update_jaxpr"},
    {"scatter-sub",
     "dimension_numbers indices_are_sorted mode unique_indices update_consts update_jaxpr"},
    {"schur", "compute_schur_vectors select_callable sort_eig_vals"},
    {"select_and_gather_add",
     "base_dilation padding select_prim window_dilation window_dimensions window_strides"},
    {"select_and_scatter",
     "padding scatter_consts scatter_jaxpr select_consts select_jaxpr window_dimensions "
     "window_strides"},
    {"select_and_scatter_add", "padding select_prim window_dimensions window_strides"},
    {"select_n", ""},
    {"shard_map",
     "auto check_rep check_vma debug_info in_names in_specs jaxpr manual_axes mesh mesh_size "
     "newly_manual_axes out_names out_specs out_specs_thunk rewrite subfuns"},
    {"sharding_constraint", "context_mesh layout unconstrained_dims"},
    {"shift_left", ""},
    {"shift_right_arithmetic", ""},
    {"shift_right_logical", ""},
    {"sign", ""},
    {"sin", ""},
    {"sinh", ""},
    {"slice", "limit_indices start_indices strides"},
    {"sort", "dimension is_stable num_keys"},
    {"split", "axis sizes"},
    {"sqrt", ""},
    {"square", ""},
    {"squeeze", "dimensions"},
    {"stack", "axis"},
    {"stop_gradient", ""},
    {"sub", ""},
    {"svd", "algorithm compute_uv full_matrices subset_by_index"},
    {"symmetric_product", "alpha beta"},
    {"tan", ""},
    {"tanh", ""},
    {"threefry2x32", ""},
    {"tile", "reps"},
    {"top_k", "axis is_stable k"},
    {"transpose", "permutation"},
    {"triangular_solve", "conjugate_a left_side lower transpose_a unit_diagonal"},
    {"tridiagonal", "lower"},
    {"tridiagonal_solve", "perturb_singular"},
    {"unstack", "axis"},
    {"while", "body_jaxpr body_nconsts cond_jaxpr cond_nconsts"},
    {"xor", ""},
    {"zeta", ""},
};
static_assert(std::ranges::is_sorted(kSignatures, {}, &Signature::name));

void check_fields_in(std::string_view primitive, const Attr& attr) {
  if (const auto* record = attr.get_if<Record>()) check_fields(primitive, *record);
}

bool is_meaningless(std::string_view parameter) {
  return std::ranges::find(kMeaningless, parameter) != std::end(kMeaningless);
}

}  // namespace

std::span<const std::string_view> meaningless_parameters() { return kMeaningless; }

bool Signature::has(std::string_view parameter) const {
  std::string_view rest = parameters;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    if (rest.substr(0, end) == parameter) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

std::span<const Signature> signatures() { return kSignatures; }

const Signature* find_signature(std::string_view name) {
  const auto* found = std::ranges::lower_bound(kSignatures, name, {}, &Signature::name);
  return found != std::end(kSignatures) && found->name == name ? found : nullptr;
}

void refuse_parameter(std::string_view primitive, std::string_view parameter) {
  throw Error("E031", fmt::format("primitive '{}' has a parameter '{}' that jaxport does not know",
                                  primitive, parameter))
      .help(
          "a version of JAX may have added or renamed it: docs/compatibility.md has those that "
          "are tested");
}

void check_fields(std::string_view primitive, const Record& record) {
  const Signature* known = find_signature(record.name);
  for (const auto& [name, attr] : record.fields) {
    if (known != nullptr && !known->has(name)) refuse_parameter(primitive, name);
    check_fields_in(primitive, attr);
  }
}

void check_parameters(const Eqn& eqn) {
  const Signature* known = find_signature(eqn.primitive);
  if (known == nullptr || find(eqn.attrs, kProblem) != nullptr) return;
  for (const auto& [name, attr] : eqn.attrs) {
    if (!known->has(name) && !is_meaningless(name)) refuse_parameter(eqn.primitive, name);
    check_fields_in(eqn.primitive, attr);
  }
}

}  // namespace jaxport::front

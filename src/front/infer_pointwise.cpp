// SPDX-License-Identifier: Apache-2.0
// Elementwise primitives, and those that hand their operands on.
#include <algorithm>

#include "front/infer.h"
#include "front/params.h"

namespace jaxport::front {
namespace {

// An operand of rank 0 fits all others, and a dim of size 1 any size.
Dims common_shape(const Inference& c) {
  Dims common;
  for (std::size_t i = 0; i < c.operands(); ++i) {
    const Dims& other = c.shape(i);
    if (other.empty()) continue;
    if (common.empty()) {
      common = other;
      continue;
    }
    c.require(other.size() == common.size(), "the ranks of the operands differ");
    for (std::size_t dim = 0; dim < common.size(); ++dim) {
      if (common[dim].is_one()) {
        common[dim] = other[dim];
      } else if (!other[dim].is_one()) {
        c.require_equal(common[dim], other[dim]);
      }
    }
  }
  return common;
}

template <std::size_t operands>
void same_dtype(const Inference& c) {
  c.require_counts(operands);
  c.require_one_dtype();
  c.gives(c.in(0).dtype, common_shape(c));
}

// jax 0.10: the dtype of a product may be given.
void product_of_two(const Inference& c) {
  c.require_counts(2);
  c.require_one_dtype();
  const DType dtype = has(c.eqn, "out_dtype") ? get_dtype(c.eqn, "out_dtype") : c.in(0).dtype;
  c.gives(dtype, common_shape(c));
}

// The exponent may be an integer.
void power(const Inference& c) {
  c.require_counts(2);
  c.gives(c.in(0).dtype, common_shape(c));
}

template <std::size_t operands>
void truth(const Inference& c) {
  c.require_counts(operands);
  c.require_one_dtype();
  c.gives(DType::kBool, common_shape(c));
}

void choice(const Inference& c) {
  c.require(c.operands() >= 2 && c.results() == 1,
            "the numbers of operands and results do not fit");
  const DType which = c.in(0).dtype;
  c.require(which == DType::kBool || is_integer(which), "the first operand has to be bool or i32");
  c.require(which != DType::kBool || c.operands() <= 3, "a bool picks one of two cases");
  c.require_one_dtype(1);
  c.gives(c.in(1).dtype, common_shape(c));
}

void conversion(const Inference& c) {
  c.require_counts(1);
  const bool is_given = has(c.eqn, "new_dtype");
  c.gives(is_given ? get_dtype(c.eqn, "new_dtype") : c.out().dtype, c.shape());
}

// abs, and the parts of a complex number.
void real_number(const Inference& c) {
  c.require_counts(1);
  c.gives(part_dtype(c.in(0).dtype), c.shape());
}

void complex_number(const Inference& c) {
  c.require_counts(2);
  c.require_one_dtype();
  const DType part = c.in(0).dtype;
  c.require(part == DType::kF32 || part == DType::kF64, "the operands have to be f32 or f64");
  c.gives(part == DType::kF32 ? DType::kC64 : DType::kC128, common_shape(c));
}

void conjugate(const Inference& c) {
  c.require_counts(1);
  c.gives(c.out().dtype, c.shape());
  c.require(part_dtype(c.out().dtype) == part_dtype(c.in(0).dtype), "the result has other parts");
}

void handed_on(const Inference& c) {
  c.require_counts(c.operands(), c.operands());
  for (std::size_t i = 0; i < c.operands(); ++i) c.gives(c.in(i), i);
}

constexpr InferenceRow kPointwiseTypes[] = {
    // sorted by primitive
    {"abs", real_number},
    {"acos", same_dtype<1>},
    {"acosh", same_dtype<1>},
    {"add", same_dtype<2>},
    {"add_any", same_dtype<2>},
    {"and", same_dtype<2>},
    {"asin", same_dtype<1>},
    {"asinh", same_dtype<1>},
    {"atan", same_dtype<1>},
    {"atan2", same_dtype<2>},
    {"atanh", same_dtype<1>},
    {"bessel_i0e", same_dtype<1>},
    {"bessel_i1e", same_dtype<1>},
    {"cbrt", same_dtype<1>},
    {"ceil", same_dtype<1>},
    {"clamp", same_dtype<3>},
    {"clz", same_dtype<1>},
    {"complex", complex_number},
    {"conj", conjugate},
    {"convert_element_type", conversion},
    {"copy", handed_on},
    {"copy_p", handed_on},
    {"cos", same_dtype<1>},
    {"cosh", same_dtype<1>},
    {"device_put", handed_on},
    {"digamma", same_dtype<1>},
    {"div", same_dtype<2>},
    {"eq", truth<2>},
    {"eq_to", truth<2>},
    {"erf", same_dtype<1>},
    {"erf_inv", same_dtype<1>},
    {"erfc", same_dtype<1>},
    {"exp", same_dtype<1>},
    {"exp2", same_dtype<1>},
    {"expm1", same_dtype<1>},
    {"floor", same_dtype<1>},
    {"ge", truth<2>},
    {"gt", truth<2>},
    {"igamma", same_dtype<2>},
    {"igamma_grad_a", same_dtype<2>},
    {"igammac", same_dtype<2>},
    {"imag", real_number},
    {"integer_pow", same_dtype<1>},
    {"is_finite", truth<1>},
    {"le", truth<2>},
    {"le_to", truth<2>},
    {"lgamma", same_dtype<1>},
    {"log", same_dtype<1>},
    {"log1p", same_dtype<1>},
    {"logistic", same_dtype<1>},
    {"lt", truth<2>},
    {"lt_to", truth<2>},
    {"max", same_dtype<2>},
    {"min", same_dtype<2>},
    {"mul", product_of_two},
    {"name", handed_on},
    {"ne", truth<2>},
    {"neg", same_dtype<1>},
    {"nextafter", same_dtype<2>},
    {"not", same_dtype<1>},
    {"optimization_barrier", handed_on},
    {"or", same_dtype<2>},
    {"polygamma", same_dtype<2>},
    {"population_count", same_dtype<1>},
    {"pow", power},
    {"random_gamma_grad", same_dtype<2>},
    {"real", real_number},
    {"reduce_precision", same_dtype<1>},
    {"regularized_incomplete_beta", same_dtype<3>},
    {"rem", same_dtype<2>},
    {"round", same_dtype<1>},
    {"rsqrt", same_dtype<1>},
    {"select_n", choice},
    {"shift_left", same_dtype<2>},
    {"shift_right_arithmetic", same_dtype<2>},
    {"shift_right_logical", same_dtype<2>},
    {"sign", same_dtype<1>},
    {"sin", same_dtype<1>},
    {"sinh", same_dtype<1>},
    {"sqrt", same_dtype<1>},
    {"square", same_dtype<1>},
    {"stop_gradient", handed_on},
    {"sub", same_dtype<2>},
    {"tan", same_dtype<1>},
    {"tanh", same_dtype<1>},
    {"xor", same_dtype<2>},
    {"zeta", same_dtype<2>},
};
static_assert(std::ranges::is_sorted(kPointwiseTypes, {}, &InferenceRow::primitive));

}  // namespace

std::span<const InferenceRow> pointwise_types() { return kPointwiseTypes; }

}  // namespace jaxport::front

// SPDX-License-Identifier: Apache-2.0
// Constructors of sums and their kin: reduce and contract.
#include <algorithm>
#include <utility>

#include "axis/graph/expr.h"
#include "axis/graph/pattern.h"
#include "axis/graph/store.h"

namespace jaxport::axis {
namespace {

// The operand with a real axis for a label that it lacks.
Use repeat(Graph& graph, const Use& operand, Label along) {
  Pattern axes = operand.labels;
  axes.push_back({along});
  Use repeated = graph.relayout(operand, axes);
  repeated.labels = std::move(axes);
  return repeated;
}

// x * count, when count is exact in the dtype; empty otherwise.
Use times(Graph& graph, const Use& x, std::int64_t count, DType dtype) {
  const Tensor factor =
      is_integer(dtype) ? int_scalar(dtype, count) : scalar(dtype, static_cast<double>(count));
  const bool wraps = is_integer(dtype);  // integer sums wrap as the product does
  if (!wraps && factor.at(0) != static_cast<double>(count)) return {};
  return x * graph.constant(factor);
}

// The reduction of `count` equal values; empty when there is no shorter way than to do it.
Use reduce_equal(Graph& graph, std::string_view name, const Use& x, const Dim& count, DType dtype) {
  if (count == Dim(0)) return {};
  if (name == "reduce_max" || name == "reduce_min" || name == "reduce_and" || name == "reduce_or") {
    return x;
  }
  if (!count.is_static() || is_complex(dtype)) return {};
  if (name == "reduce_sum") return times(graph, x, count.value(), dtype);
  return name == "reduce_prod" ? integer_pow(x, count.value()) : Use{};
}

}  // namespace

Use Graph::reduce(std::string_view name, Use operand, const Labels& over, DType dtype) {
  Labels axes = within(operand.flat(), over);
  const auto has_no_elements = [&](Label label) { return size(label).is_zero(); };
  const bool is_neutral = std::ranges::any_of(over, has_no_elements);
  for (Label label : without(over, axes)) {
    // The neutral element is the same however often it is repeated.
    if (is_neutral && !has_no_elements(label)) continue;
    if (Use shorter = reduce_equal(*this, name, operand, size(label), dtype)) {
      operand = std::move(shorter);
    } else {
      operand = repeat(*this, operand, label);
      axes.push_back(label);
    }
  }
  if (axes.empty()) return operand;
  if (operand.node->is(Kind::kReduce, name) && operand.node->dtype == dtype) {
    Use inner = child(operand, 0);
    const Labels all = without(inner.flat(), without(operand.flat(), axes));
    return reduce(name, std::move(inner), all, dtype);
  }
  const Labels kept = without(operand.flat(), axes);
  return impl_->make({Kind::kReduce, name, dtype, {std::move(operand)}, axis_each(kept)});
}

Use Graph::contract(Use lhs, Use rhs, const Labels& over, DType dtype) {
  // A value times itself. Narrow floats stay: a contraction sums them before it rounds.
  const bool is_wide = dtype == DType::kF32 || dtype == DType::kF64;
  if (is_wide && lhs == rhs && lhs.node->dtype == dtype) {
    return reduce_sum(lhs * rhs, over);
  }
  const Labels left = lhs.flat(), right = rhs.flat();
  const Labels both = within(within(over, left), right);
  const Labels left_only = without(within(over, left), right);
  const Labels right_only = without(within(over, right), left);
  const Labels neither = without(without(over, left), right);
  const bool is_bool = dtype == DType::kBool;
  const std::string_view sum = is_bool ? "reduce_or" : "reduce_sum";
  if (both.empty() || !left_only.empty() || !right_only.empty()) {
    // Partial sums and products are taken in the dtype of the result, as the whole would be.
    lhs = reduce(sum, convert(lhs, dtype), left_only, dtype);
    rhs = reduce(sum, convert(rhs, dtype), right_only, dtype);
  }
  Use product;
  if (both.empty()) {
    product = is_bool ? logical_and(lhs, rhs) : lhs * rhs;
  } else {
    Labels kept = without(lhs.flat(), both);
    add_new(kept, without(rhs.flat(), both));
    product = impl_->make({.kind = Kind::kContract,
                           .name = "contract",
                           .dtype = dtype,
                           .operands = {std::move(lhs), std::move(rhs)},
                           .out = axis_each(kept),
                           .commutative = true});
  }
  return neither.empty() ? product : reduce(sum, std::move(product), neither, dtype);
}

}  // namespace jaxport::axis

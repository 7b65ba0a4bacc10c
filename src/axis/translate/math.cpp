// SPDX-License-Identifier: Apache-2.0
// Elementwise primitives, reductions and dot_general.
#include <algorithm>
#include <array>
#include <utility>

#include "axis/graph/expr.h"
#include "axis/graph/pattern.h"
#include "axis/graph/pointwise.h"
#include "axis/graph/view.h"
#include "axis/translate/translate.h"
#include "axis/translate/unpad.h"
#include "front/combiner.h"

namespace jaxport::axis {
namespace {

View reduced(Translation& t, std::string_view name, const View& view,
             const std::vector<std::size_t>& axes) {
  Labels over;
  Pattern kept;
  for (std::size_t dim = 0; dim < view.dims.size(); ++dim) {
    if (std::ranges::find(axes, dim) != axes.end()) {
      over.insert(over.end(), view.dims[dim].begin(), view.dims[dim].end());
    } else {
      kept.push_back(view.dims[dim]);
    }
  }
  return {t.graph.reduce(name, view.use, over, view.use.node->dtype), std::move(kept)};
}

Views reduce(Translation& t) {
  t.require_operands(1);
  const Ints axes = front::ReduceParams::read(t.eqn).axes;
  return one(reduced(t, t.eqn.primitive, t.in[0], t.axes(axes, t.in[0].dims.size())));
}

// A reduction with a function of the user's. What combines by one primitive is the reduction of
// that name, combined with the initial value.
Views general_reduce(Translation& t) {
  const auto params = front::ReduceParams::read(t.eqn);
  const std::vector<front::Combiner> combiners = front::combiners(*params.combine);
  const std::size_t count = combiners.size();
  if (count == 0 || t.in.size() != 2 * count) return std::nullopt;
  std::vector<View> results;
  for (std::size_t i = 0; i < count; ++i) {
    const front::Combiner& by = combiners[i];
    View view = reduced(t, by.reduction, t.in[i], t.axes(params.axes, t.in[i].dims.size()));
    t.require(t.in[count + i].dims.empty(), "an initial value is not a scalar");
    const DType dtype = view.use.node->dtype;
    view.use = t.graph.pointwise(by.primitive, {t.in[count + i].use, view.use}, dtype);
    results.push_back(std::move(view));
  }
  return results;
}

// --- dot_general

// Paired dims of the two operands.
struct Pairs {
  std::vector<std::size_t> lhs, rhs;
};

Pairs to_pairs(const Translation& t, const Ints& lhs, const Ints& rhs) {
  return {t.axes(lhs, t.in[0].dims.size()), t.axes(rhs, t.in[1].dims.size())};
}

// Aligns each pair; returns the labels that both then have.
Pattern align_pairs(Translation& t, const Pairs& pairs) {
  Pattern labels;
  for (std::size_t i = 0; i < pairs.lhs.size(); ++i) {
    const std::array dims{pairs.lhs[i], pairs.rhs[i]};
    labels.push_back(align(t.graph, t.in, dims));
  }
  return labels;
}

// Dims of one operand that belong to no pair, under labels that the other operand does not have.
void add_free_dims(Translation& t, std::size_t operand, const std::vector<std::size_t>& batch,
                   const std::vector<std::size_t>& contracted, Pattern& dims) {
  for (std::size_t dim = 0; dim < t.in[operand].dims.size(); ++dim) {
    const bool paired = std::ranges::find(batch, dim) != batch.end() ||
                        std::ranges::find(contracted, dim) != contracted.end();
    if (paired) continue;
    const std::array alone{dim};
    dims.push_back(align(t.graph, std::span(t.in).subspan(operand, 1), alone));
  }
}

Views dot_general(Translation& t) {
  t.require(t.eqn.in.size() == 2 && t.eqn.out.size() == 1, "needs two operands and one result");
  const auto params = front::DotParams::read(t.eqn);
  const Pairs contracted = to_pairs(t, params.lhs_contract, params.rhs_contract),
              batch = to_pairs(t, params.lhs_batch, params.rhs_batch);
  for (std::size_t side : {0u, 1u}) {
    std::vector<std::size_t> all = side == 0 ? batch.lhs : batch.rhs;
    const auto& more = side == 0 ? contracted.lhs : contracted.rhs;
    all.insert(all.end(), more.begin(), more.end());
    t.axes(Ints(all.begin(), all.end()), t.in[side].dims.size());
  }
  Pattern dims = align_pairs(t, batch);
  const Labels over = flatten(align_pairs(t, contracted));
  add_free_dims(t, 0, batch.lhs, contracted.lhs, dims);
  add_free_dims(t, 1, batch.rhs, contracted.rhs, dims);
  return one({t.graph.contract(t.in[0].use, t.in[1].use, over, t.dtype()), std::move(dims)});
}

// --- special cases of other primitives

// The running sum of a constant c is c, 2c, …
Views cumsum(Translation& t) {
  t.require_operands(1);
  const auto value = t.graph.scalar_value(t.in[0].use);
  const auto params = front::CumulativeParams::read(t.eqn);
  if (!value || !is_integer(t.dtype()) || params.reverse) return std::nullopt;
  const std::size_t axis = t.axes({params.axis}, t.in[0].dims.size())[0];
  View result = t.in[0];
  if (result.dims[axis].empty()) return one(std::move(result));
  const Label along = t.graph.label(t.in_shape()[axis]);
  result.use = (t.graph.iota(along, t.dtype()) + 1) * result.use;
  result.dims[axis] = {along};
  return one(std::move(result));
}

// Rounding to the widths that the dtype has is nothing.
Views reduce_precision(Translation& t) {
  struct Width {
    DType dtype;
    std::int64_t exponent, mantissa;
  };
  constexpr Width kWidths[] = {
      {DType::kBF16, 8, 7}, {DType::kF16, 5, 10}, {DType::kF32, 8, 23}, {DType::kF64, 11, 52}};
  t.require_operands(1);
  for (const Width& width : kWidths) {
    if (width.dtype == t.dtype() && front::get_int(t.eqn, "exponent_bits") >= width.exponent &&
        front::get_int(t.eqn, "mantissa_bits") >= width.mantissa) {
      return one(t.in[0]);
    }
  }
  return translate_pointwise(t);
}

Views bitcast_convert_type(Translation& t) {
  t.require_operands(1);
  if (bit_width(t.in_type(0).dtype) != bit_width(t.dtype())) return std::nullopt;
  return translate_pointwise(t);
}

// Also of truth values.
Views add(Translation& t) {
  Views turns = interleaved(t);
  return turns ? std::move(turns) : translate_pointwise(t);
}

constexpr TranslationRow kMathRows[] = {
    // sorted by primitive
    {"add", add},
    {"bitcast_convert_type", bitcast_convert_type},
    {"cumsum", cumsum},
    {"dot_general", dot_general},
    {"or", add},
    {"reduce", general_reduce},
    {"reduce_and", reduce},
    {"reduce_max", reduce},
    {"reduce_min", reduce},
    {"reduce_or", reduce},
    {"reduce_precision", reduce_precision},
    {"reduce_prod", reduce},
    {"reduce_sum", reduce},
    {"reduce_xor", reduce},
};
static_assert(std::ranges::is_sorted(kMathRows, {}, &TranslationRow::primitive));

}  // namespace

std::span<const TranslationRow> math_translations() { return kMathRows; }

Views translate_pointwise(Translation& t) {
  const PointwiseRow& row = *find_pointwise(t.eqn.primitive);
  const bool fits =
      row.name == "select_n" ? t.in.size() > row.operands - 1 : t.in.size() == row.operands;
  t.require(fits && t.eqn.out.size() == 1, "the numbers of operands and results do not fit");
  if (t.eqn.primitive == "integer_pow") front::get_int(t.eqn, "y");  // E031 unless it is there
  for (const View& view : t.in) {
    const bool has_rank = view.dims.empty() || view.dims.size() == t.out_shape().size();
    t.require(has_rank, "an operand has neither the rank of the result nor rank 0");
  }
  Unified unified = unify(t.graph, std::move(t.in));
  Use use = t.graph.pointwise(t.eqn.primitive, std::move(unified.uses), t.dtype(), t.eqn.attrs);
  return one({std::move(use), std::move(unified.dims)});
}

}  // namespace jaxport::axis

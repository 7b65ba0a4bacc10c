// SPDX-License-Identifier: Apache-2.0
// Reductions.
#include <algorithm>
#include <array>

#include "lower/emit/cheapest.h"
#include "lower/emit/emission.h"
#include "onnx/subgraph.h"
#include "target/reduction.h"

namespace jaxport::lower {

using axis::Edge;
using axis::Kind;
using axis::Labels;
using axis::Node;
using target::reduced;

namespace {

struct ReduceOp {
  std::string_view name, op;
};
constexpr std::array<ReduceOp, 6> kReduceOps{{{"reduce_log_sum_exp", "ReduceLogSumExp"},
                                              {"reduce_max", "ReduceMax"},
                                              {"reduce_mean", "ReduceMean"},
                                              {"reduce_min", "ReduceMin"},
                                              {"reduce_prod", "ReduceProd"},
                                              {"reduce_sum", "ReduceSum"}}};

// Of truth values, or of integers 0 and 1: all = min, any = max, xor = sum modulo 2.
Value reduced_logical(onnx::Builder& op, const axis::Node& node, Value x, const Ints& axes,
                      bool keep) {
  // ONNX Runtime has the neutral element of numbers only.
  const auto can_be_empty = [&](std::int64_t axis) { return onnx::can_be_zero(x.shape()[axis]); };
  if (x.dtype() == DType::kBool && std::ranges::any_of(axes, can_be_empty)) {
    return cast(reduced_logical(op, node, cast(x, DType::kU8), axes, keep), DType::kBool);
  }
  if (node.name == "reduce_and") return reduced(op, "ReduceMin", x, axes, keep);
  if (node.name == "reduce_or") return reduced(op, "ReduceMax", x, axes, keep);
  return cast(reduced(op, "ReduceSum", cast(x, DType::kI64), axes, keep) % 2, x.dtype());
}

// Bit by bit, the bits along a new last dim: x as u64 divided by 1, 2, 4, …
Value reduced_bits(onnx::Builder& op, const axis::Node& node, Value x, const Ints& axes,
                   bool keep) {
  Ints places;
  for (int bit = 0; bit < bit_width(node.dtype); ++bit)
    places.push_back(static_cast<std::int64_t>(std::uint64_t{1} << bit));
  const Value wide = op.Unsqueeze(cast(x, DType::kU64), op.ints({-1}));
  const Value shifted = wide / cast(op.ints(places), DType::kU64);
  const Value bits = cast(shifted % 2, DType::kI64);
  const Value result = reduced_logical(op, node, bits, axes, keep);
  // Counted from the back, ONNX Runtime 1.31 would not reduce an axis of an empty array.
  const auto last = static_cast<std::int64_t>(result.rank()) - 1;
  const Value sum =
      op.ReduceSum(result * op.ints(places), op.ints({last}), onnx::Args{{"keepdims", 0}});
  return cast(sum, node.dtype);
}

bool is_gone(const Labels& dim, const LabelSet& kept) { return !dim.empty() && !kept.has_any(dim); }

Arrangement after_reduction(const Arrangement& operand, const LabelSet& kept, bool keep_dims) {
  Arrangement result;
  for (const Labels& dim : operand) {
    const bool gone = is_gone(dim, kept);
    if (!gone || keep_dims) result.push_back(gone ? Labels{} : dim);
  }
  return result;
}

// Unit dims stay where the consumers wish them, or when one of them broadcasts the result against
// something larger.
bool keeps_dims(const Emission& e, const Node& node, const Arrangement& operand) {
  const LabelSet kept(node.sizes.size(), node.out);
  const auto wish = wanted(e, node, kept);
  if (wish && *wish == after_reduction(operand, kept, true)) return true;
  if (wish && *wish == after_reduction(operand, kept, false)) return false;
  return std::ranges::any_of(e.plan.facts.users(&node), [&](const Facts::User& user) {
    return user.node && (user.node->kind == Kind::kPointwise || user.node->kind == Kind::kMacro) &&
           axis::flatten(user.node->out).size() > axis::flatten(node.out).size();
  });
}

}  // namespace

void emit_reduce(Emission& e, const Node& node) {
  const Edge& edge = node.edges[0];
  const LabelSet kept(node.sizes.size(), node.out);
  const auto order = wanted_order(e, node, kept);
  std::vector<Arrangement> candidates = e.values.arrangements(edge, node.sizes);
  for (Arrangement& candidate : candidates) candidate = split_by(candidate, kept);
  const Arrangement best = cheapest_of(std::move(candidates), [&](const Arrangement& candidate) {
    const bool is_wanted = !order || kept.keep(axis::flatten(candidate)) == *order;
    return e.values.price(edge, node.sizes, candidate) + (is_wanted ? 0 : kTransposePrice);
  });
  const bool keep_dims = keeps_dims(e, node, best);
  Ints axes;
  for (std::size_t i = 0; i < best.size(); ++i) {
    if (is_gone(best[i], kept)) axes.push_back(static_cast<std::int64_t>(i));
  }
  const Arrangement result = after_reduction(best, kept, keep_dims);
  const Value x = e.values.bring(edge, node.sizes, best);
  const auto* found = std::ranges::find(kReduceOps, node.name, &ReduceOp::name);
  const bool is_bool = node.dtype == DType::kBool;
  if (found != kReduceOps.end()) {
    e.values.define(node, reduced(e.op, found->op, x, axes, keep_dims), result);
  } else {
    e.values.define(
        node, (is_bool ? reduced_logical : reduced_bits)(e.op, node, x, axes, keep_dims), result);
  }
}

}  // namespace jaxport::lower

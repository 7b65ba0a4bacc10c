// SPDX-License-Identifier: Apache-2.0
// Softmax and LogSoftmax run along one dim; logsumexp is a reduction.
#include <algorithm>

#include "lower/emit/emission.h"
#include "lower/macro/macro.h"
#include "raise/engine/ops.h"

namespace jaxport::lower {
namespace {

using axis::Labels;
using axis::Node;
using axis::Use;
using raise::LogSoftmaxOp;
using raise::LogSumExpOp;
using raise::SoftmaxOp;

// All labels of the set in one dim, last.
Arrangement gathered_last(const Arrangement& arrangement, const LabelSet& set) {
  Arrangement result;
  Labels last;
  for (const Labels& dim : arrangement) {
    const Labels inside = set.keep(dim);
    last.insert(last.end(), inside.begin(), inside.end());
    if (Labels outside = set.drop(dim); !outside.empty() || dim.empty()) {
      result.push_back(std::move(outside));
    }
  }
  result.push_back(std::move(last));
  return result;
}

template <class Op>
void emit_along(Emission& e, const Node& node) {
  const Op op = raise::read<Op>(node);
  const axis::Edge x = edge(op.x);
  const LabelSet along(node.sizes.size(), op.along);
  const auto is_along = [&](const Labels& dim) { return along.has_any(dim); };
  std::vector<Arrangement> candidates = e.values.arrangements(x, node.sizes);
  for (Arrangement& candidate : candidates) {
    candidate = split_by(candidate, along);
    if (std::ranges::count_if(candidate, is_along) > 1) candidate = gathered_last(candidate, along);
  }
  const Arrangement best = cheapest_of(std::move(candidates), [&](const Arrangement& candidate) {
    return e.values.price(x, node.sizes, candidate) + regret(e, node, candidate);
  });
  const std::int64_t axis_from_end = std::ranges::find_if(best, is_along) - best.end();
  const Value value = e.values.bring(x, node.sizes, best);
  const Value result = e.op.call(find_macro(node)->op, {value}, {{"axis", axis_from_end}});
  e.values.define(node, result, best);
}

bool is_log_softmax_right(const Node& node, const Options& options) {
  return node.dtype != DType::kF64 || !options.preferences().has_wrong_f64_log_softmax;
}

bool is_logsumexp_fast(const Node& node, const Options& options) {
  if (!options.preferences().has_slow_logsumexp) return true;
  std::int64_t elements = 1;
  for (const Dim& size : node.sizes) {
    if (!size.is_static() || size.value() > Preferences::kShortLogSumExp) return false;
    elements *= std::max<std::int64_t>(size.value(), 1);
    if (elements > Preferences::kShortLogSumExp) return false;
  }
  return true;
}

Use as_reduction(const Use& use, const Options&) {
  const auto [x, along] = raise::read<LogSumExpOp>(use);
  return x.node->graph->reduce("reduce_log_sum_exp", x, along, use.node->dtype);
}

}  // namespace

MacroRow softmax_macro() {
  return {.name = SoftmaxOp::kName,
          .op = "Softmax",
          .emit = emit_along<SoftmaxOp>,
          .treats_labels_alike = true};
}

MacroRow log_softmax_macro() {
  return {.name = LogSoftmaxOp::kName,
          .op = "LogSoftmax",
          .is_available = is_log_softmax_right,
          .emit = emit_along<LogSoftmaxOp>,
          .treats_labels_alike = true};
}

MacroRow logsumexp_macro() {
  return {.name = LogSumExpOp::kName,
          .op = "ReduceLogSumExp",
          .is_available = is_logsumexp_fast,
          .rewritten = as_reduction};
}

}  // namespace jaxport::lower

// SPDX-License-Identifier: Apache-2.0
// Softmax and LogSoftmax run along one dim; logsumexp is a reduction.
#include <algorithm>

#include "lower/emission.h"
#include "lower/macro.h"
#include "raise/ops.h"

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

void emit_along(Emission& e, const Node& node, const raise::AlongOp& op, std::string_view name) {
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
  e.values.define(node, e.op.call(name, {value}, {{"axis", axis_from_end}}), best);
}

}  // namespace

MacroRow softmax_macro() {
  return {
      .name = SoftmaxOp::kName,
      .is_available = [](const Node& node, const Options& o) { return has_op("Softmax", node, o); },
      .emit =
          [](Emission& e, const Node& node) {
            emit_along(e, node, raise::read<SoftmaxOp>(node), "Softmax");
          },
      .treats_labels_alike = true,
  };
}

MacroRow log_softmax_macro() {
  return {
      .name = LogSoftmaxOp::kName,
      // ONNX Runtime's LogSoftmax in f64 takes a sum that is NaN for 1e-20, and gives 46 beside a
      // NaN.
      .is_available =
          [](const Node& node, const Options& o) {
            const bool is_wrong =
                o.target == target::Target::kOnnxRuntime && node.dtype == DType::kF64;
            return !is_wrong && has_op("LogSoftmax", node, o);
          },
      .emit =
          [](Emission& e, const Node& node) {
            emit_along(e, node, raise::read<LogSoftmaxOp>(node), "LogSoftmax");
          },
      .treats_labels_alike = true,
  };
}

MacroRow logsumexp_macro() {
  return {
      .name = LogSumExpOp::kName,
      // ONNX Runtime takes 7 times as long for ReduceLogSumExp as for its parts.
      .is_available =
          [](const Node& node, const Options& o) {
            return o.target != target::Target::kOnnxRuntime && has_op("ReduceLogSumExp", node, o);
          },
      .rewritten =
          [](const Use& use, const Options&) {
            const auto [x, along] = raise::read<LogSumExpOp>(use);
            return x.node->graph->reduce("reduce_log_sum_exp", x, along, use.node->dtype);
          },
  };
}

}  // namespace jaxport::lower

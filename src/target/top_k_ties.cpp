// SPDX-License-Identifier: Apache-2.0
#include "target/top_k_ties.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "onnx/attributes.h"
#include "onnx/expr.h"
#include "target/every_graph.h"

namespace jaxport::target {
namespace {

using onnx::Args;
using onnx::Builder;
using onnx::Graph;
using onnx::Model;
using onnx::Node;
using onnx::Value;
using onnx::Values;

constexpr std::int64_t kLongestAxis = 46340;  // whose square is an i32

bool has_ties(const Model& model, const Node& node) {
  if (node.op != "TopK" || !node.domain.empty() || node.out.size() < 2) return false;
  const auto& type = model.values[node.in[0]].type;
  if (node.out[1] == onnx::kAbsent || !type || !type->shape || type->shape->empty()) return false;
  const std::int64_t axis = int_attribute(node, "axis", -1);
  const Dim& size = *(axis < 0 ? type->shape->end() + axis : type->shape->begin() + axis);
  return !size.is_static() || (size.value() > 1 && size.value() <= kLongestAxis);
}

class Sort {
 public:
  Sort(Builder& op, const Node& node)
      : op_(op),
        x_(&op, node.in[0]),
        k_(&op, node.in[1]),
        axis_((int_attribute(node, "axis", -1) + static_cast<std::int64_t>(x_.rank())) %
              static_cast<std::int64_t>(x_.rank())),
        largest_(int_attribute(node, "largest", 1)) {}

  // Values and places, the first of equal ones first.
  Values run() {
    const Value size = op_.Shape(x_, Args{{"start", axis_}, {"end", axis_ + 1}});
    const Values sorted = top(x_, size, largest_);
    const Value place = cast(sorted[1], DType::kI32);
    const Value key = rank(sorted[0], place) * cast(size, DType::kI32) + place;
    const Value order = op_.call_n("TopK", {key, k_}, 2, {{"axis", axis_}, {"largest", 0}})[1];
    return {along(sorted[0], order), along(sorted[1], order)};
  }

 private:
  Values top(const Value& x, const Value& k, std::int64_t largest) {
    return op_.call_n("TopK", {x, k}, 2, {{"axis", axis_}, {"largest", largest}});
  }
  Value along(const Value& x, const Value& places) {
    return op_.GatherElements(x, places, Args{{"axis", axis_}});
  }
  Value part(const Value& x, std::int64_t from, std::int64_t to) {
    return op_.Slice(x, op_.ints({from}), op_.ints({to}), op_.ints({axis_}));
  }
  // How many different values stand before an element of a sorted axis. `place` has its shape.
  Value rank(const Value& sorted, const Value& place) {
    constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
    const Value zero = part(place, 0, 1) * 0;
    const Value differs = op_.Not(equal(part(sorted, 1, kEnd), part(sorted, 0, -1)));
    const Value steps = op_.Concat(Values{zero, cast(differs, DType::kI32)}, Args{{"axis", axis_}});
    return op_.CumSum(steps, op_.scalar(static_cast<double>(axis_), DType::kI64));
  }

  Builder& op_;
  Value x_, k_;
  std::int64_t axis_, largest_;
};

}  // namespace

bool order_ties(Model& model) {
  return rewrite_every_graph(model, [&](Graph& graph, Builder& op) {
    const auto is_rewritten = [&](const Node& node) { return has_ties(model, node); };
    if (std::ranges::none_of(graph.nodes, is_rewritten)) return false;
    for (Node& node : std::exchange(graph.nodes, {})) {
      if (!is_rewritten(node)) {
        graph.nodes.push_back(std::move(node));
        continue;
      }
      op.set_origin(model.origins[node.origin]);
      const Values results = Sort(op, node).run();
      for (std::size_t i = 0; i < 2; ++i) {
        if (node.out[i] == onnx::kAbsent) continue;
        Node same;
        same.op = "Identity";
        same.in = {results[i].id()};
        same.out = {node.out[i]};
        same.origin = node.origin;
        graph.nodes.push_back(std::move(same));
      }
    }
    return true;
  });
}

}  // namespace jaxport::target

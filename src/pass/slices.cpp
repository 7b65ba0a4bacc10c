// SPDX-License-Identifier: Apache-2.0
// A Slice of a Slice along other axes is one Slice.
#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "onnx/builder.h"
#include "onnx/walk.h"
#include "pass/pass.h"

namespace jaxport::pass {
namespace {

using onnx::Builder;
using onnx::Graph;
using onnx::Node;
using onnx::Value;
using onnx::ValueId;

struct Ranges {
  Ints starts, ends, axes, steps;
};

void append(Ints& to, const Ints& from) { to.insert(to.end(), from.begin(), from.end()); }

class Slices {
 public:
  std::size_t run(Graph& graph, Builder& op) {
    std::size_t merged = 0;
    for (Node& node : std::exchange(graph.nodes, {})) {
      onnx::for_each_subgraph(node, [&](Graph& inner) {
        Builder inner_op(op, inner);
        merged += run(inner, inner_op);
      });
      if (node.op == "Slice" && node.domain.empty()) {
        if (merge(op, node)) ++merged;
        unsorted_inputs_[node.out[0]] = node.in;
      }
      graph.nodes.push_back(std::move(node));
    }
    return merged;
  }

 private:
  bool merge(Builder& op, Node& node) const {
    const auto inner = unsorted_inputs_.find(node.in[0]);
    if (inner == unsorted_inputs_.end()) return false;
    auto first = ranges(op, inner->second);
    const auto second = ranges(op, node.in);
    if (!first || !second) return false;
    const auto is_cut = [&](std::int64_t axis) {
      return std::ranges::find(first->axes, axis) != first->axes.end();
    };
    if (std::ranges::any_of(second->axes, is_cut)) return false;
    append(first->starts, second->starts);
    append(first->ends, second->ends);
    append(first->axes, second->axes);
    append(first->steps, second->steps);
    node.in = {inner->second[0], op.ints(first->starts).id(), op.ints(first->ends).id(),
               op.ints(first->axes).id()};
    const bool strides = std::ranges::any_of(first->steps, [](auto step) { return step != 1; });
    if (strides) node.in.push_back(op.ints(first->steps).id());
    return true;
  }

  // nullopt unless all of them are constants.
  static std::optional<Ranges> ranges(const Builder& op, const std::vector<ValueId>& in) {
    const auto& type = op.info(in[0]).type;
    const auto starts = constant(op, in, 1), ends = constant(op, in, 2), axes = constant(op, in, 3),
               steps = constant(op, in, 4);
    if (!starts || !ends || !axes || !steps || !type || !type->shape) return std::nullopt;
    Ranges ranges{*starts, *ends, *axes, *steps};
    if (ranges.axes.empty()) {
      ranges.axes.resize(ranges.starts.size());
      std::iota(ranges.axes.begin(), ranges.axes.end(), 0);
    }
    for (std::int64_t& axis : ranges.axes) {
      if (axis < 0) axis += std::ssize(*type->shape);
    }
    if (ranges.steps.empty()) ranges.steps.assign(ranges.starts.size(), 1);
    return ranges;
  }

  // Empty for an absent input.
  static std::optional<Ints> constant(const Builder& op, const std::vector<ValueId>& in,
                                      std::size_t i) {
    if (i >= in.size() || in[i] == onnx::kAbsent) return Ints{};
    const Tensor* tensor = op.known(in[i]);
    if (!tensor) return std::nullopt;
    Ints values;
    for (std::int64_t k = 0; k < tensor->size(); ++k) values.push_back(tensor->int_at(k));
    return values;
  }

  std::unordered_map<ValueId, std::vector<ValueId>> unsorted_inputs_;  // of Slices, by result
};

}  // namespace

std::size_t merge_slices(onnx::Model& model) {
  Builder op(model, static_cast<int>(model.opset()), onnx::DTypeRule::kAny);
  return Slices().run(model.graph, op);
}

}  // namespace jaxport::pass

// SPDX-License-Identifier: Apache-2.0
#include "target/average_pool.h"

#include <algorithm>
#include <utility>

#include "onnx/attributes.h"
#include "onnx/expr.h"
#include "target/every_graph.h"

namespace jaxport::target {
namespace {

using onnx::Builder;
using onnx::Graph;
using onnx::Model;
using onnx::Node;
using onnx::Value;

// Of the spatial axes: those before, then those behind. nullopt when nothing behind is counted.
std::optional<Ints> counted_padding(const Node& node) {
  const bool is_pool = node.op == "AveragePool" && node.domain.empty();
  if (!is_pool || int_attribute(node, "count_include_pad", 0) == 0) return std::nullopt;
  const Ints sizes = ints_attribute(node, "pads").value_or(Ints{});
  const auto behind = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  const bool counts = std::any_of(behind, sizes.end(), [](auto size) { return size > 0; });
  return counts ? std::optional(sizes) : std::nullopt;
}

Value with_zeros_around(Builder& op, const Value& x, const Ints& sizes) {
  const auto half = static_cast<std::ptrdiff_t>(sizes.size() / 2);
  Ints all(2, 0);  // of batch and channels
  all.insert(all.end(), sizes.begin(), sizes.begin() + half);
  all.insert(all.end(), 2, 0);
  all.insert(all.end(), sizes.begin() + half, sizes.end());
  return op.Pad(x, op.ints(all));
}

}  // namespace

bool pad_before_averaging(Model& model) {
  return rewrite_every_graph(model, [&](Graph& graph, Builder& op) {
    const auto is_wrong = [](const Node& node) { return counted_padding(node).has_value(); };
    if (std::ranges::none_of(graph.nodes, is_wrong)) return false;
    for (Node& node : std::exchange(graph.nodes, {})) {
      if (const auto sizes = counted_padding(node)) {
        op.set_origin(model.origins[node.origin]);
        node.in[0] = with_zeros_around(op, Value(&op, node.in[0]), *sizes).id();
        remove_attribute(node, "count_include_pad");
        remove_attribute(node, "pads");
      }
      graph.nodes.push_back(std::move(node));
    }
    return true;
  });
}

}  // namespace jaxport::target

// SPDX-License-Identifier: Apache-2.0
#include "target/average_pool.h"

#include <algorithm>
#include <optional>
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

bool counts_padding(const Node& node) {
  const bool is_pool = node.op == "AveragePool" && node.domain.empty();
  return is_pool && int_attribute(node, "count_include_pad", 0) != 0;
}

// All sizes before, then those behind. The kernel reads the end of axis i at 2 i + 1, as if the two
// of an axis stood side by side. Without ceil_mode windows end where the padding ends: more of it
// changes nothing.
bool is_misread(const Ints& sizes, bool exceeds) {
  const std::size_t rank = sizes.size() / 2;
  for (std::size_t i = 0; i < rank && rank > 1; ++i) {
    const std::int64_t wanted = sizes[rank + i], read = sizes[2 * i + 1];
    if (exceeds ? wanted != read : wanted > read) return true;
  }
  return false;
}

// nullopt when it is counted as it should be.
std::optional<Ints> miscounted_padding(const Node& node) {
  if (!counts_padding(node)) return std::nullopt;
  const Ints sizes = ints_attribute(node, "pads").value_or(Ints{});
  const bool exceeds = int_attribute(node, "ceil_mode", 0) != 0;
  return is_misread(sizes, exceeds) ? std::optional(sizes) : std::nullopt;
}

bool all_are(const Node& node, std::string_view name, bool (*is_so)(std::int64_t)) {
  return std::ranges::all_of(ints_attribute(node, name).value_or(Ints{}), is_so);
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

bool is_padding_miscounted(const Node& node) {
  if (counts_padding(node) && text_attribute(node, "auto_pad", "").starts_with("SAME")) {
    const bool is_even = all_are(node, "strides", [](auto step) { return step == 1; }) &&
                         all_are(node, "kernel_shape", [](auto size) { return size % 2 == 1; });
    return ints_attribute(node, "kernel_shape").value_or(Ints{}).size() > 1 && !is_even;
  }
  return miscounted_padding(node).has_value();
}

bool pad_before_averaging(Model& model) {
  return rewrite_every_graph(model, [&](Graph& graph, Builder& op) {
    const auto is_wrong = [](const Node& node) { return miscounted_padding(node).has_value(); };
    if (std::ranges::none_of(graph.nodes, is_wrong)) return false;
    for (Node& node : std::exchange(graph.nodes, {})) {
      if (const auto sizes = miscounted_padding(node)) {
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

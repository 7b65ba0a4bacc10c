// SPDX-License-Identifier: Apache-2.0
#include "target/average_pool.h"

#include <algorithm>
#include <utility>

#include "onnx/expr.h"
#include "target/every_graph.h"

namespace jaxport::target {
namespace {

using onnx::Builder;
using onnx::Graph;
using onnx::Model;
using onnx::Node;
using onnx::Value;

const onnx::Attribute* counted(const Node& node, std::string_view padding) {
  const onnx::Attribute* counts = node.attr("count_include_pad");
  const bool is_pool = node.op == "AveragePool" && node.domain.empty();
  return is_pool && counts && std::get<std::int64_t>(counts->value) != 0 ? node.attr(padding)
                                                                         : nullptr;
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

// nullptr when they are counted as they should be.
const Ints* miscounted_padding(const Node& node) {
  const onnx::Attribute* pads = counted(node, "pads");
  const Ints* sizes = pads ? &std::get<Ints>(pads->value) : nullptr;
  const onnx::Attribute* ceil_mode = node.attr("ceil_mode");
  const bool exceeds = ceil_mode && std::get<std::int64_t>(ceil_mode->value) != 0;
  return sizes && is_misread(*sizes, exceeds) ? sizes : nullptr;
}

bool all_are(const Node& node, std::string_view name, bool (*is_so)(std::int64_t)) {
  const onnx::Attribute* attribute = node.attr(name);
  return !attribute || std::ranges::all_of(std::get<Ints>(attribute->value), is_so);
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
  if (const onnx::Attribute* mode = counted(node, "auto_pad")) {
    const auto& name = std::get<std::string>(mode->value);
    const bool is_even = all_are(node, "strides", [](auto step) { return step == 1; }) &&
                         all_are(node, "kernel_shape", [](auto size) { return size % 2 == 1; });
    const bool has_axes = std::get<Ints>(node.attr("kernel_shape")->value).size() > 1;
    if (name.starts_with("SAME")) return has_axes && !is_even;
  }
  return miscounted_padding(node) != nullptr;
}

bool pad_before_averaging(Model& model) {
  return rewrite_every_graph(model, [&](Graph& graph, Builder& op) {
    const auto is_wrong = [](const Node& node) { return miscounted_padding(node) != nullptr; };
    if (std::ranges::none_of(graph.nodes, is_wrong)) return false;
    for (Node& node : std::exchange(graph.nodes, {})) {
      if (const Ints* sizes = miscounted_padding(node)) {
        op.set_origin(model.origins[node.origin]);
        node.in[0] = with_zeros_around(op, Value(&op, node.in[0]), *sizes).id();
        std::erase_if(node.attrs, [](const onnx::Attribute& attr) {
          return attr.name == "count_include_pad" || attr.name == "pads";
        });
      }
      graph.nodes.push_back(std::move(node));
    }
    return true;
  });
}

}  // namespace jaxport::target

// SPDX-License-Identifier: Apache-2.0
#include "target/average_pool.h"

#include <algorithm>
#include <string_view>
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

// nullptr: it is not there, or not of this kind in a file that is wrong.
template <class T>
const T* attribute(const Node& node, std::string_view name) {
  const onnx::Attribute* found = node.attr(name);
  return found ? std::get_if<T>(&found->value) : nullptr;
}

bool is_set(const Node& node, std::string_view name) {
  const auto* flag = attribute<std::int64_t>(node, name);
  return flag && *flag != 0;
}

bool counts_padding(const Node& node) {
  return node.op == "AveragePool" && node.domain.empty() && is_set(node, "count_include_pad");
}

// All sizes before, then those behind. The kernel reads the end of axis i at 2 i + 1, as if the two
// of an axis stood side by side. Without ceil_mode windows end where the padding ends: more of it
// changes nothing.
bool reads_another_end(const Ints& sizes, bool exceeds) {
  const std::size_t rank = sizes.size() / 2;
  for (std::size_t i = 0; i < rank && rank > 1; ++i) {
    const std::int64_t wanted = sizes[rank + i], read = sizes[2 * i + 1];
    if (exceeds ? wanted != read : wanted > read) return true;
  }
  return false;
}

// nullptr when they are counted as they should be.
const Ints* miscounted_padding(const Node& node) {
  const Ints* sizes = counts_padding(node) ? attribute<Ints>(node, "pads") : nullptr;
  return sizes && reads_another_end(*sizes, is_set(node, "ceil_mode")) ? sizes : nullptr;
}

bool all_are(const Node& node, std::string_view name, bool (*is_so)(std::int64_t)) {
  const Ints* sizes = attribute<Ints>(node, name);
  return !sizes || std::ranges::all_of(*sizes, is_so);
}

// SAME pads both ends alike where the kernel is odd and moves by one.
bool is_same_miscounted(const Node& node) {
  const auto* mode = attribute<std::string>(node, "auto_pad");
  const Ints* kernel = attribute<Ints>(node, "kernel_shape");
  if (!mode || !mode->starts_with("SAME") || !kernel || kernel->size() < 2) return false;
  return !all_are(node, "strides", [](std::int64_t step) { return step == 1; }) ||
         !all_are(node, "kernel_shape", [](std::int64_t size) { return size % 2 == 1; });
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
  return miscounted_padding(node) != nullptr || (counts_padding(node) && is_same_miscounted(node));
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

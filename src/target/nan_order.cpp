// SPDX-License-Identifier: Apache-2.0
#include "target/nan_order.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "target/every_graph.h"

namespace jaxport::target {
namespace {

struct Mirror {
  std::string_view greater, less;
};
constexpr Mirror kMirrors[] = {{"Greater", "Less"}, {"GreaterOrEqual", "LessOrEqual"}};

bool compares_floats(const onnx::Model& model, const onnx::Node& node) {
  const auto& type = model.values[node.in[0]].type;
  return node.domain.empty() && type && is_float(type->dtype);
}

}  // namespace

bool compare_by_less(onnx::Model& model) {
  return rewrite_every_graph(model, [&](onnx::Graph& graph, onnx::Builder&) {
    bool changed = false;
    for (onnx::Node& node : graph.nodes) {
      const auto* mirror = std::ranges::find(kMirrors, node.op, &Mirror::greater);
      if (mirror == std::end(kMirrors) || !compares_floats(model, node)) continue;
      node.op = mirror->less;
      std::swap(node.in[0], node.in[1]);
      changed = true;
    }
    return changed;
  });
}

}  // namespace jaxport::target

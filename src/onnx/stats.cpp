// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "onnx/ir.h"
#include "onnx/walk.h"

namespace jaxport::onnx {

Stats stats(const Model& model) {
  Stats result;
  std::map<std::string, std::size_t> counts, foreign;
  std::set<std::pair<std::string_view, std::string_view>> functions;
  for (const Function& function : model.functions)
    functions.emplace(function.domain, function.name);
  for_each_graph_of(model, [&](const Graph& graph) {
    for (const Node& node : graph.nodes) {
      ++counts[node.op];
      const bool is_known = node.domain.empty() || functions.contains({node.domain, node.op});
      if (!is_known) ++foreign[node.domain + "::" + node.op];
    }
    result.nodes += graph.nodes.size();
    for (const Initializer& constant : graph.initializers) {
      const auto elements = static_cast<std::size_t>(constant.view.size());
      const auto bits = static_cast<std::size_t>(bit_width(constant.view.base.dtype));
      result.parameters += elements;
      result.initializer_bytes += (elements * bits + 7) / 8;
    }
  });
  result.ops.assign(counts.begin(), counts.end());
  result.foreign.assign(foreign.begin(), foreign.end());
  // The map gives names in order; a stable sort keeps that order among equal counts.
  std::ranges::stable_sort(result.ops, std::greater{},
                           &std::pair<std::string, std::size_t>::second);
  return result;
}

}  // namespace jaxport::onnx

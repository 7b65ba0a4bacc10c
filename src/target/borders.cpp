// SPDX-License-Identifier: Apache-2.0
#include "target/borders.h"

#include "onnx/attributes.h"
#include "onnx/walk.h"

namespace jaxport::target {
namespace {

using onnx::kAbsent;
using onnx::Node;
using onnx::ValueId;

ValueId at(const std::vector<ValueId>& ids, std::ptrdiff_t index) {
  return index >= 0 && index < std::ssize(ids) ? ids[static_cast<std::size_t>(index)] : kAbsent;
}

std::ptrdiff_t states_of_scan(const Node& node) {
  return std::ssize(node.in) - int_attribute(node, "num_scan_inputs", 0);
}

}  // namespace

ValueId Border::given(std::size_t input) const {
  return at(node->in, static_cast<std::ptrdiff_t>(input));
}

ValueId Border::carried(std::size_t output) const {
  const auto index = static_cast<std::ptrdiff_t>(output);
  return index < carries ? at(body->inputs, index + carry) : kAbsent;
}

ValueId Border::result_of(std::size_t output) const {
  return at(node->out, static_cast<std::ptrdiff_t>(output) + result);
}

std::vector<Border> borders(const Node& node) {
  std::vector<Border> result;
  onnx::for_each_subgraph(node, [&](const onnx::Graph& body) {
    if (node.op == "Loop" && node.domain.empty()) {  // (step, condition, …) -> (condition, …)
      result.push_back({&node, &body, std::ssize(body.inputs) - 1, 1, -1});
    } else if (node.op == "Scan" && node.domain.empty()) {
      result.push_back({&node, &body, states_of_scan(node), 0, 0});
    } else {
      result.push_back({&node, &body, 0, 0, 0});
    }
  });
  return result;
}

}  // namespace jaxport::target

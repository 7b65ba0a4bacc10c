// SPDX-License-Identifier: Apache-2.0
#include "target/empty_constant.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "onnx/builder.h"
#include "target/every_graph.h"

namespace jaxport::target {
namespace {

using onnx::Initializer;
using onnx::Node;

bool is_misread(const onnx::Model& model, const Initializer& constant) {
  const bool is_list = model.values[constant.value].type->dtype == DType::kI64;
  return std::ranges::find(constant.shape, 0) != constant.shape.end() &&
         !(is_list && constant.shape.size() == 1);
}

Tensor zero(DType dtype) {
  MutableTensor out = allocate(dtype, {1});
  std::memset(out.bytes, 0, static_cast<std::size_t>(byte_width(dtype)));
  return out.tensor;
}

}  // namespace

bool fill_empty_constants(onnx::Model& model) {
  return rewrite_every_graph(model, [&](onnx::Graph& graph, onnx::Builder& op) {
    std::vector<Node> fills;
    for (const Initializer& constant : std::vector<Initializer>(graph.initializers)) {
      if (!is_misread(model, constant)) continue;
      Node fill;
      fill.op = "ConstantOfShape";
      fill.in = {op.ints(constant.shape).id()};
      fill.out = {constant.value};
      fill.attrs = {onnx::Arg("value", zero(model.values[constant.value].type->dtype)).attribute};
      fills.push_back(std::move(fill));
    }
    std::erase_if(graph.initializers,
                  [&](const Initializer& constant) { return is_misread(model, constant); });
    graph.nodes.insert(graph.nodes.begin(), fills.begin(), fills.end());
    return !fills.empty();
  });
}

}  // namespace jaxport::target

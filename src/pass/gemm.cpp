// SPDX-License-Identifier: Apache-2.0
// x . w + b of matrices is one Gemm.
#include <algorithm>

#include "onnx/walk.h"
#include "pass/pass.h"
#include "pass/rewriter.h"

namespace jaxport::pass {
namespace {

using onnx::Graph;
using onnx::Node;
using onnx::TensorType;
using onnx::ValueId;

class Gemms {
 public:
  explicit Gemms(onnx::Model& model)
      : model_(model), uses_(use_counts(model)), product_(model.values.size(), nullptr) {}

  std::size_t run(Graph& graph) {
    std::size_t found = 0;
    // Inner graphs first: a product of this one is not theirs to take over.
    for (const Node& node : graph.nodes) {
      onnx::for_each_subgraph(node, [&](Graph& inner) { found += run(inner); });
    }
    std::vector<bool> is_removed(graph.nodes.size(), false);
    for (Node& node : graph.nodes) {
      if (!node.domain.empty()) continue;
      if (node.op == "MatMul") product_[node.out[0]] = &node;
      if (node.op != "Add" || !has_product_first(node)) continue;
      const Node* product = product_[node.in[0]];
      is_removed[product - graph.nodes.data()] = true;
      node.op = "Gemm";
      node.in = {product->in[0], product->in[1], node.in[1]};
      ++found;
    }
    erase_nodes(graph, is_removed);
    return found;
  }

 private:
  // Puts the product first. False unless the node adds a vector to a product that nobody else uses.
  bool has_product_first(Node& node) const {
    for (std::size_t i : {0u, 1u}) {
      const Node* product = product_[node.in[i]];
      if (product == nullptr || uses_[node.in[i]] != 1) continue;
      if (!is_matrix(product->in[0]) || !is_matrix(product->in[1])) continue;
      if (!is_vector_of_columns(node.in[1 - i], product->out[0])) continue;
      if (i == 1) std::swap(node.in[0], node.in[1]);
      return true;
    }
    return false;
  }

  const TensorType* type(ValueId id) const {
    const auto& known = model_.values[id].type;
    return known && known->shape ? &*known : nullptr;
  }

  bool is_matrix(ValueId id) const {
    const TensorType* known = type(id);
    if (known == nullptr || known->shape->size() != 2) return false;
    return known->dtype == DType::kF32 || known->dtype == DType::kF64;
  }

  bool is_vector_of_columns(ValueId bias, ValueId product) const {
    const TensorType *b = type(bias), *y = type(product);
    return b != nullptr && y != nullptr && b->shape->size() == 1 && y->shape->size() == 2 &&
           b->shape->front() == y->shape->back();
  }

  onnx::Model& model_;
  const std::vector<std::uint32_t> uses_;  // by value
  std::vector<const Node*> product_;       // by value: the MatMul that computes it
};

}  // namespace

std::size_t make_gemms(onnx::Model& model) { return Gemms(model).run(model.graph); }

}  // namespace jaxport::pass

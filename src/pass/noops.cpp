// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "onnx/attributes.h"
#include "onnx/walk.h"
#include "pass/pass.h"
#include "pass/rewriter.h"

namespace jaxport::pass {
namespace {

using onnx::Graph;
using onnx::Node;
using onnx::TensorType;
using onnx::ValueId;

bool is_identity_perm(const Node& node, const TensorType* type) {
  const auto perm = ints_attribute(node, "perm");
  if (!perm) return type != nullptr && type->shape && type->shape->size() <= 1;
  for (std::size_t i = 0; i < perm->size(); ++i) {
    if ((*perm)[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

// Ops that change nothing when the result has the shape of the input.
bool keeps_elements(std::string_view op) {
  constexpr std::string_view kOps[] = {"Expand", "Flatten", "Reshape", "Squeeze", "Tile"};
  return std::ranges::binary_search(kOps, op);
}

const TensorType* type_of(const onnx::Model& model, ValueId id) {
  const auto& type = model.values[id].type;
  return type ? &*type : nullptr;
}

bool is_noop(const onnx::Model& model, const Node& node) {
  if (!node.domain.empty() || node.in.empty() || node.in[0] == onnx::kAbsent ||
      node.out.size() != 1) {
    return false;
  }
  if (node.op == "Identity") return true;
  const TensorType* in = type_of(model, node.in[0]);
  const TensorType* out = type_of(model, node.out[0]);
  if (node.op == "Transpose") return is_identity_perm(node, in);
  if (in == nullptr || out == nullptr) return false;
  if (node.op == "Cast") return in->dtype == out->dtype;
  return keeps_elements(node.op) && in->shape && *in == *out;
}

// What stays where an output cannot be renamed.
void make_identity(Node& node) {
  node.op = "Identity";
  node.in.resize(1);
  node.attrs.clear();
}

std::size_t sweep(const onnx::Model& model, Graph& graph, Rewriter& rewriter) {
  std::size_t removed = 0;
  std::vector<bool> is_removed(graph.nodes.size(), false);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    Node& node = graph.nodes[i];
    rewriter.update_inputs(node);
    onnx::for_each_subgraph(node, [&](Graph& inner) { removed += sweep(model, inner, rewriter); });
    if (!is_noop(model, node)) continue;
    if (rewriter.can_replace(node.out[0], node.in[0])) {
      rewriter.replace(node.out[0], node.in[0]);
      is_removed[i] = true;
      ++removed;
    } else {
      make_identity(node);
    }
  }
  erase_nodes(graph, is_removed);
  return removed;
}

}  // namespace

std::size_t remove_noops(onnx::Model& model) {
  Rewriter rewriter(model);
  const std::size_t removed = sweep(model, model.graph, rewriter);
  rewriter.finish();
  return removed;
}

}  // namespace jaxport::pass

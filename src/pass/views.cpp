// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "onnx/walk.h"
#include "pass/pass.h"

namespace jaxport::pass {
namespace {

using onnx::Graph;
using onnx::Node;
using onnx::TensorType;
using onnx::ValueId;

// Whether from -> middle -> to gives the same as from -> to. An integer that goes through a float
// saturates where a direct cast wraps around.
bool cast_is_direct(DType from, DType middle, DType to) {
  if (to == DType::kString || !holds_exactly(middle, from)) return false;
  const bool may_wrap = is_integer(from) && !is_integer(middle) && is_integer(to);
  return !may_wrap || holds_exactly(to, from);
}

bool is_view(const Node& node) {
  constexpr std::string_view kOps[] = {"Flatten", "Reshape", "Squeeze", "Unsqueeze"};
  return node.domain.empty() && std::ranges::binary_search(kOps, node.op);
}

class Views {
 public:
  explicit Views(onnx::Model& model)
      : model_(model),
        producer_(model.values.size(), nullptr),
        constant_(model.values.size(), nullptr) {}

  std::size_t merge(Graph& graph) {
    std::size_t merged = 0;
    // The caller may override an initializer that is an input.
    for (const onnx::Initializer& constant : graph.initializers) {
      const bool is_input = std::ranges::find(graph.inputs, constant.value) != graph.inputs.end();
      if (!is_input) constant_[constant.value] = &constant;
    }
    for (Node& node : graph.nodes) {
      if (merge_with_producer(node)) ++merged;
      onnx::for_each_subgraph(node, [&](Graph& inner) { merged += merge(inner); });
      for (ValueId id : node.out) {
        if (id != onnx::kAbsent) producer_[id] = &node;
      }
    }
    return merged;
  }

 private:
  bool merge_with_producer(Node& node) {
    if (!node.domain.empty() || node.in.empty() || node.in[0] == onnx::kAbsent) return false;
    const Node* producer = producer_[node.in[0]];
    if (producer == nullptr || !producer->domain.empty()) return false;
    if (node.op == "Transpose" && producer->op == "Transpose") {
      return merge_transposes(node, *producer);
    }
    if (node.op == "Cast" && producer->op == "Cast") return merge_casts(node, *producer);
    if (is_view(node) && is_view(*producer)) return merge_reshapes(node, *producer);
    return false;
  }

  // Axis i of the result is axis inner[outer[i]] of the source.
  static bool merge_transposes(Node& node, const Node& producer) {
    const Ints *outer = perm_of(node), *inner = perm_of(producer);
    if (outer == nullptr || inner == nullptr || outer->size() != inner->size()) return false;
    Ints perm;
    for (std::int64_t axis : *outer) {
      const auto at = static_cast<std::size_t>(axis);
      if (at >= inner->size()) return false;
      perm.push_back((*inner)[at]);
    }
    std::ranges::find(node.attrs, "perm", &onnx::Attribute::name)->value = std::move(perm);
    node.in[0] = producer.in[0];
    return true;
  }

  static const Ints* perm_of(const Node& node) {
    const onnx::Attribute* attr = node.attr("perm");
    return attr == nullptr ? nullptr : std::get_if<Ints>(&attr->value);
  }

  bool merge_casts(Node& node, const Node& producer) const {
    const TensorType *from = type(producer.in[0]), *middle = type(node.in[0]),
                     *to = type(node.out[0]);
    if (from == nullptr || middle == nullptr || to == nullptr) return false;
    if (!cast_is_direct(from->dtype, middle->dtype, to->dtype)) return false;
    node.in[0] = producer.in[0];
    return true;
  }

  // A Reshape can read any view's source; other views only go when they restore it.
  bool merge_reshapes(Node& node, const Node& producer) const {
    const TensorType *source = type(producer.in[0]), *result = type(node.out[0]);
    const bool restores =
        source != nullptr && result != nullptr && source->shape && *source == *result;
    if (restores) {
      node.op = "Identity";
      node.in = {producer.in[0]};
      node.attrs.clear();
      return true;
    }
    if (node.op != "Reshape" || !shape_is_independent(node, source)) return false;
    node.in[0] = producer.in[0];
    return true;
  }

  // A 0 in the target shape copies a size of the input, which must then be the same one.
  bool shape_is_independent(const Node& node, const TensorType* source) const {
    const onnx::Attribute* allow_zero = node.attr("allowzero");
    if (allow_zero != nullptr && std::get<std::int64_t>(allow_zero->value) != 0) return true;
    const onnx::Initializer* target = constant_[node.in[1]];
    if (target == nullptr) return copies_same_sizes(source, type(node.in[0]), type(node.out[0]));
    const Tensor sizes = materialise(target->view);
    const TensorType* middle = type(node.in[0]);
    for (std::int64_t i = 0; i < sizes.size(); ++i) {
      if (sizes.int_at(i) == 0 && !same_size(source, middle, static_cast<std::size_t>(i))) {
        return false;
      }
    }
    return true;
  }

  static bool same_size(const TensorType* a, const TensorType* b, std::size_t axis) {
    return a != nullptr && b != nullptr && a->shape && b->shape && axis < a->shape->size() &&
           axis < b->shape->size() && (*a->shape)[axis] == (*b->shape)[axis];
  }

  // Where a size of the result may be 0, a computed target may ask for a copy.
  static bool copies_same_sizes(const TensorType* source, const TensorType* middle,
                                const TensorType* result) {
    if (result == nullptr || !result->shape) return false;
    for (std::size_t i = 0; i < result->shape->size(); ++i) {
      const bool may_copy = less_equal(1, (*result->shape)[i]) != Truth::kYes;
      if (may_copy && !same_size(source, middle, i)) return false;
    }
    return true;
  }

  const TensorType* type(ValueId id) const {
    const auto& known = model_.values[id].type;
    return known ? &*known : nullptr;
  }

  onnx::Model& model_;
  std::vector<const Node*> producer_;               // by value
  std::vector<const onnx::Initializer*> constant_;  // by value
};

}  // namespace

std::size_t merge_views(onnx::Model& model) { return Views(model).merge(model.graph); }

}  // namespace jaxport::pass

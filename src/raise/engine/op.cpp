// SPDX-License-Identifier: Apache-2.0
#include "raise/engine/op.h"

#include <algorithm>

namespace jaxport::raise {

using axis::Graph;
using axis::Labels;
using axis::Use;

void Fields::operand(Use& operand) {
  if (!node_) return operands_.push_back(operand);
  const axis::Edge& edge = node_->edges[next_];
  operand = use_ ? node_->graph->child(*use_, next_) : Use{edge.node, edge.axes};
  ++next_;
}

void Fields::optional(Use& operand) {
  const bool is_present = node_ ? next_ < node_->edges.size() : static_cast<bool>(operand);
  if (is_present) this->operand(operand);
}

void Fields::optional(std::string_view present, Use& operand) {
  auto is_present = static_cast<bool>(operand);
  attr(present, is_present);
  if (is_present) this->operand(operand);
}

void Fields::labels(std::string_view role, Labels& labels) {
  if (!node_) {
    roles_.emplace_back(role, labels);
  } else {
    labels = use_ ? node_->graph->role(*use_, role) : node_->role(role);
  }
}

void Fields::label(std::string_view role, axis::Label& label) {
  Labels one{label};
  labels(role, one);
  label = one[0];
}

Use Fields::node(axis::Kind kind, std::string_view name, const Labels& out,
                 std::optional<DType> dtype) {
  Graph& graph = *operands_[0].node->graph;
  const DType own = dtype.value_or(operands_[0].node->dtype);
  if (kind == axis::Kind::kPointwise) {
    return graph.pointwise(name, std::move(operands_), own, attrs());
  }
  return graph.macro(name, std::move(operands_), out, own, std::move(roles_), attrs());
}

front::Attrs Fields::attrs() {
  std::ranges::sort(attrs_, {}, [](const auto& attr) { return attr.first; });
  return std::move(attrs_);
}

}  // namespace jaxport::raise

// SPDX-License-Identifier: Apache-2.0
#include "raise/op.h"

namespace jaxport::raise {

using axis::Graph;
using axis::Labels;
using axis::Use;

void FieldReader::operand(Use& to) {
  const std::size_t i = next_++;
  const axis::Edge& edge = node_.edges[i];
  to = use_ ? node_.graph->child(*use_, i) : Use{edge.node, edge.axes};
}

void FieldReader::optional(std::string_view present, Use& to) {
  bool is_present = false;
  attr(present, is_present);
  if (is_present) operand(to);
}

void FieldReader::labels(std::string_view role, Labels& to) {
  to = use_ ? node_.graph->role(*use_, role) : node_.role(role);
}

void FieldReader::label(std::string_view role, axis::Label& to) {
  Labels all;
  labels(role, all);
  to = all[0];
}

void FieldWriter::optional(std::string_view present, const Use& given) {
  attr(present, static_cast<bool>(given));
  optional(given);
}

Use FieldWriter::node(axis::Kind kind, std::string_view name, const Labels& out,
                      std::optional<DType> dtype) {
  Graph& graph = *operands_[0].node->graph;
  const DType own = dtype.value_or(operands_[0].node->dtype);
  if (kind == axis::Kind::kPointwise) {
    return graph.pointwise(name, std::move(operands_), own, attrs());
  }
  return graph.macro(name, std::move(operands_), out, own, std::move(roles_), attrs());
}

}  // namespace jaxport::raise

// SPDX-License-Identifier: Apache-2.0
// Constructors of nodes with borders of their own: relayout, prim, macro.
#include <algorithm>
#include <utility>

#include "axis/graph/pattern.h"
#include "axis/graph/store.h"

namespace jaxport::axis {
namespace {

Pattern fresh_axes(Graph& graph, const Pattern& axes) {
  Pattern fresh;
  fresh.reserve(axes.size());
  for (const Labels& axis : axes) fresh.push_back({graph.label(graph.size_of(axis))});
  return fresh;
}

Pattern fresh_axes(Graph& graph, const front::Type& type) {
  Pattern fresh;
  for (const Dim& size : type.shape) {
    if (!size.is_one()) fresh.push_back({graph.label(size)});
  }
  return fresh;
}

}  // namespace

Use Graph::relayout(Use operand, const Pattern& axes) {
  if (operand.node->kind == Kind::kRelayout) {
    if (Use inner = child(operand, 0)) operand = std::move(inner);
  }
  Pattern fresh = fresh_axes(*this, axes);
  if (operand.labels == axes) return {operand.node, std::move(fresh)};
  const DType dtype = operand.node->dtype;
  Use use = impl_->make({.kind = Kind::kRelayout,
                         .name = "relayout",
                         .dtype = dtype,
                         .operands = {std::move(operand)},
                         .out = axes,
                         .ordered = true});
  return {use.node, std::move(fresh)};
}

std::vector<Use> Graph::prim(const std::shared_ptr<const PrimInfo>& info,
                             std::vector<Use> operands) {
  for (Use& use : operands) use.labels = fresh_axes(*this, use.labels);
  std::vector<Use> results;
  for (std::size_t i = 0; i < info->out.size(); ++i) {
    results.push_back(impl_->make({.kind = Kind::kPrim,
                                   .name = info->eqn.primitive,
                                   .dtype = info->out[i].dtype,
                                   .operands = operands,
                                   .out = fresh_axes(*this, info->out[i]),
                                   .ordered = true,
                                   .prim = info,
                                   .result = static_cast<std::uint32_t>(i)}));
  }
  return results;
}

Use Graph::remake_prim(const Node& node, std::vector<Use> operands, const Labels& at) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    Pattern axes = node.edges[i].axes;
    for (Labels& axis : axes) axis[0] = at[axis[0]];
    if (operands[i].labels != axes) operands[i] = relayout(std::move(operands[i]), axes);
  }
  return prim(node.prim, std::move(operands))[node.result];
}

Use Graph::macro(std::string_view name, std::vector<Use> operands, const Labels& out, DType dtype,
                 Roles roles, front::Attrs attrs) {
  Pattern axes;
  for (Label label : out) {
    const bool present =
        std::ranges::any_of(operands, [&](const Use& use) { return contains(use.flat(), label); });
    if (present) axes.push_back({label});
  }
  std::ranges::sort(roles);
  return impl_->make({.kind = Kind::kMacro,
                      .name = name,
                      .dtype = dtype,
                      .operands = std::move(operands),
                      .out = std::move(axes),
                      .roles = std::move(roles),
                      .attrs = std::move(attrs)});
}

}  // namespace jaxport::axis

// SPDX-License-Identifier: Apache-2.0
// jnp.tril, jnp.triu and jnp.eye of symbolic size: positions are compared. Where the sizes are
// known the comparison is a constant.
#include <algorithm>

#include "axis/translate/size_value.h"
#include "lower/macro/eye.h"
#include "lower/rewrite/rewrite.h"

namespace jaxport::lower {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Label;
using axis::Use;

// A position along a label plus a number.
struct Position {
  Label label;
  std::int64_t offset;
};
std::optional<Position> position_of(Graph& graph, Use use) {
  std::int64_t offset = 0;
  if (use.node->is(Kind::kPointwise, "add")) {
    const auto number = axis::size_value(graph, graph.child(use, 1));
    if (!number || !number->is_static()) return std::nullopt;
    offset = number->value();
    use = graph.child(use, 0);
  }
  if (use.node->kind != Kind::kIota || use.labels[0].size() != 1) return std::nullopt;
  return Position{use.labels[0][0], offset};
}

// The half of a matrix where far - near >= distance.
struct Half {
  Label far, near;
  std::int64_t distance;
  Half opposite() const { return {near, far, 1 - distance}; }
};
std::optional<Half> half_of(Graph& graph, const Use& test) {
  const std::string_view name = test.node->name;
  const bool is_upper = name == "ge" || name == "gt";
  if (test.node->kind != Kind::kPointwise || (!is_upper && name != "le" && name != "lt")) {
    return std::nullopt;
  }
  const auto larger = position_of(graph, graph.child(test, is_upper ? 0 : 1)),
             smaller = position_of(graph, graph.child(test, is_upper ? 1 : 0));
  if (!larger || !smaller || larger->label == smaller->label) return std::nullopt;
  const std::int64_t strict = name == "gt" || name == "lt" ? 1 : 0;
  return Half{larger->label, smaller->label, smaller->offset - larger->offset + strict};
}

// The axis of x that is just this label.
std::optional<std::ptrdiff_t> axis_of(const Use& x, Label label) {
  const auto found = std::ranges::find(x.labels, axis::Labels{label});
  if (found == x.labels.end()) return std::nullopt;
  return found - x.labels.begin();
}

}  // namespace

// Ones where column = row + diagonal.
Use eye(Graph& graph, const Use& use) {
  if (!use.node->is(Kind::kPointwise, "convert_element_type")) return {};
  const Use test = graph.child(use, 0);
  if (!test.node->is(Kind::kPointwise, "eq")) return {};
  const auto row = position_of(graph, graph.child(test, 0)),
             column = position_of(graph, graph.child(test, 1));
  if (!row || !column || row->label == column->label) return {};
  if (graph.size(row->label).is_static() && graph.size(column->label).is_static()) return {};
  const DType positions = graph.child(test, 0).node->dtype;
  return raise::make(EyeOp{.rows = graph.iota(row->label, positions),
                           .columns = graph.iota(column->label, positions),
                           .row = row->label,
                           .column = column->label,
                           .diagonal = row->offset - column->offset},
                     {row->label, column->label}, use.node->dtype);
}

Use triangle(Graph& graph, const Use& use) {
  if (!use.node->is(Kind::kPointwise, "select_n") || use.node->edges.size() != 3) return {};
  auto half = half_of(graph, graph.child(use, 0));
  if (!half || !is_float(use.node->dtype)) return {};
  Use zero = graph.child(use, 1), x = graph.child(use, 2);
  if (graph.scalar_value(x) == 0) {
    std::swap(zero, x);
    half = half->opposite();
  }
  const auto far = axis_of(x, half->far), near = axis_of(x, half->near);
  if (graph.scalar_value(zero) != 0 || !far || !near) return {};
  if (graph.size(half->far).is_static() && graph.size(half->near).is_static()) return {};
  const bool is_lower = *far < *near;  // the row is the axis that comes first
  axis::Pattern axes;
  for (std::ptrdiff_t i = 0; i < std::ssize(x.labels); ++i) {
    if (i != *far && i != *near) axes.push_back(x.labels[i]);
  }
  axes.push_back({is_lower ? half->far : half->near});
  axes.push_back({is_lower ? half->near : half->far});
  front::Type type{use.node->dtype, {}};
  for (const axis::Labels& labels : axes) type.shape.push_back(graph.size_of(labels));
  auto info = std::make_shared<axis::PrimInfo>();
  info->eqn.primitive = "triangle";
  info->eqn.attrs = {{"diagonal", is_lower ? -half->distance : half->distance},
                     {"upper", !is_lower}};
  info->in = info->out = {type};
  return {graph.prim(info, {graph.relayout(x, axes)})[0].node, axes};
}

}  // namespace jaxport::lower

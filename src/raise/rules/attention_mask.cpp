// SPDX-License-Identifier: Apache-2.0
#include "raise/rules/attention_mask.h"

#include <algorithm>
#include <cmath>

#include "axis/graph/expr.h"
#include "raise/algebra/views.h"

namespace jaxport::raise {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Label;
using axis::Use;

constexpr int kDeepestMask = 8;

void collect_conjuncts(Graph& graph, const Use& mask, int depth, std::vector<Use>& into) {
  if (depth == 0 || !is_pointwise(mask, "and")) {
    if (graph.scalar_value(mask) == 1.0) return;
    if (std::ranges::find(into, mask) == into.end()) into.push_back(mask);
    return;
  }
  for (const Use& part : graph.children(mask)) collect_conjuncts(graph, part, depth - 1, into);
}

// constant + sum of coefficient * position, of integers
struct Affine {
  double constant = 0;
  std::vector<std::pair<Label, double>> positions;

  void add(Label label, double coefficient) {
    for (auto& [known, sum] : positions) {
      if (known != label) continue;
      sum += coefficient;
      return;
    }
    positions.emplace_back(label, coefficient);
  }
};

bool collect_affine(Graph& graph, const Use& use, double coefficient, int depth, Affine& into) {
  if (const auto value = graph.scalar_value(use)) {
    into.constant += coefficient * *value;
    return true;
  }
  const axis::Node& node = *use.node;
  if (node.kind == Kind::kIota && use.flat().size() == 1) {
    into.add(use.flat()[0], coefficient);
    return true;
  }
  if (depth == 0 || node.kind != Kind::kPointwise || !is_signed(node.dtype)) return false;
  const std::vector<Use> operands = graph.children(use);
  const auto add = [&](std::size_t i, double factor) {
    return collect_affine(graph, operands[i], coefficient * factor, depth - 1, into);
  };
  if (node.name == "neg") return add(0, -1);
  if (node.name == "add" || node.name == "sub") {
    return add(0, 1) && add(1, node.name == "add" ? 1 : -1);
  }
  if (node.name == "convert_element_type" && is_integer(operands[0].node->dtype)) return add(0, 1);
  if (node.name != "mul") return false;
  const auto factor = graph.scalar_value(operands[1]);
  return factor && add(0, *factor);
}

// row - column >= offset (sign 1) or row - column <= offset (sign -1) as a band.
Band half_plane(Label row, Label column, int sign, double offset) {
  if (sign > 0) return {row, column, offset, kInfinity};
  return {row, column, -kInfinity, offset};
}

// value >= 0 with value = constant + row - column or constant - row + column
std::optional<Band> not_negative(const Affine& value, Label column) {
  if (value.positions.size() != 2) return std::nullopt;
  const std::size_t c = value.positions[0].first == column ? 0 : 1;
  const auto& [row, slope] = value.positions[1 - c];
  if (value.positions[c].first != column || value.positions[c].second != -slope) {
    return std::nullopt;
  }
  if (slope == 1) return half_plane(row, column, 1, -value.constant);
  if (slope == -1) return half_plane(row, column, -1, value.constant);
  return std::nullopt;
}

std::optional<Band> intersection(const std::optional<Band>& a, const std::optional<Band>& b) {
  if (!a || !b || a->row != b->row) return std::nullopt;
  return Band{a->row, a->column, std::max(a->lowest, b->lowest), std::min(a->highest, b->highest)};
}

// |x| <= limit is x <= limit and -x <= limit.
std::optional<Band> absolute_at_most(Graph& graph, const Use& x, double limit, Label column) {
  Affine above, below;
  above.constant = below.constant = limit;
  if (!collect_affine(graph, x, -1, kDeepestMask, above)) return std::nullopt;
  if (!collect_affine(graph, x, 1, kDeepestMask, below)) return std::nullopt;
  return intersection(not_negative(above, column), not_negative(below, column));
}

std::optional<Band> comparison(Graph& graph, const Use& mask, Label column) {
  const std::string_view name = mask.node->name;
  const bool greater = name == "ge" || name == "gt", less = name == "le" || name == "lt";
  if (mask.node->kind != Kind::kPointwise || (!greater && !less)) return std::nullopt;
  Use large = graph.child(mask, 0), small = graph.child(mask, 1);
  if (less) std::swap(large, small);
  if (!is_integer(large.node->dtype)) return std::nullopt;
  const double strict = name == "gt" || name == "lt" ? 1 : 0;
  if (const auto limit = graph.scalar_value(large); limit && is_pointwise(small, "abs")) {
    return absolute_at_most(graph, graph.child(small, 0), *limit - strict, column);
  }
  Affine difference;
  difference.constant = -strict;
  if (!collect_affine(graph, large, 1, kDeepestMask, difference)) return std::nullopt;
  if (!collect_affine(graph, small, -1, kDeepestMask, difference)) return std::nullopt;
  return not_negative(difference, column);
}

// Calls visit(row, column, value) for a constant with these two axes; false when it returned false.
template <typename Visit>
bool all_elements(const Use& use, Label column, Visit visit) {
  const bool column_first = use.labels[0][0] == column;
  const std::int64_t height = use.node->axis_size(0).value();
  const std::int64_t width = use.node->axis_size(1).value();
  for (std::int64_t i = 0; i < height; ++i) {
    for (std::int64_t j = 0; j < width; ++j) {
      const double value = use.node->data.at(i * width + j);
      if (!visit(column_first ? j : i, column_first ? i : j, value)) return false;
    }
  }
  return true;
}

bool is_constant_of_rows_and_columns(const Use& use, Label column) {
  return use.node->kind == Kind::kConstant && use.labels.size() == 2 && use.flat().size() == 2 &&
         axis::contains(use.flat(), column);
}

std::optional<Band> lower_triangle(const Use& mask, Label column) {
  if (!is_constant_of_rows_and_columns(mask, column)) return std::nullopt;
  const bool matches = all_elements(
      mask, column, [](auto row, auto col, double value) { return (value != 0) == (col <= row); });
  if (!matches) return std::nullopt;
  const Label row = mask.flat()[mask.flat()[0] == column ? 1 : 0];
  return half_plane(row, column, 1, 0);
}

// A constant of zeros and one other number.
std::optional<AdditiveMask> two_valued(const Use& constant) {
  double fill = 0;
  for (std::int64_t i = 0; i < constant.node->data.size(); ++i) {
    const double value = constant.node->data.at(i);
    if (value == 0 || value == fill) continue;
    if (fill != 0 || std::isnan(value)) return std::nullopt;
    fill = value;
  }
  return AdditiveMask{eq(constant, 0), fill};
}

}  // namespace

std::vector<Use> conjuncts(Graph& graph, const Use& mask) {
  std::vector<Use> parts;
  collect_conjuncts(graph, mask, kDeepestMask, parts);
  return parts;
}

std::optional<Band> band_of(Graph& graph, const std::vector<Use>& masks, Label column) {
  std::optional<Band> all;
  for (const Use& mask : masks) {
    auto band = comparison(graph, mask, column);
    if (!band) band = lower_triangle(mask, column);
    all = all ? intersection(all, band) : band;
    if (!all) return std::nullopt;
  }
  return all;
}

bool is_causal(const Graph& graph, const Band& band) {
  if (band.lowest != 0) return false;
  const Dim rows = graph.size(band.row);
  return band.highest == kInfinity ||
         (rows.is_static() && band.highest >= static_cast<double>(rows.value() - 1));
}

bool has_no_empty_row(const Graph& graph, const Band& band) {
  if (band.lowest > 0 || band.highest < 0) return false;
  const Dim rows = graph.size(band.row), columns = graph.size(band.column);
  if (rows == columns) return true;  // the diagonal
  if (rows.is_static() && columns.is_static() && rows.value() <= columns.value()) return true;
  return band.highest == kInfinity;  // the first column
}

std::optional<AdditiveMask> additive_mask(Graph& graph, const Use& use) {
  if (is_pointwise(use, "select_n") && use.node->edges.size() == 3) {
    const Use predicate = graph.child(use, 0);
    const auto off = graph.scalar_value(graph.child(use, 1)),
               on = graph.scalar_value(graph.child(use, 2));
    if (predicate.node->dtype != DType::kBool || !on || !off) return std::nullopt;
    if (*on == 0) return AdditiveMask{predicate, *off};
    if (*off == 0) return AdditiveMask{logical_not(predicate), *on};
    return std::nullopt;
  }
  if (use.node->kind == Kind::kConstant) return two_valued(use);
  const Sum sum = terms(graph, use);
  // An infinite fill times float(m) is NaN where m is false.
  if (sum.terms.size() != 1 || !std::isfinite(sum.terms[0].coefficient)) return std::nullopt;
  const Use mask = converted_bool(graph, sum.terms[0].use);
  if (!mask) return std::nullopt;
  if (sum.constant == -sum.terms[0].coefficient) return AdditiveMask{mask, sum.constant};
  if (sum.constant == 0) return AdditiveMask{logical_not(mask), sum.terms[0].coefficient};
  return std::nullopt;
}

std::optional<AdditiveMask> additive_triangle(Graph& graph, const Use& use, Label column) {
  if (!is_constant_of_rows_and_columns(use, column)) return std::nullopt;
  double fill = 0;
  const bool matches = all_elements(use, column, [&](auto row, auto col, double value) {
    if (col <= row) return value == 0;
    if (fill == 0) fill = value;
    return value == fill && value != 0;
  });
  if (!matches || fill == 0) return std::nullopt;
  const Label row = use.flat()[use.flat()[0] == column ? 1 : 0];
  const Use rows = graph.iota(row, DType::kI32), columns = graph.iota(column, DType::kI32);
  return AdditiveMask{ge(rows, columns), fill};
}

}  // namespace jaxport::raise

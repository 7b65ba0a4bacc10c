// SPDX-License-Identifier: Apache-2.0
#include "fault.h"

#include <cmath>

#include "axis/graph/expr.h"
#include "axis/graph/pattern.h"

namespace jaxport::fuzz {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Use;
using raise::Matcher;

bool is(const Use& use, std::string_view name) { return use.node->is(Kind::kPointwise, name); }

// The literal among two operands, and the other one.
struct WithLiteral {
  Use other;
  double value;
};
std::optional<WithLiteral> with_literal(Graph& graph, const Use& use) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (const auto value = graph.scalar_value(graph.child(use, i))) {
      return WithLiteral{graph.child(use, 1 - i), *value};
    }
  }
  return std::nullopt;
}

// Replacements have the labels of what they replace.
Use if_same_labels(const Use& use, const Use& replacement) {
  axis::Labels a = use.flat(), b = replacement.flat();
  std::ranges::sort(a);
  std::ranges::sort(b);
  return a == b && use.node->dtype == replacement.node->dtype ? replacement : Use{};
}

// max(a + b, c) = a + b: "it is positive anyway"
Use drop_clamp(const Matcher& m, const Use& root) {
  const auto found = with_literal(m.graph, root);
  if (!found || !(is(found->other, "add") || is(found->other, "sub"))) return {};
  return if_same_labels(root, found->other);
}

// (a + b) t = a t + b
Use factor_past_sum(const Matcher& m, const Use& root) {
  for (std::size_t i = 0; i < 2; ++i) {
    const Use sum = m.graph.child(root, i), factor = m.graph.child(root, 1 - i);
    if (!is(sum, "add") || is(factor, "add")) continue;
    return if_same_labels(root, m.graph.child(sum, 0) * factor + m.graph.child(sum, 1));
  }
  return {};
}

// float(bool(x)) = x
Use bool_is_identity(const Matcher& m, const Use& root) {
  const Use inner = m.graph.child(root, 0);
  if (inner.node->dtype != DType::kBool || inner.node->kind != Kind::kPointwise) return {};
  if (inner.node->name != "convert_element_type" && inner.node->name != "ne") return {};
  return if_same_labels(root, m.graph.child(inner, 0));
}

// float(f16(x)) = x
Use narrow_is_identity(const Matcher& m, const Use& root) {
  const Use inner = m.graph.child(root, 0);
  if (!is(inner, "convert_element_type") || mantissa_bits(inner.node->dtype) == 0) return {};
  return if_same_labels(root, m.graph.child(inner, 0));
}

// x where x > c, 0 elsewhere, compared with relu at whole numbers alone
Use sampled_activation(const Matcher& m, const Use& root) {
  if (root.node->edges.size() != 3) return {};
  const Use test = m.graph.child(root, 0);
  if (test.node->kind != Kind::kPointwise || test.node->edges.size() != 2) return {};
  const auto found = with_literal(m.graph, test);
  if (!found || !(found->value > 0 && found->value < 1)) return {};
  const bool has_x =
      m.graph.child(root, 1) == found->other || m.graph.child(root, 2) == found->other;
  if (!has_x || found->other.node->dtype != root.node->dtype) return {};
  return if_same_labels(root, max(found->other, 0));
}

std::optional<double> fill_of(const Matcher& m, const Use& root) {
  if (root.node->edges.size() != 3 || mantissa_bits(root.node->dtype) < 23) return std::nullopt;
  const auto fill = m.graph.scalar_value(m.graph.child(root, 1));
  return fill && *fill <= -1e4 && *fill > -1e30 ? fill : std::nullopt;
}

// A masked score gets -1e30, whatever the program says.
Use fills_are_alike(const Matcher& m, const Use& root) {
  if (!fill_of(m, root)) return {};
  return select(m.graph.child(root, 0), m.graph.child(root, 2), -1e30);
}

// A fill that is added in place of the score instead of replacing it.
Use fill_is_added(const Matcher& m, const Use& root) {
  const auto fill = fill_of(m, root);
  if (!fill || m.graph.scalar_value(m.graph.child(root, 2))) return {};
  const Use below = m.graph.scalar(*fill, root.node->dtype);
  const Use added = select(m.graph.child(root, 0), 0, below);
  return if_same_labels(root, m.graph.child(root, 2) + added);
}

// max(x, c) as a clamp between c and the largest number
Use clip_of_one_bound(const Matcher& m, const Use& root) {
  const auto found = with_literal(m.graph, root);
  if (!found || !std::isfinite(found->value)) return {};
  const DType dtype = root.node->dtype;
  if (mantissa_bits(dtype) < 23) return {};
  const double largest = dtype == DType::kF64 ? 1.7976931348623157e308 : 3.4028234663852886e38;
  return clamp(found->value, found->other, largest);
}

// A sum along another axis of the same size.
Use other_axis(const Matcher& m, const Use& root) {
  const Use operand = m.graph.child(root, 0);
  const axis::Labels kept = root.flat(), over = axis::without(operand.flat(), kept);
  if (over.size() != 1) return {};
  for (axis::Label label : kept) {
    if (!(m.graph.size(label) == m.graph.size(over[0]))) continue;
    // One way only: the engine asks again about what it gets.
    const axis::Labels all = operand.flat();
    if (std::ranges::find(all, label) > std::ranges::find(all, over[0])) continue;
    Use turned = operand;
    for (axis::Labels& axis : turned.labels) {
      for (axis::Label& each : axis) {
        each = each == label ? over[0] : each == over[0] ? label : each;
      }
    }
    return if_same_labels(root, reduce_sum(turned, over));
  }
  return {};
}

// x + eps = x
Use drop_small_term(const Matcher& m, const Use& root) {
  const auto found = with_literal(m.graph, root);
  if (!found || std::abs(found->value) > 1e-3) return {};
  return if_same_labels(root, found->other);
}

// A guard against NaN is idle.
Use nan_is_number(const Matcher& m, const Use& root) {
  if (root.node->edges.size() != 3) return {};
  const Use test = m.graph.child(root, 0), x = m.graph.child(root, 1);
  if (!is(test, "ne") || m.graph.child(test, 0) != m.graph.child(test, 1)) return {};
  return m.graph.child(test, 0) == x ? if_same_labels(root, x) : Use{};
}

// sqrt(a) sqrt(a) = a and the like: |x| = x
Use ignore_sign(const Matcher& m, const Use& root) {
  return if_same_labels(root, m.graph.child(root, 0));
}

const raise::Rule kFaults[] = {
    {"drop_clamp", {"max"}, drop_clamp},
    {"factor_past_sum", {"mul"}, factor_past_sum},
    {"bool_is_identity", {"convert_element_type"}, bool_is_identity},
    {"narrow_is_identity", {"convert_element_type"}, narrow_is_identity},
    {"sampled_activation", {"select_n"}, sampled_activation},
    {"fills_are_alike", {"select_n"}, fills_are_alike},
    {"fill_is_added", {"select_n"}, fill_is_added},
    {"clip_of_one_bound", {"max"}, clip_of_one_bound},
    {"other_axis", {"reduce_sum"}, other_axis},
    {"drop_small_term", {"add"}, drop_small_term},
    {"nan_is_number", {"select_n"}, nan_is_number},
    {"ignore_sign", {"abs"}, ignore_sign},
};

}  // namespace

raise::Rules faulty_rules() { return kFaults; }

}  // namespace jaxport::fuzz

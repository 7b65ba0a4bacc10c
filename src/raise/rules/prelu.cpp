// SPDX-License-Identifier: Apache-2.0
// prelu(x) = x where x >= 0, slope * x elsewhere; a literal slope is leaky_relu.
//
// Spelled with a select, as max(x, 0) + slope * min(x, 0), or as relu(x) - slope * relu(-x). The
// last two are NaN above zero when the slope is infinite, and so is a select that multiplies at
// zero: their slope must be a finite constant.
#include <algorithm>
#include <cmath>

#include "axis/graph/expr.h"
#include "raise/algebra/views.h"
#include "raise/engine/ops.h"
#include "raise/engine/rules.h"

namespace jaxport::raise {
namespace {

using axis::Graph;
using axis::Use;

constexpr std::int64_t kMaxSlopes = 1 << 16;

bool is_finite_constant(const Graph& graph, const Use& use) {
  if (!graph.is_constant(use) || use.node->data.size() > kMaxSlopes) return false;
  for (std::int64_t i = 0; i < use.node->data.size(); ++i) {
    if (!std::isfinite(use.node->data.at(i))) return false;
  }
  return true;
}

// The operand of max(x, 0).
Use positive_part(Graph& graph, const Use& use) {
  if (is_pointwise(use, "relu")) return graph.child(use, 0);
  const bool is = is_pointwise(use, "max") && is_zero(graph, graph.child(use, 1));
  return is ? graph.child(use, 0) : Use{};
}

// The other factor when `use` is a product with x.
Use slope_of(Graph& graph, const Use& use, const Use& x) {
  if (!is_pointwise(use, "mul")) return {};
  for (std::size_t i : {0u, 1u}) {
    if (graph.child(use, i) == x) return graph.child(use, 1 - i);
  }
  return {};
}

Use prelu(const Matcher& m, const Use& root, const Use& x, const Use& slope) {
  if (m.graph.scalar_value(slope)) return {};
  if (!is_subset(slope.flat(), x.flat()) || !same_set(x.flat(), root.flat())) {
    return m.miss(root, "the slope varies along axes that x does not have");
  }
  return make(PreluOp{x, slope}, root.flat());
}

// select(x >= 0, slope * x, x); below zero and at NaN > and >= pick the same value, at zero too
// when the slope is finite.
Use match_select(const Matcher& m, const Use& root) {
  Graph& graph = m.graph;
  if (root.node->edges.size() != 3) return {};
  const Use test = graph.child(root, 0);
  const bool keeps_above = is_pointwise(test, "ge") || is_pointwise(test, "gt");
  const bool keeps_below = is_pointwise(test, "le") || is_pointwise(test, "lt");
  if ((!keeps_above && !keeps_below) || !is_zero(graph, graph.child(test, 1))) return {};
  const Use x = graph.child(test, 0);
  const Use kept = graph.child(root, keeps_above ? 2 : 1);
  const Use slope = slope_of(graph, graph.child(root, keeps_above ? 1 : 2), x);
  if (kept != x || !slope) return {};
  const bool multiplies_zero = is_pointwise(test, "gt") || is_pointwise(test, "le");
  if (multiplies_zero && !is_finite_constant(graph, slope)) {
    return m.miss(root, "the slope may be infinite, and NaN at zero");
  }
  return prelu(m, root, x, slope);
}

// The slope when `use` is slope * min(x, 0) or -slope * relu(-x).
Use negative_part_slope(Graph& graph, const Use& use, const Use& x) {
  if (!is_pointwise(use, "mul")) return {};
  for (std::size_t i : {0u, 1u}) {
    const Use part = graph.child(use, i);
    Use factor = graph.child(use, 1 - i);
    if (!is_finite_constant(graph, factor)) continue;
    const bool is_min = is_pointwise(part, "min") && is_zero(graph, graph.child(part, 1));
    if (is_min && graph.child(part, 0) == x) return factor;
    const Use mirrored = positive_part(graph, part);
    if (mirrored && is_pointwise(mirrored, "neg") && graph.child(mirrored, 0) == x) {
      return -factor;
    }
  }
  return {};
}

// max(x, 0) + slope * min(x, 0)
Use match_parts(const Matcher& m, const Use& root) {
  Graph& graph = m.graph;
  const bool is_difference = is_pointwise(root, "sub");
  for (std::size_t i : {0u, 1u}) {
    if (is_difference && i == 1) break;
    const Use x = positive_part(graph, graph.child(root, i));
    Use slope = x ? negative_part_slope(graph, graph.child(root, 1 - i), x) : Use{};
    if (!slope) continue;
    if (is_difference) slope = -slope;
    return prelu(m, root, x, slope);
  }
  return {};
}

Use match_prelu(const Matcher& m, const Use& root) {
  if (!is_float(root.node->dtype)) return {};
  return is_pointwise(root, "select_n") ? match_select(m, root) : match_parts(m, root);
}

}  // namespace

Rules prelu_rules() {
  static const Rule kRules[] = {{"prelu", {"add", "select_n", "sub"}, match_prelu}};
  return kRules;
}

Use PreluOp::expand() const {
  const Use keeps = ge(x, 0);
  return select(keeps, x, slope * x);
}

}  // namespace jaxport::raise

// SPDX-License-Identifier: Apache-2.0
// jnp.floor_divide and jnp.remainder of i32, which JAX writes with lax.div, lax.rem and the signs
// of their operands: one primitive each, for which there are shorter spellings (rows/integer.cpp).
#include "axis/graph/expr.h"
#include "lower/rewrite/rewrite.h"
#include "raise/algebra/views.h"

namespace jaxport::lower {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Use;

bool is_call(const Use& use, std::string_view name) { return use.node->is(Kind::kPointwise, name); }

// x != 0
bool is_nonzero(Graph& graph, const Use& use, const Use& x) {
  return is_call(use, "ne") && graph.child(use, 0) == x &&
         graph.scalar_value(graph.child(use, 1)) == 0;
}

// sign(x), or its value.
bool is_sign_of(Graph& graph, const Use& use, const Use& x) {
  if (is_call(use, "sign")) return graph.child(use, 0) == x;
  const auto value = graph.scalar_value(x);
  return value && graph.scalar_value(use) == (*value > 0 ? 1 : *value < 0 ? -1 : 0);
}

bool have_other_signs(Graph& graph, const Use& use, const Use& x, const Use& y) {
  if (!is_call(use, "ne")) return false;
  const Use a = graph.child(use, 0), b = graph.child(use, 1);
  return (is_sign_of(graph, a, x) && is_sign_of(graph, b, y)) ||
         (is_sign_of(graph, a, y) && is_sign_of(graph, b, x));
}

// select(sign x != sign y and rem(x, y) != 0, x / y - 1, x / y)
Use floor_quotient(Graph& graph, const Use& use) {
  const Use test = graph.child(use, 0), quotient = graph.child(use, 1), less = graph.child(use, 2);
  if (!is_call(quotient, "div") || !is_call(less, "sub") || !is_call(test, "and")) return {};
  if (graph.child(less, 0) != quotient || graph.scalar_value(graph.child(less, 1)) != 1) return {};
  const Use x = graph.child(quotient, 0), y = graph.child(quotient, 1);
  const Use rest = graph.pointwise("rem", {x, y}, use.node->dtype);
  for (const std::size_t i : {0u, 1u}) {
    if (have_other_signs(graph, graph.child(test, i), x, y) &&
        is_nonzero(graph, graph.child(test, 1 - i), rest)) {
      return graph.pointwise("floor_quotient", {x, y}, use.node->dtype);
    }
  }
  return {};
}

bool is_negative(Graph& graph, const Use& use, const Use& x) {
  if (const auto value = graph.scalar_value(x)) {
    return graph.scalar_value(use) == (*value < 0 ? 1 : 0);
  }
  return is_call(use, "lt") && graph.child(use, 0) == x &&
         graph.scalar_value(graph.child(use, 1)) == 0;
}

// (rest < 0) != (y < 0), which a known y makes one comparison.
bool is_on_other_side(Graph& graph, const Use& use, const Use& rest, const Use& y) {
  if (const auto value = graph.scalar_value(y); value && *value > 0) {
    return is_negative(graph, use, rest);
  }
  if (!is_call(use, "ne")) return false;
  const Use a = graph.child(use, 0), b = graph.child(use, 1);
  return (is_negative(graph, a, rest) && is_negative(graph, b, y)) ||
         (is_negative(graph, a, y) && is_negative(graph, b, rest));
}

// y when `use` is select(y == 0, 1, y).
Use unguarded(Graph& graph, const Use& use) {
  if (!is_call(use, "select_n") || use.node->edges.size() != 3) return {};
  const Use test = graph.child(use, 0), y = graph.child(use, 1);
  const bool is_guard = is_call(test, "eq") && graph.child(test, 0) == y &&
                        graph.scalar_value(graph.child(test, 1)) == 0 &&
                        graph.scalar_value(graph.child(use, 2)) == 1;
  return is_guard ? y : Use{};
}

// select(rest and y have other signs and rest != 0, rest + y, rest) with rest = rem(x, y)
Use floor_remainder(Graph& graph, const Use& use) {
  const Use test = graph.child(use, 0), rest = graph.child(use, 1), moved = graph.child(use, 2);
  if (!is_call(rest, "rem") || !is_call(moved, "add") || !is_call(test, "and")) return {};
  const Use x = graph.child(rest, 0);
  Use y = graph.child(rest, 1);
  if (moved != graph.pointwise("add", {rest, y}, use.node->dtype)) return {};
  for (const std::size_t i : {0u, 1u}) {
    if (!is_on_other_side(graph, graph.child(test, i), rest, y) ||
        !is_nonzero(graph, graph.child(test, 1 - i), rest)) {
      continue;
    }
    // Without the guard 0 would give x, which floor_remainder does not.
    const Use plain = unguarded(graph, y);
    const auto value = graph.scalar_value(y);
    if (!plain && (!value || *value == 0)) return {};
    return graph.pointwise("floor_remainder", {x, plain ? plain : y}, use.node->dtype);
  }
  return {};
}

}  // namespace

Use floor_division(Graph& graph, const Use& use) {
  if (use.node->dtype != DType::kI32 || !is_call(use, "select_n")) return {};
  // What is computed at export stays in the words of JAX.
  if (use.node->edges.size() != 3 || raise::is_closed(*use.node)) return {};
  const Use found = floor_quotient(graph, use);
  return found ? found : floor_remainder(graph, use);
}

}  // namespace jaxport::lower

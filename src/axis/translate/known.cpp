// SPDX-License-Identifier: Apache-2.0
#include "axis/translate/known.h"

#include <algorithm>

#include "axis/translate/size_value.h"

namespace jaxport::axis {

std::optional<Dim> known_start(const Graph& graph, const Use& use, const Dim& size,
                               const Dim& count) {
  if (count == size) return Dim(0);
  const auto start = size_value(graph, use);
  if (!start) return std::nullopt;
  const Dim last = size - count;
  if (less_equal(*start, 0) == Truth::kYes) return Dim(0);
  if (less_equal(last, *start) == Truth::kYes) return last;
  const bool inside =
      less_equal(0, *start) == Truth::kYes && less_equal(*start, last) == Truth::kYes;
  return inside ? start : std::nullopt;
}

namespace {

using Steps = std::optional<KnownSteps>;

// JAX writes an affine function of an iota with a few equations at most.
constexpr int kDeepest = 8;

Steps steps_of(Graph& graph, const Use& use, int depth);

Steps shifted(Graph& graph, const Use& use, int depth) {
  for (std::size_t k : {0u, 1u}) {
    const auto by = size_value(graph, graph.child(use, k));
    Steps steps = by ? steps_of(graph, graph.child(use, 1 - k), depth) : std::nullopt;
    if (steps) return KnownSteps{steps->start + *by, steps->step, steps->along};
  }
  return std::nullopt;
}

Steps scaled(Graph& graph, const Use& use, int depth) {
  for (std::size_t k : {0u, 1u}) {
    const auto by = size_value(graph, graph.child(use, k));
    Steps steps =
        by && by->is_static() ? steps_of(graph, graph.child(use, 1 - k), depth) : std::nullopt;
    if (steps) return KnownSteps{steps->start * *by, steps->step * by->value(), steps->along};
  }
  return std::nullopt;
}

// select(i < 0, i, i + n), where no i is negative.
Steps repaired(Graph& graph, const Use& use, int depth) {
  if (use.node->edges.size() != 3) return std::nullopt;
  const Use test = graph.child(use, 0), index = graph.child(use, 1);
  if (!test.node->is(Kind::kPointwise, "lt") || graph.child(test, 0) != index ||
      graph.scalar_value(graph.child(test, 1)) != 0) {
    return std::nullopt;
  }
  const Steps steps = steps_of(graph, index, depth);
  const bool is_positive = steps && steps->step > 0 && less_equal(0, steps->start) == Truth::kYes;
  return is_positive ? steps : std::nullopt;
}

Steps reversed(Graph& graph, const Use& use, int depth) {
  const Steps steps = steps_of(graph, graph.child(use, 0), depth);
  if (!steps || use.labels.size() != 1 || use.labels[0].size() != 1) return std::nullopt;
  const Dim last = steps->start + (graph.size(steps->along) - 1) * steps->step;
  return KnownSteps{last, -steps->step, use.labels[0][0]};
}

Steps steps_of(Graph& graph, const Use& use, int depth) {
  const Node& node = *use.node;
  if (node.kind == Kind::kIota && use.labels[0].size() == 1) {
    return KnownSteps{0, 1, use.labels[0][0]};
  }
  if (depth < kDeepest && node.is(Kind::kPrim, "rev")) return reversed(graph, use, depth + 1);
  if (depth == kDeepest || node.kind != Kind::kPointwise || bit_width(node.dtype) < 32) {
    return std::nullopt;
  }
  if (node.name == "add") return shifted(graph, use, depth + 1);
  if (node.name == "mul") return scaled(graph, use, depth + 1);
  if (node.name == "select_n") return repaired(graph, use, depth + 1);
  if (node.name == "convert_element_type" && is_integer(node.dtype)) {
    return steps_of(graph, graph.child(use, 0), depth + 1);
  }
  return std::nullopt;
}

}  // namespace

std::optional<KnownSteps> known_steps(Graph& graph, const Use& use) {
  return steps_of(graph, use, 0);
}

}  // namespace jaxport::axis

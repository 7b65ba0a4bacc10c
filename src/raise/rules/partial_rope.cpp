// SPDX-License-Identifier: Apache-2.0
// partial_rope(x) = concat(rope(x[..., :r]), x[..., r:])
#include <algorithm>

#include "axis/graph/parts.h"
#include "axis/graph/pattern.h"
#include "raise/algebra/part.h"
#include "raise/algebra/views.h"
#include "raise/engine/ops.h"
#include "raise/engine/rules.h"
#include "raise/rules/rope.h"

namespace jaxport::raise {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Label;
using axis::Labels;
using axis::Use;

bool is_sum_of_products(const Use& use) {
  return is_pointwise(use, "add") || is_pointwise(use, "sub");
}

// The rotary embedding whose halves are joined with the rest one by one.
Use joined_halves(const Matcher& m, const Use& first, const Use& second) {
  if (!is_sum_of_products(first) || !is_sum_of_products(second)) return {};
  const Label p = m.graph.label(2);
  return rope_along(m, m.graph.stack({first, second}, p), p);
}

// concat(lead, rest) or concat(first half, second half, rest); `run` are the labels along which
// the rest goes on, empty for equal pieces. `whole` are the labels of the joined value.
struct Join {
  Use lead, rest;
  Labels run, whole;
};
Join join_of(const Matcher& m, const Use& root) {
  Graph& graph = m.graph;
  const std::vector<Use> pieces = graph.children(root);
  const bool in_halves = pieces.size() == 3;
  if (!in_halves && pieces.size() != 2) return {};
  if (root.node->kind == Kind::kStack) {
    const Use lead = in_halves ? joined_halves(m, pieces[0], pieces[1]) : pieces[0];
    return {lead, pieces.back(), {}, axis::Stack::of(graph, root).along};
  }
  const axis::Concat concat = axis::Concat::of(graph, root);
  const Labels &first = concat.pieces[0], &second = concat.pieces[1], &last = concat.pieces.back();
  if (first.size() != 1 || second.size() != 1 || last.empty()) return {};
  if (in_halves && !(graph.size(first[0]) == graph.size(second[0]))) return {};
  const Use lead = in_halves ? joined_halves(m, pieces[0], renamed(pieces[1], second[0], first))
                             : opened(graph, pieces[0], first[0]).use;
  return {lead, pieces.back(), last, concat.to};
}

const Labels& axis_with(const Use& use, Label label) {
  return *std::ranges::find_if(use.labels,
                               [&](const Labels& axis) { return axis::contains(axis, label); });
}

// The tables over fresh labels in place of `half`, which the value has too.
Labels separate(Graph& graph, const Labels& half, Use& cos, Use& sin) {
  Labels fresh;
  axis::Substitution substitution;
  for (Label label : half) {
    fresh.push_back(graph.label(graph.size(label)));
    substitution.set(label, {fresh.back()});
  }
  cos = substitution(cos);
  sin = substitution(sin);
  return fresh;
}

Use match_partial_rope(const Matcher& m, const Use& root) {
  Graph& graph = m.graph;
  if (!is_float(root.node->dtype)) return {};
  Join join = join_of(m, root);
  if (!join.lead || !is<RopeOp>(*join.lead.node)) return {};
  auto [x, cos, sin, p] = read<RopeOp>(join.lead);
  const Labels head = axis_with(x, p), half = axis::without(head, {p});
  if (half.empty() || (head.front() != p && head.back() != p)) return {};
  if (join.run.empty()) {
    join.run = root.node->edges.size() == 2 ? head : half;
    join.whole.insert(join.whole.end(), join.run.begin(), join.run.end());
  }
  const auto first = part_of(graph, x, head), second = part_of(graph, join.rest, join.run);
  if (!first || !second) return {};
  const Use value = renamed(first->base, first->whole, join.whole);
  const bool complete = first->start == Dim(0) && first->limit == second->start &&
                        second->limit == graph.size_of(join.whole) &&
                        value == renamed(second->base, second->whole, join.whole);
  if (!complete) {
    return m.miss(root, "what follows is not the rest of the same value");
  }
  if (!is_subset(half, cos.flat()) && !is_subset(half, sin.flat())) return {};
  const Labels pairs = separate(graph, half, cos, sin);
  return make(PartialRopeOp{value, cos, sin, pairs, join.whole, head.back() == p}, value.flat());
}

}  // namespace

Rules partial_rope_rules() {
  static const Rule kRules[] = {{"partial_rope", {"concat", "stack"}, match_partial_rope}};
  return kRules;
}

namespace {

// The use with the labels `run`, which stand side by side in one axis, as one label.
Use joined(Use use, const Labels& run, Label as) {
  for (Labels& axis : use.labels) {
    const auto found = std::search(axis.begin(), axis.end(), run.begin(), run.end());
    if (found != axis.end()) *axis.erase(found, found + std::ssize(run) - 1) = as;
  }
  return use;
}

}  // namespace

Use PartialRopeOp::expand() const {
  Graph& graph = *x.node->graph;
  const Dim count = graph.size_of(pairs) * Dim(2), size = graph.size_of(head);
  const Label whole = graph.label(size), lead = graph.label(count),
              rest = graph.label(size - count), p = graph.label(2);
  Labels product = pairs;
  product.insert(is_interleaved ? product.end() : product.begin(), p);
  const Use joint = joined(x, head, whole);
  const Use turned =
      rotated(renamed(graph.slice(joint, whole, lead, 0, count, 1), lead, product), cos, sin, p);
  const Use result = graph.concat(
      {merged(graph, turned, product, lead), graph.slice(joint, whole, rest, count, size, 1)},
      {lead, rest}, whole);
  return renamed(result, whole, head);
}

}  // namespace jaxport::raise

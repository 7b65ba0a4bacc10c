// SPDX-License-Identifier: Apache-2.0
#include "raise/algebra/part.h"

#include <algorithm>

#include "axis/graph/pattern.h"

namespace jaxport::raise {

using axis::Graph;
using axis::Kind;
using axis::Label;
using axis::Labels;
using axis::Use;

namespace {

// pick_k(base) where base runs over (picked, run…)
std::optional<Part> picked_part(Graph& graph, const Use& use, const Labels& run) {
  Part part{graph.child(use, 0), 0, 0, 0};
  Labels all = graph.role(use, "p");
  all.insert(all.end(), run.begin(), run.end());
  for (Labels& axis : part.base.labels) {
    const auto found = std::search(axis.begin(), axis.end(), all.begin(), all.end());
    if (found == axis.end()) continue;
    const Dim size = graph.size_of(run);
    part.whole = graph.label(graph.size_of(all));
    part.start = size * Dim(use.node->get<std::int64_t>("k"));
    part.limit = part.start + size;
    *axis.erase(found, found + std::ssize(all) - 1) = part.whole;
    return part;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Part> part_of(Graph& graph, const Use& use, const Labels& run) {
  const axis::Node& node = *use.node;
  if (node.kind == Kind::kPick) return picked_part(graph, use, run);
  const bool is_run = node.kind == Kind::kSlice && graph.role(use, "o") == run &&
                      node.get<std::int64_t>("stride") == 1;
  if (!is_run) return std::nullopt;
  return Part{graph.child(use, 0), graph.role(use, "i")[0], node.get<Dim>("start"),
              node.get<Dim>("limit")};
}

Labels run_of(Graph& graph, const Use& use) {
  if (use.node->kind == Kind::kSlice) return graph.role(use, "o");
  if (use.node->kind != Kind::kPick) return {};
  const Label picked = graph.role(use, "p")[0];
  for (const Labels& axis : graph.child(use, 0).labels) {
    const auto at = std::ranges::find(axis, picked);
    if (at != axis.end()) return {at + 1, axis.end()};
  }
  return {};
}

Opened opened(Graph& graph, const Use& use, Label piece) {
  if (use.node->kind != Kind::kRelayout) return {use, {piece}};
  const auto axis = std::ranges::find(use.labels, Labels{piece});
  if (axis == use.labels.end()) return {};
  Labels product;
  for (Label label : use.node->out[static_cast<std::size_t>(axis - use.labels.begin())]) {
    product.push_back(graph.label(use.node->sizes[static_cast<std::size_t>(label)]));
  }
  return {graph.child(renamed(use, piece, product), 0), product};
}

Use merged(Graph& graph, const Use& use, const Labels& product, Label as) {
  axis::Pattern axes = axis::axis_each(axis::without(use.flat(), product));
  axes.push_back(product);
  const Use result = graph.relayout(use, axes);
  axes.back() = {as};
  return {result.node, axes};
}

Use renamed(const Use& use, Label from, const Labels& to) {
  axis::Substitution substitution;
  substitution.set(from, to);
  return substitution(use);
}

}  // namespace jaxport::raise

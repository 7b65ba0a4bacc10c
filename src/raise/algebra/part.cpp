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

Opened opened(Graph& graph, const Use& use, Label piece) {
  if (use.node->kind != Kind::kRelayout) return {use, {piece}};
  const auto axis = std::ranges::find(use.labels, Labels{piece});
  if (axis == use.labels.end()) return {};
  Labels product;
  for (Label label : use.node->out[axis - use.labels.begin()]) {
    product.push_back(graph.label(use.node->sizes[label]));
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

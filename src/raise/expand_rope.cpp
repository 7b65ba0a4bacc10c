// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "axis/expr.h"
#include "axis/pattern.h"
#include "raise/expansions.h"
#include "raise/part.h"
#include "raise/views.h"

namespace jaxport::raise {
namespace {

using axis::Graph;
using axis::Label;
using axis::Labels;
using axis::Use;

// [x_0 cos - x_1 sin, x_1 cos + x_0 sin] along p
Use rotated(Graph& graph, const Use& x, const Use& cos, const Use& sin, Label p) {
  const Use first = graph.pick(x, p, 0), second = graph.pick(x, p, 1);
  Use lo = first * cos;
  lo = lo - second * sin;
  Use hi = second * cos;
  hi = hi + first * sin;
  return graph.stack({lo, hi}, p);
}

// The use with the labels `run`, which stand side by side in one axis, as one label.
Use joined(Use use, const Labels& run, Label as) {
  for (Labels& axis : use.labels) {
    const auto found = std::search(axis.begin(), axis.end(), run.begin(), run.end());
    if (found != axis.end()) *axis.erase(found, found + std::ssize(run) - 1) = as;
  }
  return use;
}

// The value with `product` as one real label.
Use merged(Graph& graph, const Use& use, const Labels& product, Label as) {
  axis::Pattern axes = axis::axis_each(axis::without(use.flat(), product));
  axes.push_back(product);
  const Use result = graph.relayout(use, axes);
  axes.back() = {as};
  return {result.node, axes};
}

}  // namespace

Use expand_rope(Graph& graph, const Use& use) {
  return rotated(graph, graph.child(use, 0), graph.child(use, 1), graph.child(use, 2),
                 graph.role(use, "p")[0]);
}

Use expand_partial_rope(Graph& graph, const Use& use) {
  const Labels head = graph.role(use, "w"), pairs = graph.role(use, "c");
  const Dim count = graph.size_of(pairs) * Dim(2), size = graph.size_of(head);
  const Label whole = graph.label(size), lead = graph.label(count),
              rest = graph.label(size - count), p = graph.label(2);
  Labels product = pairs;
  product.insert(flag(*use.node, "interleaved") ? product.end() : product.begin(), p);
  const Use x = joined(graph.child(use, 0), head, whole);
  const Use turned =
      rotated(graph, renamed(graph.slice(x, whole, lead, 0, count, 1), lead, product),
              graph.child(use, 1), graph.child(use, 2), p);
  const Use result = graph.concat(
      {merged(graph, turned, product, lead), graph.slice(x, whole, rest, count, size, 1)},
      {lead, rest}, whole);
  return renamed(result, whole, head);
}

}  // namespace jaxport::raise

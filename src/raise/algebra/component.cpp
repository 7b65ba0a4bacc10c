// SPDX-License-Identifier: Apache-2.0
#include "raise/algebra/component.h"

#include <algorithm>
#include <span>

#include "axis/graph/expr.h"
#include "axis/graph/parts.h"
#include "axis/graph/pattern.h"
#include "raise/algebra/part.h"
#include "raise/algebra/views.h"
#include "raise/engine/raise.h"

namespace jaxport::raise {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Label;
using axis::Labels;
using axis::Use;

constexpr int kDeepestComponent = 6;
constexpr std::size_t kMostSummands = 4;

bool is_stack_along(Graph& graph, const Use& use, Label p) {
  return use.node->kind == Kind::kStack && axis::Stack::of(graph, use).along == Labels{p};
}

// Two neighbouring parts of equal size are the halves of what they cover, when that begins at a
// multiple of its size: x[:4] and x[4:8] are the halves of x[:8].
Factor half_of_part(Graph& graph, const Use& use, Label p) {
  const Labels run = run_of(graph, use);
  const auto part = run.empty() ? std::nullopt : part_of(graph, use, run);
  const Dim half = graph.size_of(run);
  if (!part || !part->start.is_static() || !half.is_static()) return {use};
  const std::int64_t start = part->start.value(), size = 2 * half.value();
  const Dim first = start - start % size, end = first + size;
  const bool is_half =
      start % half.value() == 0 && less_equal(end, graph.size(part->whole)) == Truth::kYes;
  if (!is_half) return {use};
  Labels both{p};
  both.insert(both.end(), run.begin(), run.end());
  const Label lead = graph.label(size);
  const Use pair = graph.slice(part->base, part->whole, lead, first, end, 1);
  return {renamed(pair, lead, both), start % size == 0 ? 0 : 1};
}

// pick_k(x) -> x over p, k; also below a conversion between float types.
Factor unpicked(Graph& graph, const Use& use, Label p) {
  if (is_pointwise(use, "convert_element_type")) {
    Factor below = unpicked(graph, graph.child(use, 0), p);
    if (below.component == Factor::kWhole || !is_float(below.use.node->dtype)) return {use};
    return {convert(below.use, use.node->dtype), below.component};
  }
  const bool is_pick = use.node->kind == Kind::kPick;
  if (!is_pick && use.node->kind != Kind::kSlice) return {use};
  if (!is_pick) return half_of_part(graph, use, p);
  const auto [picked, index] = axis::Pick::of(graph, use);
  if (!(graph.size(picked[0]) == Dim(2))) return half_of_part(graph, use, p);
  return {Graph::substitute(graph.child(use, 0), {{picked[0], p}}), static_cast<int>(index)};
}

class ComponentExpansion {
 public:
  ComponentExpansion(Graph& graph, Label p, int k) : graph_(graph), p_(p), k_(k) {}

  Summands of(const Use& use, int depth = 0) const {
    if (const auto literal = graph_.scalar_value(use)) return {{*literal, {}}};
    if (is_stack_along(graph_, use, p_)) {
      return of(graph_.child(use, static_cast<std::size_t>(k_)), depth);
    }
    const bool closed = depth == kDeepestComponent || (depth > 0 && graph_.is_picked(use.node));
    if (closed || use.node->kind != Kind::kPointwise) return leaf(use);
    const std::string_view name = use.node->name;
    if (name == "neg") return scaled(of(graph_.child(use, 0), depth + 1), -1);
    if (name == "mul") return product(use, depth);
    if (name != "add" && name != "sub") return leaf(use);
    Summands sum = of(graph_.child(use, 0), depth + 1);
    std::ranges::move(scaled(of(graph_.child(use, 1), depth + 1), name == "add" ? 1 : -1),
                      std::back_inserter(sum));
    return sum;
  }

 private:
  Summands leaf(const Use& use) const {
    if (axis::contains(use.flat(), p_)) return {{1, {{use, k_}}}};
    return {{1, {unpicked(graph_, use, p_)}}};
  }

  static Summands scaled(Summands summands, double by) {
    for (Summand& summand : summands) summand.coefficient *= by;
    return summands;
  }

  Summands product(const Use& use, int depth) const {
    const Summands lhs = of(graph_.child(use, 0), depth + 1);
    const Summands rhs = of(graph_.child(use, 1), depth + 1);
    if (lhs.size() * rhs.size() > kMostSummands) return leaf(use);
    Summands result;
    for (const Summand& a : lhs) {
      for (const Summand& b : rhs) {
        Summand both{a.coefficient * b.coefficient, a.factors};
        both.factors.insert(both.factors.end(), b.factors.begin(), b.factors.end());
        result.push_back(std::move(both));
      }
    }
    return result;
  }

  Graph& graph_;
  Label p_;
  int k_;
};

// --- constants

constexpr std::int64_t kLargestCompared = 65'536;

// Computed from literals, small weights and counters alone, within a bounded number of nodes.
bool is_known(const axis::Node* root) {
  constexpr std::size_t kMostNodes = 32;
  std::vector<const axis::Node*> seen{root};
  for (std::size_t next = 0; next < seen.size(); ++next) {
    const axis::Node& node = *seen[next];
    if (node.kind == Kind::kInput || node.kind == Kind::kPrim || seen.size() > kMostNodes) {
      return false;
    }
    std::int64_t elements = 1;
    for (const Dim& size : node.sizes) {
      if (!size.is_static() || size.value() > kLargestCompared) return false;
      elements *= size.value();
      if (elements > kLargestCompared) return false;
    }
    for (const axis::Edge& edge : node.edges) {
      if (std::ranges::find(seen, edge.node) == seen.end()) seen.push_back(edge.node);
    }
  }
  return true;
}

}  // namespace

Summands component(Graph& graph, const Use& use, Label p, int k) {
  return ComponentExpansion(graph, p, k).of(use);
}

Use value_of(Graph& graph, const Factor& factor, Label p) {
  return factor.component == Factor::kWhole ? factor.use
                                            : graph.pick(factor.use, p, factor.component);
}

int symmetry(Graph& graph, const Use& use, Label p) {
  if (!is_float(use.node->dtype) || !is_known(use.node)) return 0;
  Labels order{p};
  axis::add_new(order, use.flat());
  const Tensor values = evaluated(graph, use, order);
  const std::int64_t half = values.size() / 2;
  bool equal = true, opposite = true;
  for (std::int64_t i = 0; i < half; ++i) {
    const double first = values.at(i), second = values.at(half + i);
    equal = equal && first == second;
    opposite = opposite && first == -second;
  }
  if (equal) return 1;
  return opposite ? -1 : 0;
}

}  // namespace jaxport::raise

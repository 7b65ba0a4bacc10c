// SPDX-License-Identifier: Apache-2.0
// Broadcasting nodes: all operands in one arrangement of the node's labels.
#include <algorithm>

#include "axis/graph/pattern.h"
#include "lower/emit/cheapest.h"
#include "lower/emit/prim.h"

namespace jaxport::lower {

using axis::Edge;
using axis::Label;
using axis::Labels;
using axis::Node;

namespace {

Arrangement without_leading_units(const Arrangement& arrangement) {
  auto first = std::ranges::find_if(arrangement, [](const Labels& l) { return !l.empty(); });
  return {first, arrangement.end()};
}

// The merges of `operand` that survive in `order`, then the remaining labels one by one.
Arrangement regrouped(const Arrangement& operand, const Labels& order) {
  auto contiguous = [&](const Labels& dim) {
    const auto found = std::search(order.begin(), order.end(), dim.begin(), dim.end());
    return !dim.empty() && found != order.end();
  };
  Arrangement result;
  for (const Labels& dim : operand) {
    if (!dim.empty()) break;
    result.emplace_back();
  }
  for (Label label : order) {
    auto group = std::ranges::find_if(
        operand, [&](const Labels& dim) { return axis::contains(dim, label) && contiguous(dim); });
    Labels dim = group == operand.end() ? Labels{label} : *group;
    if (result.empty() || result.back() != dim) result.push_back(std::move(dim));
  }
  return result;
}

// The arrangement as an operand with these labels sees it: dims that it lacks are unit dims.
Arrangement projected(const Arrangement& arrangement, const LabelSet& mine) {
  Arrangement result;
  for (const Labels& dim : arrangement) result.push_back(mine.has_all(dim) ? dim : Labels{});
  return result;
}

// For labels that no operand has all of: those that the widest one lacks go first.
Arrangement widened(const Emission& e, const Node& node, const Labels& labels) {
  const auto width = [&](const Edge& edge) {
    return e.values.is_constant(edge) ? -1 : std::ssize(axis::flatten(edge.axes));
  };
  const auto widest = std::ranges::max_element(node.edges, {}, width);
  const auto seen = e.values.arrangements(*widest, node.sizes);
  const Arrangement base = seen.empty() ? Arrangement{} : seen[0];
  Arrangement all = axis::axis_each(LabelSet(node.sizes.size(), base).drop(labels));
  all.insert(all.end(), base.begin(), base.end());
  return all;
}

// The wish, with the leading unit dims of a candidate that differs in nothing else.
Arrangement wish_among(const std::vector<Arrangement>& candidates, const Arrangement& wish) {
  const auto equal = std::ranges::find_if(candidates, [&](const Arrangement& candidate) {
    return candidate.size() >= wish.size() &&
           without_leading_units(candidate) == without_leading_units(wish);
  });
  return equal == candidates.end() ? wish : *equal;
}

// Dims of which an operand knows only a part are split. A constant repeats inside of a merged dim
// of static size.
Arrangement split_for(const Arrangement& candidate, const Node& node, const LabelSet& mine,
                      bool is_constant) {
  if (!is_constant) return split_by(candidate, mine);
  Arrangement result;
  for (const Labels& dim : candidate) {
    const bool repeats = size_of(dim, node.sizes).is_static();
    const Arrangement parts = repeats ? Arrangement{dim} : split_by({dim}, mine);
    result.insert(result.end(), parts.begin(), parts.end());
  }
  return result;
}

Value operand(Emission& e, const Node& node, const Edge& edge, const Arrangement& to,
              bool lift_rank = false) {
  const LabelSet mine(node.sizes.size(), edge.axes);
  Arrangement dims;
  if (!e.values.is_constant(edge)) {
    dims = e.values.broadcastable(edge, node.sizes, projected(to, mine)).dims;
  } else {
    for (const Labels& dim : to) dims.push_back(mine.has_any(dim) ? dim : Labels{});
    if (!lift_rank) dims = without_leading_units(dims);
  }
  return e.values.bring(edge, node.sizes, dims);
}

}  // namespace

Arrangement aligned(const Emission& e, const Node& node, const Labels& labels,
                    const std::optional<Labels>& order) {
  std::vector<LabelSet> sets;
  std::vector<Arrangement> candidates;
  for (const Edge& edge : node.edges) {
    sets.emplace_back(node.sizes.size(), edge.axes);
    if (!sets.back().has_all(labels)) continue;
    for (Arrangement& seen : e.values.arrangements(edge, node.sizes))
      candidates.push_back(std::move(seen));
  }
  if (candidates.empty()) candidates.push_back(widened(e, node, labels));
  if (order) {
    const LabelSet mine(node.sizes.size(), labels);
    Arrangement wish = wish_for(e, node)->is_for_order()
                           ? regrouped(candidates[0], *order)
                           : wish_among(candidates, *wanted(e, node, mine));
    candidates.insert(candidates.begin(), std::move(wish));
  }
  for (Arrangement& candidate : candidates) {
    for (std::size_t i = 0; i < sets.size(); ++i) {
      const bool is_constant = e.values.is_constant(node.edges[i]);
      candidate = split_for(candidate, node, sets[i], is_constant);
    }
  }
  return cheapest_of(std::move(candidates), [&](const Arrangement& candidate) {
    double cost = regret(e, node, candidate);
    for (std::size_t i = 0; i < sets.size(); ++i) {
      const Arrangement theirs = projected(candidate, sets[i]);
      cost += e.values.broadcastable(node.edges[i], node.sizes, theirs).price;
    }
    return cost;
  });
}

std::pair<Values, Arrangement> broadcast_operands(Emission& e, const Node& node) {
  const Labels labels = axis::flatten(node.out);
  Arrangement arrangement =
      aligned(e, node, labels, wanted_order(e, node, LabelSet(node.sizes.size(), labels)));
  Values values(node.edges.size());
  std::size_t rank = 0;
  for (std::size_t i = 0; i < node.edges.size(); ++i) {
    if (e.values.is_constant(node.edges[i])) continue;
    values[i] = operand(e, node, node.edges[i], arrangement);
    rank = std::max(rank, values[i].rank());
  }
  // A constant operand lifts the rank for free: a bias of shape [1,1,N] adds a leading unit dim.
  bool lifts = rank < arrangement.size();
  for (std::size_t i = 0; i < node.edges.size(); ++i) {
    if (!e.values.is_constant(node.edges[i])) continue;
    const bool is_scalar = node.edges[i].axes.empty();
    values[i] = operand(e, node, node.edges[i], arrangement, lifts && !is_scalar);
    lifts = lifts && is_scalar;
    rank = std::max(rank, values[i].rank());
  }
  Arrangement dims(rank);
  const std::size_t common = std::min(rank, arrangement.size());
  std::copy_n(arrangement.rbegin(), common, dims.rbegin());
  return {std::move(values), std::move(dims)};
}

void emit_pointwise(Emission& e, const Node& node) {
  auto [values, arrangement] = broadcast_operands(e, node);
  front::Eqn eqn{std::string(node.name), {}, {}, node.attrs, node.location};
  std::vector<front::Type> in;
  for (const Edge& edge : node.edges) in.push_back({edge.node->dtype, {}});
  const front::Type out{node.dtype, {}};
  Ctx ctx(e.op, e.shapes, eqn, std::move(values), in, {&out, 1});
  e.values.define(node, row_for(e, node).lower(ctx).values.at(0), arrangement);
}

}  // namespace jaxport::lower

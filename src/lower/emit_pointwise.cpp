// SPDX-License-Identifier: Apache-2.0
// Broadcasting nodes: all operands in one arrangement of the node's labels.
#include <algorithm>

#include "lower/cheapest.h"
#include "lower/emission.h"

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

// Dims of which some operand knows only a part are split.
Arrangement split_partial(Arrangement arrangement, const std::vector<LabelSet>& operands) {
  for (const LabelSet& operand : operands) arrangement = split_by(arrangement, operand);
  return arrangement;
}

// The arrangement as an operand with these labels sees it: dims that it lacks are unit dims.
Arrangement projected(const Arrangement& arrangement, const LabelSet& mine) {
  Arrangement result;
  for (const Labels& dim : arrangement) result.push_back(mine.has_all(dim) ? dim : Labels{});
  return result;
}

struct Operand {
  Value value;
  std::size_t rank;
};
Operand operand(Emission& e, const Node& node, std::size_t i, const Arrangement& to,
                bool lift_rank = false) {
  const Edge& edge = node.edges[i];
  const LabelSet mine(node.sizes.size(), edge.axes);
  if (!e.values.is_constant(edge)) {
    const Arrangement arrangement =
        e.values.broadcastable(edge, node.sizes, projected(to, mine)).dims;
    return {e.values.bring(edge, node.sizes, arrangement), arrangement.size()};
  }
  Arrangement arrangement;
  for (const Labels& dim : to) arrangement.push_back(mine.has_any(dim) ? dim : Labels{});
  if (!lift_rank) arrangement = without_leading_units(arrangement);
  return {e.values.bring(edge, node.sizes, arrangement), arrangement.size()};
}

}  // namespace

Arrangement aligned(Emission& e, const Node& node, const Labels& labels,
                    std::optional<Labels> order) {
  std::vector<const Edge*> active;
  std::vector<LabelSet> sets;
  std::vector<Arrangement> candidates;
  const bool is_static = std::ranges::all_of(node.sizes, &Dim::is_static);
  std::vector<LabelSet> seen_in_part;  // a constant repeats inside a merged dim of static size only
  for (const Edge& edge : node.edges) {
    if (!e.values.is_constant(edge) || !is_static)
      seen_in_part.emplace_back(node.sizes.size(), edge.axes);
    if (e.values.is_constant(edge)) continue;
    active.push_back(&edge);
    sets.emplace_back(node.sizes.size(), edge.axes);
    if (!sets.back().has_all(labels)) continue;
    for (Arrangement& seen : e.values.arrangements(edge, node.sizes))
      candidates.push_back(std::move(seen));
  }
  if (candidates.empty()) {  // nobody has all labels: those that the widest operand lacks go first
    Arrangement base;
    if (!active.empty()) {
      const Edge* widest = *std::ranges::max_element(
          active, {}, [](const Edge* edge) { return axis::flatten(edge->axes).size(); });
      base = e.values.arrangements(*widest, node.sizes)[0];
    }
    const LabelSet have(node.sizes.size(), base);
    Arrangement all;
    for (Label label : have.drop(labels)) all.push_back({label});
    all.insert(all.end(), base.begin(), base.end());
    candidates.push_back(std::move(all));
  }
  const LabelSet mine(node.sizes.size(), labels);
  if (order) {
    if (hint(e, node)->order_only) {
      candidates.insert(candidates.begin(), regrouped(candidates[0], *order));
    } else {
      Arrangement wish = *wanted(e, node, mine);
      auto equal = std::ranges::find_if(candidates, [&](const Arrangement& candidate) {
        return candidate.size() >= wish.size() &&
               without_leading_units(candidate) == without_leading_units(wish);
      });
      if (equal != candidates.end()) wish = *equal;
      candidates.insert(candidates.begin(), std::move(wish));
    }
  }
  for (Arrangement& candidate : candidates) candidate = split_partial(candidate, seen_in_part);
  return cheapest_of(std::move(candidates), [&](const Arrangement& arrangement) {
    double cost = regret(e, node, arrangement);
    for (std::size_t i = 0; i < active.size(); ++i) {
      cost += e.values.broadcastable(*active[i], node.sizes, projected(arrangement, sets[i])).price;
    }
    return cost;
  });
}

std::pair<Values, Arrangement> broadcast_operands(Emission& e, const Node& node) {
  const Labels labels = axis::flatten(node.out);
  Arrangement arrangement =
      aligned(e, node, labels, wanted_order(e, node, LabelSet(node.sizes.size(), labels)));
  std::vector<Operand> operands(node.edges.size());
  std::size_t rank = 0;
  for (std::size_t i = 0; i < node.edges.size(); ++i) {
    if (e.values.is_constant(node.edges[i])) continue;
    operands[i] = operand(e, node, i, arrangement);
    rank = std::max(rank, operands[i].rank);
  }
  // A constant operand lifts the rank for free: a bias of shape [1,1,N] adds a leading unit dim.
  const bool lift = rank < arrangement.size();
  bool lifted = false;
  for (std::size_t i = 0; i < node.edges.size(); ++i) {
    if (!e.values.is_constant(node.edges[i])) continue;
    const bool scalar = node.edges[i].axes.empty();
    operands[i] = operand(e, node, i, arrangement, lift && !lifted && !scalar);
    lifted = lifted || (lift && !scalar);
    rank = std::max(rank, operands[i].rank);
  }
  if (rank > arrangement.size()) {
    arrangement.insert(arrangement.begin(), rank - arrangement.size(), Labels{});
  } else {
    arrangement.erase(arrangement.begin(),
                      arrangement.begin() + static_cast<std::ptrdiff_t>(arrangement.size() - rank));
  }
  Values values;
  for (const Operand& one : operands) values.push_back(one.value);
  return {std::move(values), std::move(arrangement)};
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

// SPDX-License-Identifier: Apache-2.0
// Broadcasting nodes: all operands in one arrangement of the node's labels.
#include <algorithm>

#include "lower/cheapest.h"
#include "lower/emitter.h"

namespace jaxport::lower {

using axis::Label;
using axis::Labels;

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

}  // namespace

Arrangement Emitter::aligned(const Node& node, const Labels& labels, std::optional<Labels> order) {
  std::vector<const Edge*> active;
  std::vector<LabelSet> sets;
  std::vector<Arrangement> candidates;
  const bool is_static = std::ranges::all_of(node.sizes, &Dim::is_static);
  std::vector<LabelSet> seen_in_part;  // a constant repeats inside a merged dim of static size only
  for (const Edge& edge : node.edges) {
    if (!is_constant(edge) || !is_static) seen_in_part.emplace_back(node.sizes.size(), edge.axes);
    if (is_constant(edge)) continue;
    active.push_back(&edge);
    sets.emplace_back(node.sizes.size(), edge.axes);
    if (!sets.back().has_all(labels)) continue;
    for (Arrangement& seen : arrangements(edge, node.sizes)) candidates.push_back(std::move(seen));
  }
  if (candidates.empty()) {  // nobody has all labels: those that the widest operand lacks go first
    Arrangement base;
    if (!active.empty()) {
      const Edge* widest = *std::ranges::max_element(
          active, {}, [](const Edge* edge) { return axis::flatten(edge->axes).size(); });
      base = arrangements(*widest, node.sizes)[0];
    }
    const LabelSet have(node.sizes.size(), base);
    Arrangement all;
    for (Label label : have.drop(labels)) all.push_back({label});
    all.insert(all.end(), base.begin(), base.end());
    candidates.push_back(std::move(all));
  }
  const LabelSet mine(node.sizes.size(), labels);
  if (order) {
    if (hint(node)->order_only) {
      candidates.insert(candidates.begin(), regrouped(candidates[0], *order));
    } else {
      Arrangement wish = *wanted(node, mine);
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
    double cost = regret(node, arrangement);
    for (std::size_t i = 0; i < active.size(); ++i) {
      cost += broadcastable(*active[i], node.sizes, projected(arrangement, sets[i])).price;
    }
    return cost;
  });
}

Emitter::Aligned Emitter::operand(const Node& node, std::size_t i, const Arrangement& to,
                                  bool lift_rank) {
  const Edge& edge = node.edges[i];
  const LabelSet mine(node.sizes.size(), edge.axes);
  if (!is_constant(edge)) {
    const Arrangement arrangement = broadcastable(edge, node.sizes, projected(to, mine)).dims;
    return {bring(edge, node.sizes, arrangement), arrangement.size()};
  }
  Arrangement arrangement;
  for (const Labels& dim : to) arrangement.push_back(mine.has_any(dim) ? dim : Labels{});
  if (!lift_rank) arrangement = without_leading_units(arrangement);
  return {constant(edge, node.sizes, arrangement, false), arrangement.size()};
}

std::pair<Values, Arrangement> Emitter::broadcast_operands(const Node& node) {
  const Labels labels = axis::flatten(node.out);
  Arrangement arrangement =
      aligned(node, labels, wanted_order(node, LabelSet(node.sizes.size(), labels)));
  std::vector<Aligned> operands(node.edges.size());
  std::size_t rank = 0;
  for (std::size_t i = 0; i < node.edges.size(); ++i) {
    if (is_constant(node.edges[i])) continue;
    operands[i] = operand(node, i, arrangement);
    rank = std::max(rank, operands[i].rank);
  }
  // A constant operand lifts the rank for free: a bias of shape [1,1,N] adds a leading unit dim.
  const bool lift = rank < arrangement.size();
  bool lifted = false;
  for (std::size_t i = 0; i < node.edges.size(); ++i) {
    if (!is_constant(node.edges[i])) continue;
    const bool scalar = node.edges[i].axes.empty();
    operands[i] = operand(node, i, arrangement, lift && !lifted && !scalar);
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
  for (const Aligned& aligned_operand : operands) values.push_back(aligned_operand.value);
  return {std::move(values), std::move(arrangement)};
}

void Emitter::emit_pointwise(const Node& node) {
  if (take_biased(node)) return;
  auto [values, arrangement] = broadcast_operands(node);
  front::Eqn eqn{std::string(node.name), {}, {}, node.attrs, node.location};
  std::vector<front::Type> in;
  for (const Edge& edge : node.edges) in.push_back({edge.node->dtype, {}});
  const front::Type out{node.dtype, {}};
  Ctx ctx(op_, shapes_, eqn, std::move(values), in, {&out, 1});
  define(node, row_for(node)->lower(ctx).values.at(0), arrangement);
}

}  // namespace jaxport::lower

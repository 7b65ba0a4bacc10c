// SPDX-License-Identifier: Apache-2.0
#include "lower/layout/classes.h"

#include <algorithm>
#include <numeric>

#include "lower/layout/label_set.h"

namespace jaxport::lower {
namespace {

using axis::Edge;
using axis::Kind;
using axis::Label;
using axis::Labels;
using axis::Node;

constexpr Label kNone = -1;

std::size_t label_count(const axis::Pattern& pattern) {
  return std::accumulate(pattern.begin(), pattern.end(), std::size_t{0},
                         [](std::size_t sum, const Labels& labels) { return sum + labels.size(); });
}

bool is_full(const Facts& facts, const Node& node, const Edge& edge) {
  return !facts.is_constant(edge.node) && label_count(edge.axes) == label_count(node.out);
}

// Labels of the operand -> labels of the node, when each is one of the other.
std::vector<Label> label_map(const Node& operand, const Edge& edge, const Node& node) {
  std::vector<Label> map(operand.sizes.size(), kNone);
  for (std::size_t axis = 0; axis < edge.axes.size(); ++axis) {
    const Labels &theirs = operand.out[axis], &ours = edge.axes[axis];
    if (theirs.size() != ours.size()) return {};
    for (std::size_t i = 0; i < ours.size(); ++i) {
      const auto from = static_cast<std::size_t>(theirs[i]), to = static_cast<std::size_t>(ours[i]);
      if (!(operand.sizes[from] == node.sizes[to])) return {};
      map[from] = ours[i];
    }
  }
  return map;
}

Arrangement renamed(const Arrangement& dims, const std::vector<Label>& map) {
  Arrangement result = dims;
  for (Labels& dim : result) {
    for (Label& label : dim) label = map[label];
  }
  return result;
}

std::vector<Label> inverse(const std::vector<Label>& map) {
  std::vector<Label> result;
  for (std::size_t from = 0; from < map.size(); ++from) {
    if (map[from] == kNone) continue;
    const auto to = static_cast<std::size_t>(map[from]);
    if (result.size() <= to) result.resize(to + 1, kNone);
    result[to] = static_cast<Label>(from);
  }
  return result;
}

}  // namespace

Classes::Classes(const Facts& facts)
    : facts_(facts),
      class_(facts.order().size()),
      members_(facts.order().size()),
      to_class_(facts.order().size()) {
  const auto& order = facts.order();
  for (std::size_t n = 0; n < order.size(); ++n) {
    class_[n] = n;
    members_[n] = {n};
    to_class_[n].resize(order[n]->sizes.size(), kNone);
    for (const Labels& labels : order[n]->out) {
      for (Label label : labels) to_class_[n][label] = label;
    }
  }
  for (const Node* node : order) {
    auto full = [&](const Edge& edge) { return is_full(facts, *node, edge); };
    if (node->kind != Kind::kPointwise || std::ranges::count_if(node->edges, full) < 2) continue;
    for (const Edge& edge : node->edges) {
      if (!full(edge) || edge.node->kind == Kind::kInput) continue;
      const Map map = label_map(facts.node(edge.node), edge, *node);
      if (!map.empty()) join(facts.index(edge.node), facts.index(node), map);
    }
  }
}

void Classes::join(std::size_t a, std::size_t b, const Map& from_a_to_b) {
  std::size_t from = class_[a], to = class_[b];
  if (from == to) return;
  Map map;  // labels of class `from` -> labels of class `to`
  for (std::size_t label = 0; label < from_a_to_b.size(); ++label) {
    if (from_a_to_b[label] == kNone) continue;
    const auto at = static_cast<std::size_t>(to_class_[a][label]);
    if (map.size() <= at) map.resize(at + 1, kNone);
    map[at] = to_class_[b][from_a_to_b[label]];
  }
  if (members_[from].size() > members_[to].size()) {
    std::swap(from, to);
    map = inverse(map);
  }
  for (std::size_t member : members_[from]) {
    class_[member] = to;
    for (Label& label : to_class_[member]) {
      if (label != kNone) label = map[label];
    }
    members_[to].push_back(member);
  }
  members_[from].clear();
}

Wishes Classes::wishes(const Wishes& of_values, int opset) const {
  const auto& order = facts_.order();
  std::vector<std::vector<Wish>> of_users(order.size());  // by class
  for (std::size_t n = 0; n < order.size(); ++n) {
    if (members_[class_[n]].size() == 1) continue;
    for (const Facts::User& user : facts_.users(order[n])) {
      if (user.node && class_[facts_.index(user.node)] == class_[n]) continue;
      const auto wish = wish_of(facts_, *order[n], user, of_values, opset);
      if (wish) of_users[class_[n]].push_back({wish->strength, common(n, wish->dims)});
    }
  }
  Wishes wishes(order.size());
  for (std::size_t n = 0; n < order.size(); ++n) {
    // The labels of a class are those of the member that names it.
    if (const auto wish = prevailing(of_users[n])) assign(wishes, n, *wish);
  }
  return wishes;
}

void Classes::assign(Wishes& wishes, std::size_t member, const Wish& wish) const {
  const Arrangement dims = common(member, wish.dims);
  for (std::size_t other : members_[class_[member]]) {
    wishes[other] = Wish{wish.strength, renamed(dims, inverse(to_class_[other]))};
  }
}

Arrangement Classes::common(std::size_t member, const Arrangement& dims) const {
  return renamed(dims, to_class_[member]);
}

}  // namespace jaxport::lower

// SPDX-License-Identifier: Apache-2.0
#include "lower/hints.h"

#include <algorithm>

#include "lower/attention.h"
#include "lower/emitter.h"
#include "lower/rope.h"

namespace jaxport::lower {
namespace {

using axis::Edge;
using axis::Kind;
using axis::Label;
using axis::Labels;
using axis::Node;

constexpr double kStrong = 1, kWeak = 0.5;

struct Wish {
  double strength;
  Arrangement dims;  // in labels of the consumer
};
using MaybeWish = std::optional<Wish>;

Arrangement singles(const Labels& labels) {
  Arrangement result;
  for (Label label : labels) result.push_back({label});
  return result;
}

Arrangement projected(const Arrangement& arrangement, const LabelSet& mine) {
  Arrangement result;
  for (const Labels& dim : arrangement) result.push_back(mine.keep(dim));
  return result;
}

// Dims with the labels of the set taken out; dims that become empty vanish, unit dims stay.
Arrangement dropped(const Arrangement& arrangement, const LabelSet& set) {
  Arrangement result;
  for (const Labels& dim : arrangement) {
    if (Labels rest = set.drop(dim); !rest.empty() || dim.empty())
      result.push_back(std::move(rest));
  }
  return result;
}

MaybeWish norm_wish(const Node& node, std::size_t i, const MaybeWish& own) {
  if (i != 0) return std::nullopt;
  const Labels all = axis::flatten(node.edges[0].axes);
  const LabelSet along(node.sizes.size(), node.role("a"));
  Arrangement dims = dropped(own ? own->dims : singles(all), along);
  dims.push_back(along.keep(all));
  return Wish{own ? own->strength : kWeak, std::move(dims)};
}

// [rows as the result wants them][contracted labels merged]
MaybeWish contract_wish(const Node& node, std::size_t i, const MaybeWish& own) {
  const std::size_t count = node.sizes.size();
  const Labels mine = axis::flatten(node.edges[i].axes);
  const LabelSet others(count, node.edges[1 - i].axes), out(count, node.out), set(count, mine);
  Labels contracted;
  for (Label label : mine) {
    if (!others.has(label)) continue;
    if (out.has(label)) return std::nullopt;  // batched: no preference
    contracted.push_back(label);
  }
  Arrangement rows;
  if (own) {
    Arrangement mixed;
    for (const Labels& dim : own->dims) {
      Labels kept = set.keep(dim);
      if (!others.has_any(dim)) {
        rows.push_back(std::move(kept));
      } else if (!kept.empty()) {
        mixed.push_back(std::move(kept));
      }
    }
    rows.insert(rows.end(), mixed.begin(), mixed.end());
  } else {
    rows = singles(others.drop(mine));
  }
  rows.push_back(std::move(contracted));
  return Wish{own ? own->strength : kWeak, std::move(rows)};
}

// The picked label next to its neighbour in the operand's axis, so that sibling picks become one
// Split.
MaybeWish pick_wish(const Node& node, const MaybeWish& own) {
  if (!own) return std::nullopt;
  const Label along = node.role("p")[0];
  const Labels& axis = *std::ranges::find_if(
      node.edges[0].axes, [&](const Labels& labels) { return axis::contains(labels, along); });
  const auto at = static_cast<std::size_t>(std::ranges::find(axis, along) - axis.begin());
  Arrangement dims = own->dims;
  if (axis.size() == 1) {
    dims.insert(dims.begin(), Labels{along});
    return Wish{own->strength, std::move(dims)};
  }
  const bool before = at + 1 < axis.size();
  const Label neighbour = before ? axis[at + 1] : axis[at - 1];
  for (Labels& dim : dims) {
    auto found = std::ranges::find(dim, neighbour);
    if (found != dim.end()) dim.insert(before ? found : found + 1, along);
  }
  return Wish{own->strength, std::move(dims)};
}

MaybeWish concat_wish(const Node& node, std::size_t i, const MaybeWish& own) {
  if (!own) return std::nullopt;
  const Label to = node.role("o")[0];
  const Labels& piece = node.role("i" + std::to_string(i));
  const LabelSet mine(node.sizes.size(), node.edges[i].axes);
  Arrangement dims;
  for (const Labels& dim : own->dims) {
    Labels labels;
    for (Label label : dim) {
      if (label == to && !piece.empty()) labels.push_back(piece[0]);
      if (label != to && mine.has(label)) labels.push_back(label);
    }
    if (!labels.empty()) dims.push_back(std::move(labels));
  }
  return Wish{own->strength, std::move(dims)};
}

// [batch][time][heads, size of a head]: the op takes three dims straight from the projections.
MaybeWish attention_wish(const Node& node, std::size_t i, const MaybeWish& own) {
  if (i > 2) return std::nullopt;
  const AttentionLabels labels(node);
  const AttentionRoles roles(node, own ? axis::flatten(own->dims) : axis::flatten(node.out));
  Labels inner = roles.heads;
  auto append = [&](const Labels& more) { inner.insert(inner.end(), more.begin(), more.end()); };
  if (i == 0) append(labels.group);
  append(i == 2 ? labels.value_size : labels.key_size);
  return Wish{kStrong, {roles.batch, i == 0 ? labels.time : labels.keys, inner}};
}

// [batch][time][heads, size of a head] in the order of the result; tables as the op takes them.
MaybeWish rope_wish(const Node& node, std::size_t i, const MaybeWish& own) {
  const RopeLabels labels(node);
  const RopeForm form = natural_form(labels, own ? own->dims : node.edges[0].axes);
  if (i == 0) return Wish{kStrong, form.arrange(labels.head)};
  return Wish{kStrong, form.tables(labels)};
}

MaybeWish renamed_wish(const Node& node, const MaybeWish& own) {
  if (!own || node.role("o").empty()) return std::nullopt;
  Wish wish = *own;
  for (Labels& dim : wish.dims) std::ranges::replace(dim, node.role("o")[0], node.role("i")[0]);
  return wish;
}

// What consumer `node` wants of operand i, given what its own consumers want of it.
MaybeWish operand_wish(const Node& node, std::size_t i, const MaybeWish& own, int opset) {
  switch (node.kind) {
    case Kind::kPointwise:
    case Kind::kStack:
    case Kind::kRelayout:
      break;
    case Kind::kContract:
      return contract_wish(node, i, own);
    case Kind::kPick:
      return pick_wish(node, own);
    case Kind::kConcat:
      return concat_wish(node, i, own);
    case Kind::kSlice:
      return renamed_wish(node, own);
    case Kind::kPrim:
      return Wish{kStrong, prim_operand(node, i, opset)};
    case Kind::kMacro:
      if (node.name == "norm") return norm_wish(node, i, own);
      if (node.name == "attention") return attention_wish(node, i, own);
      if (node.name == "rope" || node.name == "partial_rope") return rope_wish(node, i, own);
      break;
    default:
      return std::nullopt;
  }
  if (!own) return std::nullopt;
  return Wish{own->strength, projected(own->dims, LabelSet(node.sizes.size(), node.edges[i].axes))};
}

// A wish in labels of the consumer as dims of the operand's axes. Axes that the wish tears apart
// stay whole, at their first appearance; nullopt when an axis is missing.
std::optional<Hint> in_axes(const Arrangement& dims, const Edge& edge, const Dims& sizes) {
  const auto pieces = label_pieces(edge.axes, sizes);
  std::vector<char> seen(edge.axes.size(), 0);
  std::size_t found = 0;
  Hint hint;
  for (const Labels& labels : dims) {
    std::vector<std::int32_t> dim;
    bool any = false;
    for (Label label : labels) {
      const Piece& piece = pieces[static_cast<std::size_t>(label)];
      if (piece.axis < 0) continue;
      any = true;
      if (std::exchange(seen[static_cast<std::size_t>(piece.axis)], 1)) continue;
      dim.push_back(piece.axis);
      ++found;
    }
    if (!dim.empty() || !any) hint.dims.push_back(std::move(dim));
  }
  if (found != edge.axes.size()) return std::nullopt;
  return hint;
}

struct Vote {
  double strength;
  Hint hint;
};

// The layout with the largest sum of strengths; the first one on a tie. Few layouts differ, however
// many consumers vote.
std::optional<Vote> elected(const std::vector<Vote>& votes) {
  struct Candidate {
    const Vote* first;
    double sum, strongest;
  };
  std::vector<Candidate> candidates;
  for (const Vote& vote : votes) {
    auto known = std::ranges::find_if(
        candidates, [&](const Candidate& c) { return c.first->hint.dims == vote.hint.dims; });
    if (known == candidates.end()) {
      candidates.push_back({&vote, vote.strength, vote.strength});
    } else {
      known->sum += vote.strength;
      known->strongest = std::max(known->strongest, vote.strength);
    }
  }
  const auto best = std::ranges::max_element(candidates, {}, &Candidate::sum);
  if (best == candidates.end()) return std::nullopt;
  return Vote{best->strongest, best->first->hint};
}

// A program output wants its jaxpr dims.
std::optional<Hint> output_hint(const axis::Program& program, std::size_t i) {
  const axis::View& view = program.outputs[i];
  Hint hint;
  std::vector<char> seen(view.use.labels.size(), 0);
  for (const Labels& dim : view.dims) {
    std::vector<std::int32_t> axes;
    bool any = false;
    for (Label label : dim) {
      for (std::size_t axis = 0; axis < view.use.labels.size(); ++axis) {
        if (!axis::contains(view.use.labels[axis], label)) continue;
        any = true;
        if (!std::exchange(seen[axis], 1)) axes.push_back(static_cast<std::int32_t>(axis));
      }
    }
    if (!axes.empty() || !any) hint.dims.push_back(std::move(axes));
  }
  return hint;
}

}  // namespace

Hints collect_wishes(const Facts& facts, int opset) {
  const auto& order = facts.order();
  std::vector<std::optional<Vote>> winner(order.size());
  for (std::size_t n = order.size(); n-- > 0;) {
    const Node* node = order[n];
    if (facts.is_constant(node)) continue;
    std::vector<Vote> votes;
    for (const Facts::User& user : facts.users(node)) {
      if (!user.node) {
        if (auto hint = output_hint(facts.program, user.operand)) votes.push_back({kStrong, *hint});
        continue;
      }
      if (facts.is_constant(user.node)) continue;
      const auto& theirs = winner[facts.index(user.node)];
      MaybeWish own;
      if (theirs) {
        own = Wish{theirs->strength, {}};
        for (const auto& dim : theirs->hint.dims) {
          Labels& labels = own->dims.emplace_back();
          for (std::int32_t axis : dim) {
            const Labels& product = user.node->out[static_cast<std::size_t>(axis)];
            labels.insert(labels.end(), product.begin(), product.end());
          }
        }
      }
      auto wish = operand_wish(*user.node, user.operand, own, opset);
      if (!wish) continue;
      auto hint = in_axes(wish->dims, user.node->edges[user.operand], user.node->sizes);
      if (hint) votes.push_back({wish->strength, std::move(*hint)});
    }
    winner[n] = elected(votes);
  }
  Hints hints(order.size());
  for (std::size_t n = 0; n < order.size(); ++n) {
    if (!winner[n]) continue;
    hints[n] = winner[n]->hint;
    hints[n]->order_only = winner[n]->strength < kStrong;
  }
  return hints;
}

}  // namespace jaxport::lower

// SPDX-License-Identifier: Apache-2.0
#include "lower/layout/wishes.h"

#include <algorithm>

#include "axis/graph/parts.h"
#include "lower/emit/dimwise.h"
#include "lower/emit/prim.h"
#include "lower/layout/label_set.h"
#include "lower/macro/macro.h"
#include "lower/rows/ctx.h"

namespace jaxport::lower {
namespace {

using axis::Edge;
using axis::Kind;
using axis::Label;
using axis::Labels;
using axis::Node;

// [..][contracted labels][columns], where the result is wanted as [..][rows of a
// constant][columns]: the constant is multiplied from the left.
MaybeWish constant_left_wish(const Node& node, std::size_t i, const MaybeWish& own) {
  if (!own || own->dims.size() < 2) return std::nullopt;
  const std::size_t count = node.sizes.size(), place = own->dims.size() - 2;
  const LabelSet mine(count, node.edges[i].axes), others(count, node.edges[1 - i].axes),
      out(count, node.out);
  const Labels fresh = mine.drop(axis::flatten(node.edges[1 - i].axes));
  const Labels& rows = own->dims[place];
  if (fresh.empty() || rows.size() != fresh.size() || mine.has_any(rows)) return std::nullopt;
  if (own->dims.back().empty() || !mine.has_all(own->dims.back())) return std::nullopt;
  Wish wish = *own;
  wish.dims[place] = out.drop(others.keep(axis::flatten(node.edges[i].axes)));
  return wish;
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
    rows = dropped(node.edges[i].axes, others);
  }
  rows.push_back(std::move(contracted));
  return Wish{own ? own->strength : kWeak, std::move(rows)};
}

// The picked label next to its neighbour in the operand's axis, so that sibling picks become one
// Split.
MaybeWish pick_wish(const Node& node, const MaybeWish& own) {
  if (!own) return std::nullopt;
  const Label along = axis::Pick::of(node).along[0];
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
  const Label to = axis::Concat::target(node)[0];
  const Labels& piece = axis::Concat::piece(node, i);
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

MaybeWish slice_wish(const Node& node, const MaybeWish& own) {
  const axis::Slice slice = axis::Slice::of(node);
  if (!own || slice.to.empty()) return std::nullopt;
  Wish wish = *own;
  for (Labels& dim : wish.dims) std::ranges::replace(dim, slice.to[0], slice.from[0]);
  return wish;
}

MaybeWish prim_wish(const Node& node, std::size_t i, const MaybeWish& own, int opset) {
  const Row* row = find_row(node.prim->eqn.primitive, opset);
  if (i == 0 && row && row->reordered) {
    if (!own) return std::nullopt;
    if (auto dims = dimwise_operand(node, own->dims)) return Wish{own->strength, *std::move(dims)};
  }
  return Wish{kStrong, prim_operand(node, i, opset)};
}

// What consumer `node` wants of operand i, given what its own consumers want of it.
MaybeWish operand_wish(const Facts& facts, const Node& node, std::size_t i, const MaybeWish& own,
                       int opset) {
  switch (node.kind) {
    case Kind::kPointwise:
    case Kind::kStack:
    case Kind::kRelayout:
      break;
    case Kind::kContract:
      if (facts.is_constant(node.edges[1 - i].node)) {
        if (auto wish = constant_left_wish(node, i, own)) return wish;
      }
      return contract_wish(node, i, own);
    case Kind::kPick:
      return pick_wish(node, own);
    case Kind::kConcat:
      return concat_wish(node, i, own);
    case Kind::kSlice:
      return slice_wish(node, own);
    case Kind::kPrim:
      return prim_wish(node, i, own, opset);
    case Kind::kMacro:
      if (const MacroRow* macro = find_macro(node); macro && macro->wish) {
        return macro->wish(node, i, own);
      }
      break;
    default:
      return std::nullopt;
  }
  if (!own) return std::nullopt;
  return Wish{own->strength,
              restricted(own->dims, LabelSet(node.sizes.size(), node.edges[i].axes))};
}

// A wish in labels of the consumer as dims in labels of the operand. A label that the wish tears
// apart stays whole, at its first appearance; nullopt when a label is missing.
std::optional<Arrangement> seen_by(const Node& operand, const Arrangement& dims, const Edge& edge,
                                   const Dims& sizes) {
  const AxisPieces pieces = label_pieces(edge.axes, sizes),
                   own = label_pieces(operand.out, operand.sizes);
  LabelSet seen(operand.sizes.size());
  Arrangement result;
  for (const Labels& labels : dims) {
    Labels dim;
    bool any = false;
    for (Label label : labels) {
      const AxisPiece& piece = pieces[label];
      if (piece.axis < 0) continue;
      any = true;
      const Labels& product = operand.out[piece.axis];
      for (Label mine : product) {
        if (seen.has(mine)) continue;
        if (product.size() > 1 && !overlap(piece, own[mine])) continue;
        seen.add({mine});
        dim.push_back(mine);
      }
    }
    if (!dim.empty() || !any) result.push_back(std::move(dim));
  }
  const bool complete =
      std::ranges::all_of(operand.out, [&](const Labels& labels) { return seen.has_all(labels); });
  return complete ? std::optional(std::move(result)) : std::nullopt;
}

}  // namespace

// Few layouts differ, however many consumers there are.
MaybeWish prevailing(const std::vector<Wish>& wishes) {
  struct Candidate {
    Wish wish;
    double sum;
  };
  std::vector<Candidate> candidates;
  for (const Wish& wish : wishes) {
    auto known = std::ranges::find_if(candidates,
                                      [&](const Candidate& c) { return c.wish.dims == wish.dims; });
    if (known == candidates.end()) {
      candidates.push_back({wish, wish.strength});
    } else {
      known->sum += wish.strength;
      known->wish.strength = std::max(known->wish.strength, wish.strength);
    }
  }
  const auto best = std::ranges::max_element(candidates, {}, &Candidate::sum);
  return best == candidates.end() ? std::nullopt : std::optional(best->wish);
}

MaybeWish wish_of(const Facts& facts, const Node& value, const Facts::User& user,
                  const Wishes& wishes, int opset) {
  if (!user.node) {  // a program output wants its jaxpr dims
    const Facts::Output output = facts.output(user.operand);
    auto dims = seen_by(value, output.dims, output.edge, output.sizes);
    return dims ? MaybeWish({kStrong, *std::move(dims)}) : std::nullopt;
  }
  if (facts.is_constant(user.node)) return std::nullopt;
  const MaybeWish& own = wishes[facts.index(user.node)];
  const auto wish = operand_wish(facts, *user.node, user.operand, own, opset);
  if (!wish) return std::nullopt;
  auto dims = seen_by(value, wish->dims, user.node->edges[user.operand], user.node->sizes);
  return dims ? MaybeWish({wish->strength, *std::move(dims)}) : std::nullopt;
}

Wishes collect_wishes(const Facts& facts, int opset, Wishes fixed) {
  const auto& order = facts.order();
  Wishes wishes = std::move(fixed);
  wishes.resize(order.size());
  for (std::size_t n = order.size(); n-- > 0;) {
    if (wishes[n] || facts.is_constant(order[n])) continue;
    std::vector<Wish> of_users;
    for (const Facts::User& user : facts.users(order[n])) {
      if (auto wish = wish_of(facts, *order[n], user, wishes, opset)) {
        of_users.push_back(std::move(*wish));
      }
    }
    wishes[n] = prevailing(of_users);
  }
  return wishes;
}

}  // namespace jaxport::lower

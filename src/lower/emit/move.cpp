// SPDX-License-Identifier: Apache-2.0
// Nodes that take values apart and put them together: pick, slice, stack, concat, relayout, iota.
#include <algorithm>
#include <limits>

#include "axis/graph/parts.h"
#include "axis/graph/pattern.h"
#include "jaxport/error.h"
#include "lower/emit/cheapest.h"
#include "lower/emit/emission.h"

namespace jaxport::lower {

using axis::Concat;
using axis::Edge;
using axis::Kind;
using axis::Label;
using axis::Labels;
using axis::Node;
using axis::Pick;
using axis::Slice;
using axis::Stack;

namespace {

std::size_t dim_with(const Arrangement& arrangement, Label label) {
  auto found = std::ranges::find_if(arrangement,
                                    [&](const Labels& dim) { return axis::contains(dim, label); });
  if (found == arrangement.end()) throw Error("BUG", "a label has no physical dim");
  return static_cast<std::size_t>(found - arrangement.begin());
}

// Splits the dim of `label` so that the label is the first of its dim.
Arrangement split_before(const Arrangement& arrangement, Label label) {
  Arrangement result;
  for (const Labels& dim : arrangement) {
    auto at = std::ranges::find(dim, label);
    if (at == dim.end() || at == dim.begin()) {
      result.push_back(dim);
    } else {
      result.emplace_back(dim.begin(), at);
      result.emplace_back(at, dim.end());
    }
  }
  return result;
}

Arrangement arrangement_without(const Arrangement& arrangement, Label label) {
  Arrangement result;
  for (const Labels& dim : arrangement) {
    Labels rest = axis::without(dim, {label});
    if (!rest.empty() || dim.empty()) result.push_back(std::move(rest));
  }
  return result;
}

// Without a new label the dim shrinks to what else is in it, or to a unit dim.
Arrangement renamed(Arrangement arrangement, Label from, std::optional<Label> to) {
  for (Labels& dim : arrangement) {
    if (to) {
      std::ranges::replace(dim, from, *to);
    } else {
      dim = axis::without(dim, {from});
    }
  }
  return arrangement;
}

Dim rest_of(const Labels& dim, Label label, const Dims& sizes) {
  Dim rest = 1;
  for (Label other : dim) {
    if (other != label) rest = rest * sizes[other];
  }
  return rest;
}

// Which part of the operand a pick or slice along `label` takes: nodes with equal pieces are
// siblings.
AxisPiece taken_piece(const axis::Node& node, const Labels& label) {
  return label_pieces(node.edges[0].axes, node.sizes)[label[0]];
}

// Whether every element along the label that `pick` picks from is picked by some node.
bool picks_all(const Facts& facts, const axis::Node& pick) {
  const Labels along = Pick::of(pick).along;
  std::vector<std::int64_t> taken;
  for (const Facts::User& user : facts.users(pick.edges[0].node)) {
    if (!user.node || user.node->kind != Kind::kPick || facts.is_constant(user.node)) continue;
    const Pick other = Pick::of(*user.node);
    if (taken_piece(*user.node, other.along) == taken_piece(pick, along)) {
      taken.push_back(other.index);
    }
  }
  std::ranges::sort(taken);
  taken.erase(std::unique(taken.begin(), taken.end()), taken.end());
  return pick.sizes[along[0]] == Dim(std::ssize(taken));
}

// `arrangement` with `label` alone in its dim, in which it comes first.
Arrangement with_label_alone(const Arrangement& arrangement, Label label) {
  Arrangement alone;
  for (const Labels& dim : arrangement) {
    const bool here = dim.size() > 1 && dim[0] == label;
    if (here) alone.push_back({label});
    alone.emplace_back(dim.begin() + (here ? 1 : 0), dim.end());
  }
  return alone;
}

// The part of a slice among the parts of all that take their piece of the operand apart.
struct Tiling {
  Ints sizes;
  std::size_t mine = 0;
};
std::optional<Tiling> tiling_of(const Facts& facts, const axis::Node& slice) {
  const Slice mine = Slice::of(slice);
  std::vector<std::pair<std::int64_t, std::int64_t>> tiles;
  for (const Facts::User& user : facts.users(slice.edges[0].node)) {
    if (!user.node || user.node->kind != Kind::kSlice || facts.is_constant(user.node)) continue;
    const Slice part = Slice::of(*user.node);
    if (!(taken_piece(*user.node, part.from) == taken_piece(slice, mine.from))) continue;
    if (part.stride == 1 && part.start.is_static() && part.limit.is_static()) {
      tiles.emplace_back(part.start.value(), part.limit.value());
    }
  }
  std::ranges::sort(tiles);
  tiles.erase(std::unique(tiles.begin(), tiles.end()), tiles.end());
  const Dim& whole = slice.sizes[mine.from[0]];
  if (tiles.size() < 2 || mine.stride != 1 || !mine.start.is_static() || !mine.limit.is_static() ||
      tiles.front().first != 0 || !(Dim(tiles.back().second) == whole)) {
    return std::nullopt;
  }
  Tiling tiling;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const auto& [first, last] = tiles[i];
    if (i + 1 < tiles.size() && last != tiles[i + 1].first) return std::nullopt;
    if (first == mine.start.value() && last == mine.limit.value()) tiling.mine = i;
    tiling.sizes.push_back(last - first);
  }
  return tiling;
}

// Where ONNX's Slice ends.
Value end_of(Emission& e, const Node& slice, const Dim& rest) {
  const Slice part = Slice::of(slice);
  const Dim& whole = slice.sizes[part.from[0]];
  const bool reaches_end = less_equal(whole, part.limit + part.stride - 1) == Truth::kYes;
  if (part.limit.is_static() || !reaches_end) return e.shapes.dim(part.limit * rest);
  return e.op.ints({std::numeric_limits<std::int64_t>::max()});
}

// Whether a consumer takes the pick with the unit dim that is left of the dim it picks from: a
// Concat, or one that wishes this layout.
bool wants_unit_dim(const Emission& e, const Node& pick, const Arrangement& unit) {
  const auto& wish = wish_for(e, pick);
  if (wish && !wish->is_for_order() &&
      wanted(e, pick, LabelSet(pick.sizes.size(), pick.out)) == unit) {
    return true;
  }
  return std::ranges::any_of(e.plan.facts.users(&pick), [](const Facts::User& user) {
    return user.node && user.node->kind == Kind::kConcat;
  });
}

}  // namespace

void emit_iota(Emission& e, const Node& node) {
  e.values.define(node, cast(e.shapes.range(node.axis_size(0)), node.dtype), {node.out[0]});
}

void emit_pick(Emission& e, const Node& node) {
  const Edge& edge = node.edges[0];
  const auto [labels, k] = Pick::of(node);
  const Label along = labels[0];
  std::vector<Arrangement> candidates = e.values.arrangements(edge, node.sizes);
  for (Arrangement& candidate : candidates) {
    const Labels& dim = candidate[dim_with(candidate, along)];
    // A strided pick of the innermost label needs a static stride and end.
    const bool strided = dim.size() > 1 && dim.back() == along && node.sizes[along].is_static() &&
                         rest_of(dim, along, node.sizes).is_static();
    if (!strided) candidate = split_before(candidate, along);
  }
  const Arrangement best = cheapest_of(std::move(candidates), [&](const Arrangement& candidate) {
    return e.values.price(edge, node.sizes, candidate) +
           regret(e, node, arrangement_without(candidate, along));
  });
  const Value x = e.values.bring(edge, node.sizes, best);
  const std::size_t dim_index = dim_with(best, along);
  const Labels dim = best[dim_index];
  const auto physical = static_cast<std::int64_t>(dim_index);
  const Dim rest = rest_of(dim, along, node.sizes), count = node.sizes[along];
  if (const Arrangement unit = renamed(best, along, std::nullopt);
      dim.size() == 1 && wants_unit_dim(e, node, unit)) {
    const Value part = e.op.Slice(x, e.op.ints({k}), e.op.ints({k + 1}), e.op.ints({physical}));
    return e.values.define(node, part, unit);
  }
  Value result;
  if (dim.size() == 1) {
    result =
        e.op.Gather(x, e.op.constant(int_scalar(DType::kI64, k)), onnx::Args{{"axis", physical}});
  } else if (dim[0] != along) {
    result = e.op.Slice(x, e.op.ints({k}), e.op.ints({(rest * count).value()}),
                        e.op.ints({physical}), e.op.ints({count.value()}));
  } else if (rest.is_static() && picks_all(e.plan.facts, node)) {
    const Ints parts(static_cast<std::size_t>(count.value()), rest.value());
    result = e.op.call_n("Split", {x, e.op.ints(parts)}, parts.size(), {{"axis", physical}})[k];
  } else {
    Dims shape = x.shape();
    shape[dim_index] = rest;
    result = e.op.call_with_shape(
        "Slice", {x, e.shapes.dim(rest * k), e.shapes.dim(rest * (k + 1)), e.op.ints({physical})},
        {}, shape);
  }
  e.values.define(node, result, arrangement_without(best, along));
}

void emit_slice(Emission& e, const Node& node) {
  const Edge& edge = node.edges[0];
  const Slice part = Slice::of(node);
  const Label from = part.from[0];
  const std::optional<Label> to = part.target();
  std::vector<Arrangement> candidates = e.values.arrangements(edge, node.sizes);
  for (Arrangement& candidate : candidates) {
    candidate = split_before(candidate, from);
    if (part.stride != 1) candidate = with_label_alone(candidate, from);
  }
  const Arrangement best = cheapest_of(std::move(candidates), [&](const Arrangement& candidate) {
    return e.values.price(edge, node.sizes, candidate) +
           regret(e, node, renamed(candidate, from, to));
  });
  const Value x = e.values.bring(edge, node.sizes, best);
  const std::size_t dim_index = dim_with(best, from);
  const auto physical = static_cast<std::int64_t>(dim_index);
  const Dim rest = rest_of(best[dim_index], from, node.sizes);
  Arrangement result = renamed(best, from, to);
  if (auto tiling = rest.is_static() ? tiling_of(e.plan.facts, node) : std::nullopt) {
    for (std::int64_t& size : tiling->sizes) size *= rest.value();
    const Values parts = e.op.call_n("Split", {x, e.op.ints(tiling->sizes)}, tiling->sizes.size(),
                                     {{"axis", physical}});
    return e.values.define(node, parts[tiling->mine], result);
  }
  Dims shape = x.shape();
  shape[dim_index] = to ? node.sizes[*to] * rest : rest;
  Values in{x, e.shapes.dim(part.start * rest), end_of(e, node, rest), e.op.ints({physical})};
  if (part.stride != 1) in.push_back(e.op.ints({part.stride}));
  e.values.define(node, e.op.call_with_shape("Slice", in, {}, shape), result);
}

// Concat on the dim (p next): no Unsqueeze is needed when p lies in front of another label. A last
// p takes the place of a unit dim at the end.
void emit_stack(Emission& e, const Node& node) {
  const Label along = Stack::of(node).along[0];
  const Labels out = axis::flatten(node.out);
  const Labels labels = axis::without(out, {along});
  const LabelSet all(node.sizes.size(), out);
  auto order = wanted_order(e, node, all);
  std::optional<Label> next;
  if (order) {
    auto at = std::ranges::find(*order, along) + 1;
    if (at != order->end()) next = *at;
    order = axis::without(*order, {along});
  } else if (!labels.empty()) {
    next = labels.back();
  }
  Arrangement arrangement = aligned(e, node, labels, order);
  if (next) {
    arrangement = split_before(arrangement, *next);
  } else if (arrangement.empty() || !arrangement.back().empty()) {
    arrangement.emplace_back();
  }
  const std::size_t dim_index = next ? dim_with(arrangement, *next) : arrangement.size() - 1;
  Values parts;
  for (const Edge& edge : node.edges)
    parts.push_back(e.values.bring_full(edge, node.sizes, arrangement));
  Arrangement result = arrangement;
  result[dim_index].insert(result[dim_index].begin(), along);
  e.values.define(
      node, e.op.call("Concat", parts, {{"axis", static_cast<std::int64_t>(dim_index)}}), result);
}

namespace {

// The arrangements that operands of a concatenation have, and the wish, as those of the result.
std::vector<Arrangement> concat_candidates(const Emission& e, const Node& node) {
  const Concat concat = Concat::of(node);
  const Label to = concat.to[0];
  const Labels out = axis::flatten(node.out);
  const auto pieces = concat.piece_labels();
  std::vector<Arrangement> candidates;
  for (std::size_t j = 0; j < node.edges.size(); ++j) {
    for (Arrangement seen : e.values.arrangements(node.edges[j], node.sizes)) {
      if (pieces[j]) seen = renamed(std::move(seen), *pieces[j], to);
      const LabelSet have(node.sizes.size(), seen);
      const bool is_single = !have.has(to) && have.drop(out).size() == 1;
      if (is_single) {  // a piece of size 1: its unit dim, or a new one
        auto unit = std::ranges::find_if(seen, [](const Labels& dim) { return dim.empty(); });
        if (unit == seen.end()) unit = seen.insert(seen.begin(), Labels{});
        unit->push_back(to);
      }
      if (is_single || have.has_all(out)) candidates.push_back(std::move(seen));
    }
  }
  if (auto wish = wanted(e, node, LabelSet(node.sizes.size(), out))) {
    const bool is_order = wish_for(e, node)->is_for_order();
    candidates.push_back(is_order ? axis::axis_each(axis::flatten(*wish)) : std::move(*wish));
  }
  if (candidates.empty()) candidates.push_back(axis::axis_each(out));
  for (Arrangement& candidate : candidates) candidate = split_before(candidate, to);
  return candidates;
}

}  // namespace

void emit_concat(Emission& e, const Node& node) {
  const Concat concat = Concat::of(node);
  const Label to = concat.to[0];
  const auto pieces = concat.piece_labels();
  const Arrangement best =
      cheapest_of(concat_candidates(e, node), [&](const Arrangement& candidate) {
        double cost = regret(e, node, candidate);
        for (std::size_t j = 0; j < node.edges.size(); ++j) {
          const Arrangement theirs = renamed(candidate, to, pieces[j]);
          cost += e.values.price_full(node.edges[j], node.sizes, theirs);
        }
        return cost;
      });
  Values parts;
  for (std::size_t j = 0; j < node.edges.size(); ++j) {
    const Arrangement theirs = renamed(best, to, pieces[j]);
    parts.push_back(e.values.bring_full(node.edges[j], node.sizes, theirs));
  }
  const auto physical = static_cast<std::int64_t>(dim_with(best, to));
  e.values.define(node, e.op.call("Concat", parts, {{"axis", physical}}), best);
}

namespace {

// Pieces of the operand as pieces of the result: each lies inside one label, which has a piece on
// either side. False when some piece does not.
bool rename_pieces(Layout& layout, const Labels& labels, const AxisPieces& from,
                   const AxisPieces& to) {
  auto rename = [&](AxisPiece& piece) {
    return std::ranges::any_of(labels, [&](Label label) {
      const AxisPiece& whole = from[label];
      const AxisPiece& target = to[label];
      const auto inner = exact_div(piece.stride, whole.stride);
      if (!inner || !overlap(piece, whole) ||
          !exact_div(whole.stride * whole.size, piece.stride * piece.size)) {
        return false;
      }
      piece = {target.axis, target.stride * *inner, piece.size};
      return true;
    });
  };
  return std::ranges::all_of(layout,
                             [&](PhysicalDim& dim) { return std::ranges::all_of(dim, rename); });
}

}  // namespace

// A relayout that repeats nothing is a new name for the pieces of its operand: no node.
void emit_relayout(Emission& e, const Node& node) {
  const Edge& edge = node.edges[0];
  const Labels out = axis::flatten(node.out);
  const LabelSet mine(node.sizes.size(), edge.axes);
  if (!mine.has_all(out) || e.values.is_constant(edge)) {
    Arrangement each;
    for (const Labels& labels : node.out) each.push_back(labels);
    if (!e.values.is_constant(edge))
      return e.values.define(node, e.values.bring_full(edge, node.sizes, each), each);
    Arrangement units;  // a broadcast too large to be stored
    Arrangement singles;
    Dims shape;
    for (Label label : out) {
      units.push_back(mine.has(label) ? Labels{label} : Labels{});
      singles.push_back({label});
      shape.push_back(node.sizes[label]);
    }
    const Value small = e.values.bring(edge, node.sizes, units);
    return e.values.define(node, e.shapes.expand(small, shape), singles);
  }
  const auto from = label_pieces(edge.axes, node.sizes), to = label_pieces(node.out, node.sizes);
  std::vector<ValueStore::Variant> seen;
  for (const ValueStore::Variant& variant : e.values.variants(edge.node)) {
    Layout layout = variant.layout, labels;
    for (Label label : out) labels.push_back({from[label]});
    if (cut(layout, labels) && rename_pieces(layout, out, from, to)) {
      seen.push_back({variant.value, merged(layout)});
    }
  }
  if (seen.empty()) {  // the operand lies in other factors than the result has
    const Arrangement each = axis::axis_each(out);
    return e.values.define(node, e.values.bring(edge, node.sizes, each), each);
  }
  e.values.define(node, std::move(seen));
}

}  // namespace jaxport::lower

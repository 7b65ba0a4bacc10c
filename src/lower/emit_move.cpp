// SPDX-License-Identifier: Apache-2.0
// Nodes that take values apart and put them together: pick, slice, stack, concat, relayout, iota.
#include <algorithm>
#include <limits>

#include "axis/pattern.h"
#include "jaxport/error.h"
#include "lower/emitter.h"

namespace jaxport::lower {

using axis::Kind;
using axis::Label;
using axis::Labels;

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

Arrangement without(const Arrangement& arrangement, Label label) {
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
    if (other != label) rest = rest * sizes[static_cast<std::size_t>(other)];
  }
  return rest;
}

std::int64_t pick_index(const axis::Node& node) { return node.get<std::int64_t>("k"); }

// Which part of the operand a pick or slice takes: nodes with equal pieces are siblings.
Piece taken_piece(const axis::Node& node, std::string_view role) {
  return label_pieces(node.edges[0].axes, node.sizes)[static_cast<std::size_t>(node.role(role)[0])];
}

// Whether every element along the label that `pick` picks from is picked by somebody.
bool picks_all(const Facts& facts, const axis::Node& pick) {
  std::vector<std::int64_t> taken;
  for (const Facts::User& user : facts.users(pick.edges[0].node)) {
    if (user.node && user.node->kind == Kind::kPick && !facts.is_constant(user.node) &&
        taken_piece(*user.node, "p") == taken_piece(pick, "p")) {
      taken.push_back(pick_index(*user.node));
    }
  }
  std::ranges::sort(taken);
  taken.erase(std::unique(taken.begin(), taken.end()), taken.end());
  return pick.sizes[static_cast<std::size_t>(pick.role("p")[0])] == Dim(std::ssize(taken));
}

// A range of elements that a slice takes, in the operand's label.
struct Part {
  Dim start, limit;
  std::int64_t stride;
};
Part part_of(const axis::Node& slice) {
  return {slice.get<Dim>("start"), slice.get<Dim>("limit"), slice.get<std::int64_t>("stride")};
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
  std::vector<std::pair<std::int64_t, std::int64_t>> tiles;
  for (const Facts::User& user : facts.users(slice.edges[0].node)) {
    if (!user.node || user.node->kind != Kind::kSlice || facts.is_constant(user.node) ||
        !(taken_piece(*user.node, "i") == taken_piece(slice, "i"))) {
      continue;
    }
    const Part part = part_of(*user.node);
    if (part.stride == 1 && part.start.is_static() && part.limit.is_static()) {
      tiles.emplace_back(part.start.value(), part.limit.value());
    }
  }
  std::ranges::sort(tiles);
  tiles.erase(std::unique(tiles.begin(), tiles.end()), tiles.end());
  const Part part = part_of(slice);
  const Dim& whole = slice.sizes[static_cast<std::size_t>(slice.role("i")[0])];
  if (tiles.size() < 2 || part.stride != 1 || !part.start.is_static() || !part.limit.is_static() ||
      tiles.front().first != 0 || !(Dim(tiles.back().second) == whole)) {
    return std::nullopt;
  }
  Tiling tiling;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const auto& [first, last] = tiles[i];
    if (i + 1 < tiles.size() && last != tiles[i + 1].first) return std::nullopt;
    if (first == part.start.value() && last == part.limit.value()) tiling.mine = i;
    tiling.sizes.push_back(last - first);
  }
  return tiling;
}

}  // namespace

// 0, 1, … as i64
Value Emitter::range(const Dim& size) {
  const Value end = op_.Squeeze(shapes_.dim(size));
  return op_.call_with_shape("Range", {op_.scalar(0, DType::kI64), end, op_.scalar(1, DType::kI64)},
                             {}, {size});
}

void Emitter::emit_iota(const Node& node) {
  Value counted = range(node.axis_size(0));
  if (node.dtype != DType::kI64) counted = op_.Cast(counted, onnx::Args{{"to", node.dtype}});
  define(node, counted, {node.out[0]});
}

// Rows and columns in the order that is wanted: the other one has the opposite diagonal.
void Emitter::emit_eye(const Node& node) {
  const Labels natural{node.role("r")[0], node.role("c")[0]};
  const Labels order = wanted_order(node, LabelSet(node.sizes.size(), natural)).value_or(natural);
  const auto diagonal = node.get<std::int64_t>("diagonal");
  Dims shape;
  for (Label label : order) shape.push_back(node.sizes[static_cast<std::size_t>(label)]);
  const bool is_whole = node.dtype == DType::kI32 || node.dtype == DType::kI64;
  const DType dtype = node.dtype == DType::kF64 || is_whole ? node.dtype : DType::kF32;
  const Value zeros = op_.call_with_shape("ConstantOfShape", {shapes_.shape(shape)}, {}, shape);
  const Value ones = op_.EyeLike(
      zeros, onnx::Args{{"dtype", dtype}, {"k", order == natural ? diagonal : -diagonal}});
  define(node, dtype == node.dtype ? ones : op_.Cast(ones, onnx::Args{{"to", node.dtype}}),
         {{order[0]}, {order[1]}});
}

void Emitter::emit_pick(const Node& node) {
  const Edge& edge = node.edges[0];
  const Label along = node.role("p")[0];
  Arrangement best;
  double best_price = std::numeric_limits<double>::infinity();
  for (const Arrangement& seen : arrangements(edge, node.sizes)) {
    const Labels& dim = seen[dim_with(seen, along)];
    // A strided pick of the innermost label needs a static stride and end.
    const bool strided = dim.size() > 1 && dim.back() == along &&
                         node.sizes[static_cast<std::size_t>(along)].is_static() &&
                         rest_of(dim, along, node.sizes).is_static();
    Arrangement candidate = dim[0] == along || strided ? seen : split_before(seen, along);
    const double cost =
        price(edge, node.sizes, candidate) + regret(node, without(candidate, along));
    if (cost < best_price) best_price = cost, best = std::move(candidate);
  }
  const Value x = bring(edge, node.sizes, best);
  const std::size_t dim_index = dim_with(best, along);
  const Labels dim = best[dim_index];
  const auto physical = static_cast<std::int64_t>(dim_index);
  const Dim rest = rest_of(dim, along, node.sizes),
            count = node.sizes[static_cast<std::size_t>(along)];
  const std::int64_t k = pick_index(node);
  const bool is_joined = std::ranges::any_of(facts_.users(&node), [](const Facts::User& user) {
    return user.node && user.node->kind == Kind::kConcat;
  });
  if (dim.size() == 1 && is_joined) {  // a Concat wants the unit dim
    const Value unit = op_.Slice(x, op_.ints({k}), op_.ints({k + 1}), op_.ints({physical}));
    return define(node, unit, renamed(best, along, std::nullopt));
  }
  Value result;
  if (dim.size() == 1) {
    result =
        op_.Gather(x, op_.constant(int_scalar(DType::kI64, k)), onnx::Args{{"axis", physical}});
  } else if (dim[0] != along) {
    result = op_.Slice(x, op_.ints({k}), op_.ints({(rest * count).value()}), op_.ints({physical}),
                       op_.ints({count.value()}));
  } else if (rest.is_static() && picks_all(facts_, node)) {
    const Ints parts(static_cast<std::size_t>(count.value()), rest.value());
    result = op_.call_n("Split", {x, op_.ints(parts)}, parts.size(),
                        {{"axis", physical}})[static_cast<std::size_t>(k)];
  } else {
    Dims shape = x.shape();
    shape[dim_index] = rest;
    result = op_.call_with_shape(
        "Slice", {x, shapes_.dim(rest * k), shapes_.dim(rest * (k + 1)), op_.ints({physical})}, {},
        shape);
  }
  define(node, result, without(best, along));
}

Value Emitter::end_of(const Node& slice, const Dim& rest) {
  const Part part = part_of(slice);
  const Dim& whole = slice.sizes[static_cast<std::size_t>(slice.role("i")[0])];
  const bool reaches_end = less_equal(whole, part.limit + part.stride - 1) == Truth::kYes;
  if (part.limit.is_static() || !reaches_end) return shapes_.dim(part.limit * rest);
  return op_.ints({std::numeric_limits<std::int64_t>::max()});
}

void Emitter::emit_slice(const Node& node) {
  const Edge& edge = node.edges[0];
  const Label from = node.role("i")[0];
  const Labels& target = node.role("o");
  const std::optional<Label> to = target.empty() ? std::nullopt : std::optional(target[0]);
  const Part part = part_of(node);
  Arrangement best;
  double best_price = std::numeric_limits<double>::infinity();
  for (const Arrangement& seen : arrangements(edge, node.sizes)) {
    Arrangement candidate = split_before(seen, from);
    if (part.stride != 1) candidate = with_label_alone(candidate, from);
    const double cost =
        price(edge, node.sizes, candidate) + regret(node, renamed(candidate, from, to));
    if (cost < best_price) best_price = cost, best = std::move(candidate);
  }
  const Value x = bring(edge, node.sizes, best);
  const std::size_t dim_index = dim_with(best, from);
  const auto physical = static_cast<std::int64_t>(dim_index);
  const Dim rest = rest_of(best[dim_index], from, node.sizes);
  Arrangement result = renamed(best, from, to);
  if (auto tiling = rest.is_static() ? tiling_of(facts_, node) : std::nullopt) {
    for (std::int64_t& size : tiling->sizes) size *= rest.value();
    const Values parts = op_.call_n("Split", {x, op_.ints(tiling->sizes)}, tiling->sizes.size(),
                                    {{"axis", physical}});
    return define(node, parts[tiling->mine], result);
  }
  Dims shape = x.shape();
  shape[dim_index] = to ? node.sizes[static_cast<std::size_t>(*to)] * rest : rest;
  Values in{x, shapes_.dim(part.start * rest), end_of(node, rest), op_.ints({physical})};
  if (part.stride != 1) in.push_back(op_.ints({part.stride}));
  define(node, op_.call_with_shape("Slice", in, {}, shape), result);
}

// Concat on the dim (p next): no Unsqueeze is needed when p lies in front of another label.
void Emitter::emit_stack(const Node& node) {
  const Label along = node.role("p")[0];
  const Labels out = axis::flatten(node.out);
  const Labels labels = axis::without(out, {along});
  const LabelSet all(node.sizes.size(), out);
  auto order = wanted_order(node, all);
  std::optional<Label> next;
  if (order) {
    auto at = std::ranges::find(*order, along) + 1;
    if (at != order->end()) next = *at;
    order = axis::without(*order, {along});
  } else if (!labels.empty()) {
    next = labels.back();
  }
  Arrangement arrangement = aligned(node, labels, order);
  std::size_t dim_index = arrangement.size();
  if (next) {
    arrangement = split_before(arrangement, *next);
    dim_index = dim_with(arrangement, *next);
  } else {
    arrangement.emplace_back();
  }
  Values parts;
  for (const Edge& edge : node.edges) parts.push_back(bring_full(edge, node.sizes, arrangement));
  Arrangement result = arrangement;
  result[dim_index].insert(result[dim_index].begin(), along);
  define(node, op_.call("Concat", parts, {{"axis", static_cast<std::int64_t>(dim_index)}}), result);
}

void Emitter::emit_concat(const Node& node) {
  const Label to = node.role("o")[0];
  const Labels out = axis::flatten(node.out);
  const LabelSet all(node.sizes.size(), out);
  auto piece = [&](std::size_t j) -> std::optional<Label> {
    const Labels& label = node.role("i" + std::to_string(j));
    return label.empty() ? std::nullopt : std::optional(label[0]);
  };
  // The result's arrangement as operand j sees it.
  auto seen_by = [&](const Arrangement& arrangement, std::size_t j) {
    Arrangement result;
    for (const Labels& dim : arrangement) {
      Labels& labels = result.emplace_back();
      for (Label label : dim) {
        if (label != to) labels.push_back(label);
        if (label == to && piece(j)) labels.push_back(*piece(j));
      }
    }
    return result;
  };
  std::vector<Arrangement> candidates;
  for (std::size_t j = 0; j < node.edges.size(); ++j) {
    if (is_constant(node.edges[j])) continue;
    for (Arrangement seen : arrangements(node.edges[j], node.sizes)) {
      if (piece(j)) seen = renamed(std::move(seen), *piece(j), to);
      const LabelSet have(node.sizes.size(), seen);
      if (have.has_all(out)) {
        candidates.push_back(std::move(seen));
      } else if (!have.has(to) &&
                 have.drop(out).size() == 1) {  // a piece of size 1: its unit dim, or a new one
        auto unit = std::ranges::find_if(seen, [](const Labels& dim) { return dim.empty(); });
        if (unit == seen.end()) unit = seen.insert(seen.begin(), Labels{});
        unit->push_back(to);
        candidates.push_back(std::move(seen));
      }
    }
  }
  if (auto wish = wanted(node, all)) {
    Arrangement singles;
    for (Label label : axis::flatten(*wish)) singles.push_back({label});
    candidates.push_back(hint(node)->order_only ? std::move(singles) : std::move(*wish));
  }
  if (candidates.empty()) {
    Arrangement& singles = candidates.emplace_back();
    for (Label label : out) singles.push_back({label});
  }
  Arrangement best;
  double best_price = std::numeric_limits<double>::infinity();
  for (const Arrangement& seen : candidates) {
    Arrangement candidate = split_before(seen, to);
    double cost = regret(node, candidate);
    for (std::size_t j = 0; j < node.edges.size(); ++j) {
      if (is_constant(node.edges[j])) continue;
      const LabelSet mine(node.sizes.size(), node.edges[j].axes);
      const Arrangement theirs = seen_by(candidate, j);
      Arrangement present;
      for (const Labels& dim : theirs) present.push_back(mine.keep(dim));
      cost += price(node.edges[j], node.sizes, present);
      if (!mine.has_all(axis::flatten(theirs))) cost += kExpandPrice;
    }
    if (cost < best_price) best_price = cost, best = std::move(candidate);
  }
  Values parts;
  for (std::size_t j = 0; j < node.edges.size(); ++j) {
    parts.push_back(bring_full(node.edges[j], node.sizes, seen_by(best, j)));
  }
  const auto physical = static_cast<std::int64_t>(dim_with(best, to));
  define(node, op_.call("Concat", parts, {{"axis", physical}}), best);
}

namespace {

// Pieces of the operand as pieces of the result: each lies inside one label, which has a piece on
// either side. False when some piece does not.
bool rename_pieces(Layout& layout, const Labels& labels, const Pieces& from, const Pieces& to) {
  auto rename = [&](Piece& piece) {
    return std::ranges::any_of(labels, [&](Label label) {
      const Piece& whole = from[static_cast<std::size_t>(label)];
      const Piece& target = to[static_cast<std::size_t>(label)];
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
void Emitter::emit_relayout(const Node& node) {
  const Edge& edge = node.edges[0];
  const Labels out = axis::flatten(node.out);
  const LabelSet mine(node.sizes.size(), edge.axes);
  if (!mine.has_all(out) || is_constant(edge)) {
    Arrangement each;
    for (const Labels& labels : node.out) each.push_back(labels);
    if (!is_constant(edge)) return define(node, bring_full(edge, node.sizes, each), each);
    Arrangement units;  // a broadcast too large to be stored
    Arrangement singles;
    Dims shape;
    for (Label label : out) {
      units.push_back(mine.has(label) ? Labels{label} : Labels{});
      singles.push_back({label});
      shape.push_back(node.sizes[static_cast<std::size_t>(label)]);
    }
    const Value small = constant(edge, node.sizes, units, false);
    return define(node, shapes_.expand(small, shape), singles);
  }
  const auto from = label_pieces(edge.axes, node.sizes), to = label_pieces(node.out, node.sizes);
  std::vector<Variant> seen;
  for (const Variant& variant : variants(edge.node)) {
    Layout layout = variant.layout, labels;
    for (Label label : out) labels.push_back({from[static_cast<std::size_t>(label)]});
    if (cut(layout, labels) && rename_pieces(layout, out, from, to)) {
      seen.push_back({variant.value, merged(layout)});
    }
  }
  if (seen.empty()) {  // the operand lies in other factors than the result has
    const Arrangement each = axis::axis_each(out);
    return define(node, bring(edge, node.sizes, each), each);
  }
  variants(&node) = std::move(seen);
}

}  // namespace jaxport::lower

// SPDX-License-Identifier: Apache-2.0
// Constructors that take values apart and join them: pick, stack, slice, concat.
#include <algorithm>
#include <utility>

#include "axis/graph/expr.h"
#include "axis/graph/parts.h"
#include "axis/graph/pattern.h"
#include "axis/graph/store.h"

namespace jaxport::axis {
namespace {

Use rename(const Use& use, Label from, Label to) {
  Substitution renaming;
  renaming.set(from, {to});
  return renaming(use);
}

// True when `label` is the whole axis of use.node that runs over the label `of_node` of it.
bool is_axis(const Use& use, const Labels& of_node, Label label) {
  for (std::size_t axis = 0; axis < use.labels.size(); ++axis) {
    if (use.labels[axis] == Labels{label}) return use.node->out[axis] == of_node;
  }
  return false;
}

// A range of one label of a value; without a label the whole value.
struct Range {
  Use base;
  std::optional<Label> along;
  Dim start, limit;
};

// An operand of a concat as a range of a larger value; `piece` is the label that is joined.
std::optional<Range> as_range(Graph& graph, const Use& use, std::optional<Label> piece) {
  auto part = part_of(graph, use, piece ? Labels{*piece} : Labels{});
  if (!part) return std::nullopt;
  return Range{std::move(part->base), part->whole, part->start, part->limit};
}

bool continues(const Graph& graph, const Range& first, const Range& second) {
  return first.limit == second.start && graph.size(*first.along) == graph.size(*second.along) &&
         first.base == rename(second.base, *second.along, *first.along);
}

struct ConcatPart {
  Use use;
  std::optional<Label> label;
};

ConcatPart range_piece(Graph& graph, const Range& range) {
  const Label to = graph.label(range.limit - range.start);
  return {graph.slice(range.base, *range.along, to, range.start, range.limit, 1), to};
}

// Neighbours that are neighbours in one larger value become one piece.
std::vector<ConcatPart> join_neighbours(Graph& graph, std::vector<ConcatPart> pieces) {
  std::vector<ConcatPart> joined;
  std::optional<Range> last;
  for (ConcatPart& piece : pieces) {
    auto range = as_range(graph, piece.use, piece.label);
    if (last && range && continues(graph, *last, *range)) {
      last->limit = range->limit;
      joined.back() = range_piece(graph, *last);
    } else {
      last = std::move(range);
      joined.push_back(std::move(piece));
    }
  }
  return joined;
}

// The range in the operand of a concat that holds all of it; nullopt when it lies in several.
std::optional<Range> in_piece(Graph& graph, const Range& range) {
  const Node& concat = *range.base.node;
  const auto pieces = Concat::of(concat).piece_labels();
  Dim offset = 0;
  for (std::size_t j = 0; j < pieces.size(); ++j) {
    const Dim end = offset + (pieces[j] ? concat.sizes[*pieces[j]] : 1);
    if (less_equal(offset, range.start) == Truth::kYes &&
        less_equal(range.limit, end) == Truth::kYes) {
      const auto context = graph.context(range.base);
      const auto along = pieces[j] ? std::optional(context[*pieces[j]][0]) : std::nullopt;
      return Range{graph.child(range.base, j), along, range.start - offset, range.limit - offset};
    }
    offset = end;
  }
  return std::nullopt;
}

// What a slice takes a range from; nullopt when the slice takes another range.
std::optional<Range> in_sliced(Graph& graph, const Range& range) {
  const Slice slice = Slice::of(graph, range.base);
  if (slice.stride != 1 || slice.to != Labels{*range.along}) return std::nullopt;
  return Range{graph.child(range.base, 0), slice.from[0], range.start + slice.start,
               range.limit + slice.start};
}

// The same elements further down: in the piece of a concat, in what a slice is taken from.
Range narrowed(Graph& graph, Range range) {
  while (range.along) {
    const Node& node = *range.base.node;
    std::optional<Range> below;
    if (node.kind == Kind::kConcat && is_axis(range.base, Concat::target(node), *range.along)) {
      below = in_piece(graph, range);
    } else if (node.kind == Kind::kSlice) {
      below = in_sliced(graph, range);
    }
    if (!below) break;
    range = *std::move(below);
  }
  return range;
}

}  // namespace

Use Graph::pick(Use operand, Label along, std::int64_t index) {
  if (!contains(operand.flat(), along)) return operand;
  Range range = narrowed(*this, {std::move(operand), along, index, index + 1});
  if (!range.along) return range.base;
  if (!range.start.is_static()) {
    return slice(std::move(range.base), *range.along, std::nullopt, range.start, range.limit, 1);
  }
  operand = std::move(range.base);
  along = *range.along;
  index = range.start.value();
  const Node& node = *operand.node;
  if (node.kind == Kind::kStack && is_axis(operand, Stack::of(node).along, along)) {
    return child(operand, static_cast<std::size_t>(index));
  }
  if (node.kind == Kind::kIota && operand.labels[0].size() == 1) {
    return scalar(static_cast<double>(index), node.dtype);
  }
  impl_->mark_picked(operand.node);
  const Labels kept = without(operand.flat(), {along});
  const DType dtype = node.dtype;
  auto [roles, attrs] = stored(Pick{{along}, index});
  return impl_->make({.kind = Kind::kPick,
                      .name = "pick",
                      .dtype = dtype,
                      .operands = {std::move(operand)},
                      .out = axis_each(kept),
                      .roles = std::move(roles),
                      .attrs = std::move(attrs)});
}

namespace {

// Picks of one value at k, k + s, k + 2 s, … side by side: a slice of it over `along`. Empty when
// the operands are no such picks.
Use slice_of_picks(Graph& graph, const std::vector<Use>& operands, Label along) {
  Use base;
  Label picked = 0;
  Ints places;
  for (const Use& operand : operands) {
    if (operand.node->kind != Kind::kPick) return {};
    const Pick pick = Pick::of(graph, operand);
    if (!base) picked = pick.along[0];
    Use value = rename(graph.child(operand, 0), pick.along[0], picked);
    if (base && !(base == value)) return {};
    base = std::move(value);
    places.push_back(pick.index);
  }
  const std::int64_t stride = places.size() > 1 ? places[1] - places[0] : 1;
  if (stride < 1) return {};
  for (std::size_t i = 1; i < places.size(); ++i) {
    if (places[i] - places[i - 1] != stride) return {};
  }
  return graph.slice(base, picked, along, places.front(), places.back() + 1, stride);
}

constexpr int kDeepestJoin = 4;

// The values side by side along a new label without a stack: parts of one value that come together
// again, or the same function of such parts, as in sums of complex numbers. Empty where one is
// needed.
Use side_by_side(Graph& graph, const std::vector<Use>& parts, Label along,
                 int depth = kDeepestJoin) {
  const Use& first = parts[0];
  const auto is_first = [&](const Use& part) { return part == first; };
  if (std::ranges::all_of(parts, is_first)) return first;
  if (Use slice = slice_of_picks(graph, parts, along)) return slice;
  const Node& node = *first.node;
  const auto is_alike = [&](const Use& part) {
    const Node& other = *part.node;
    return other.is(Kind::kPointwise, node.name) && other.dtype == node.dtype &&
           other.attrs == node.attrs && other.edges.size() == node.edges.size();
  };
  if (depth == 0 || !std::ranges::all_of(parts, is_alike)) return {};
  std::vector<Use> operands;
  for (std::size_t i = 0; i < node.edges.size(); ++i) {
    std::vector<Use> children;
    for (const Use& part : parts) children.push_back(graph.child(part, i));
    operands.push_back(side_by_side(graph, children, along, depth - 1));
    if (!operands.back()) return {};
  }
  return graph.pointwise(node.name, std::move(operands), node.dtype, node.attrs);
}

}  // namespace

Use Graph::stack(std::vector<Use> operands, Label along) {
  if (Use value = side_by_side(*this, operands, along)) return value;
  Labels labels{along};
  for (const Use& use : operands) add_new(labels, use.flat());
  const DType dtype = operands[0].node->dtype;
  return impl_->make({.kind = Kind::kStack,
                      .name = "stack",
                      .dtype = dtype,
                      .operands = std::move(operands),
                      .out = axis_each(labels),
                      .roles = stored(Stack{{along}}).roles});
}

Use Graph::slice(Use operand, Label from, std::optional<Label> to, Dim start, Dim limit,
                 std::int64_t stride) {
  if (!contains(operand.flat(), from)) return operand;
  if (!to && start.is_static()) return pick(std::move(operand), from, start.value());
  Range range = narrowed(*this, {std::move(operand), from, start, limit});
  if (!range.along) return range.base;
  operand = std::move(range.base);
  from = *range.along;
  start = range.start;
  limit = range.limit;
  const Node& node = *operand.node;
  if (to && stride == 1 && start == Dim(0) && limit == size(from)) {
    return rename(operand, from, *to);
  }
  if (to && node.kind == Kind::kIota && operand.labels[0].size() == 1 && start.is_static()) {
    return iota(*to, node.dtype) * static_cast<double>(stride) + static_cast<double>(start.value());
  }
  Labels out = without(operand.flat(), {from});
  if (to) out.push_back(*to);
  const DType dtype = node.dtype;
  auto [roles, attrs] = stored(Slice{{from}, to ? Labels{*to} : Labels{}, start, limit, stride});
  return impl_->make({.kind = Kind::kSlice,
                      .name = "slice",
                      .dtype = dtype,
                      .operands = {std::move(operand)},
                      .out = axis_each(out),
                      .roles = std::move(roles),
                      .attrs = std::move(attrs)});
}

namespace {

// A piece that does not vary along its joined label has a real axis there nevertheless.
ConcatPart with_axis(Graph& graph, ConcatPart piece) {
  if (!piece.label || contains(piece.use.flat(), *piece.label)) return piece;
  Pattern axes = piece.use.labels;
  axes.push_back({*piece.label});
  piece.use = graph.relayout(std::move(piece.use), axes);
  piece.use.labels = std::move(axes);
  return piece;
}

}  // namespace

Use Graph::concat(std::vector<Use> operands, const std::vector<std::optional<Label>>& pieces,
                  Label to) {
  std::vector<ConcatPart> parts;
  for (std::size_t j = 0; j < operands.size(); ++j) {
    parts.push_back(with_axis(*this, {std::move(operands[j]), pieces[j]}));
  }
  parts = join_neighbours(*this, std::move(parts));
  if (parts.size() == 1 && parts[0].label && size(*parts[0].label) == size(to)) {
    return rename(parts[0].use, *parts[0].label, to);
  }
  NodeDraft draft{.kind = Kind::kConcat,
                  .name = "concat",
                  .dtype = parts[0].use.node->dtype,
                  .operands = {},
                  .out = {}};
  Concat concat{{}, {to}};
  Labels out{to};
  for (std::size_t j = 0; j < parts.size(); ++j) {
    Use use = std::move(parts[j].use);
    Labels joined;
    if (auto& piece = parts[j].label) {
      // A label of its own for each piece, whatever the pieces were called.
      joined = {label(size(*piece))};
      use = rename(use, *piece, joined[0]);
    }
    concat.pieces.push_back(joined);
    add_new(out, without(use.flat(), joined));
    draft.operands.push_back(std::move(use));
  }
  draft.roles = stored(concat).roles;
  draft.out = axis_each(out);
  return impl_->make(std::move(draft));
}

}  // namespace jaxport::axis

// SPDX-License-Identifier: Apache-2.0
// Split, Concat and Slice that cancel.
#include <algorithm>
#include <limits>

#include "pass/local.h"
#include "pass/pass.h"

namespace jaxport::pass {
namespace {

using onnx::Node;
using onnx::ValueId;

std::optional<std::size_t> joined_axis(const Local& local, const Node& node, ValueId tensor) {
  const Dims* shape = local.shape(tensor);
  if (shape == nullptr) return std::nullopt;
  return from_front(int_attribute(node, "axis", 0), shape->size());
}

// Concat(Split(x)) of all parts in order.
bool joins_what_was_split(Local& local, Node& node) {
  const Node* split = local.producer(node.in[0], "Split");
  if (split == nullptr || split->out != node.in) return false;
  const auto axis = joined_axis(local, node, node.in[0]);
  return axis && axis == joined_axis(local, *split, split->in[0]) &&
         local.same_type(split->in[0], node.out[0]) && local.replace(node, split->in[0]);
}

// Split(Concat(a, b)) into parts as large as a and b.
bool splits_what_was_joined(Local& local, Node& node) {
  const Node* concat = local.producer(node.in[0], "Concat");
  if (concat == nullptr || concat->in.size() != node.out.size()) return false;
  const auto axis = joined_axis(local, *concat, node.in[0]);
  if (!axis || axis != joined_axis(local, node, node.in[0])) return false;
  for (std::size_t i = 0; i < node.out.size(); ++i) {
    if (node.out[i] != onnx::kAbsent && !local.same_type(concat->in[i], node.out[i])) return false;
  }
  return local.replace(node, concat->in);
}

// --- slices

// One axis of static size, cut with step 1.
struct AxisCut {
  std::size_t axis;
  std::int64_t begin, end, size;
};

std::optional<AxisCut> axis_cut_of(const Local& local, const Node& slice) {
  const Dims* shape = local.shape(slice.in[0]);
  const bool has_axes = slice.in.size() > 3 && slice.in[3] != onnx::kAbsent;
  const bool has_steps = slice.in.size() > 4 && slice.in[4] != onnx::kAbsent;
  const auto starts = local.ints(slice.in[1]), ends = local.ints(slice.in[2]);
  const auto axes = has_axes ? local.ints(slice.in[3]) : Ints{0};
  const auto steps = has_steps ? local.ints(slice.in[4]) : Ints{1};
  if (!shape || !starts || !ends || !axes || steps != Ints{1}) return std::nullopt;
  if (starts->size() != 1 || ends->size() != 1 || axes->size() != 1) return std::nullopt;
  const auto axis = from_front(axes->front(), shape->size());
  if (!axis || !(*shape)[*axis].is_static()) return std::nullopt;
  const std::int64_t size = (*shape)[*axis].value();
  const auto place = [size](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size);
  };
  const std::int64_t begin = place(starts->front());
  return AxisCut{*axis, begin, std::max(begin, place(ends->front())), size};
}

void slice_from(Local& local, Node& node, ValueId source, std::size_t axis, std::int64_t begin,
                std::int64_t end) {
  node.in = {source, local.add_constant(int64s(Ints{begin})), local.add_constant(int64s(Ints{end})),
             local.add_constant(int64s(Ints{static_cast<std::int64_t>(axis)}))};
}

// A Slice of a Slice along the same axis.
bool slices_once(Local& local, Node& node) {
  const Node* inner = local.producer(node.in[0], "Slice");
  if (inner == nullptr) return false;
  const auto first = axis_cut_of(local, *inner), second = axis_cut_of(local, node);
  if (!first || !second || first->axis != second->axis) return false;
  slice_from(local, node, inner->in[0], first->axis, first->begin + second->begin,
             first->begin + second->end);
  return true;
}

// A Slice of a Concat that takes elements of one part.
bool slices_one_part(Local& local, Node& node) {
  const Node* concat = local.producer(node.in[0], "Concat");
  const auto cut = concat ? axis_cut_of(local, node) : std::nullopt;
  if (!cut || joined_axis(local, *concat, node.in[0]) != cut->axis) return false;
  std::int64_t begin = 0;
  for (ValueId part : concat->in) {
    const Dims* shape = local.shape(part);
    if (shape == nullptr || !(*shape)[cut->axis].is_static()) return false;
    const std::int64_t end = begin + (*shape)[cut->axis].value();
    if (cut->begin >= begin && cut->end <= end && cut->begin < cut->end) {
      if (cut->begin == begin && cut->end == end) return local.replace(node, part);
      slice_from(local, node, part, cut->axis, cut->begin - begin, cut->end - begin);
      return true;
    }
    begin = end;
  }
  return false;
}

// Neighbouring slices of one tensor that are joined again.
bool joins_neighbours(Local& local, Node& node) {
  const auto axis = joined_axis(local, node, node.out[0]);
  if (!axis) return false;
  ValueId source = onnx::kAbsent;
  std::int64_t begin = 0, end = 0, size = 0;
  for (std::size_t i = 0; i < node.in.size(); ++i) {
    const Node* slice = local.producer(node.in[i], "Slice");
    const auto cut = slice ? axis_cut_of(local, *slice) : std::nullopt;
    if (!cut || cut->axis != *axis) return false;
    if (i == 0) {
      source = slice->in[0];
      begin = cut->begin;
    } else if (slice->in[0] != source || cut->begin != end) {
      return false;
    }
    end = cut->end;
    size = cut->size;
  }
  if (begin == 0 && end == size) {
    return local.same_type(source, node.out[0]) && local.replace(node, source);
  }
  node.op = "Slice";
  node.attrs.clear();
  slice_from(local, node, source, *axis, begin, end);
  return true;
}

constexpr LocalRule kPieces[] = {
    {"Concat", joins_what_was_split}, {"Concat", joins_neighbours},      {"Slice", slices_once},
    {"Slice", slices_one_part},       {"Split", splits_what_was_joined},
};
static_assert(std::ranges::is_sorted(kPieces, {}, &LocalRule::op));

}  // namespace

std::size_t cancel_pieces(onnx::Model& model) { return apply_rules(model, kPieces); }

}  // namespace jaxport::pass

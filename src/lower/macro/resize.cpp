// SPDX-License-Identifier: Apache-2.0
// resize along one label or two, in the layout that costs least.
//
// Mode nearest takes any layout. Of the others ONNX Runtime takes two dims [H][W], and four as
// [..][..][H][W] or [..][H][W][channels]; for three it needs twice the time, or fails in mode
// cubic.
#include <algorithm>

#include "axis/graph/pattern.h"
#include "lower/emit/emission.h"
#include "lower/macro/macro.h"
#include "raise/engine/ops.h"

namespace jaxport::lower {
namespace {

using axis::Edge;
using axis::Label;
using axis::Labels;
using axis::Node;
using raise::ResizeOp;
using Axes = std::vector<ResizeOp::Axis>;

bool is_resized(const Axes& axes, Label label) {
  return std::ranges::find(axes, label, &ResizeOp::Axis::from) != axes.end();
}

// Every label that is resized has a dim of its own.
Arrangement split_alone(const Arrangement& dims, const Axes& axes) {
  Arrangement result;
  for (const Labels& dim : dims) {
    bool is_open = false;
    for (Label label : dim) {
      const bool is_alone = is_resized(axes, label);
      if (!is_open || is_alone) result.emplace_back();
      result.back().push_back(label);
      is_open = !is_alone;
    }
    if (dim.empty()) result.emplace_back();
  }
  return result;
}

// The same as images that interpolations take.
Arrangement as_images(const Arrangement& dims, const Axes& axes) {
  Arrangement rows, resized, after;
  for (const Labels& dim : dims) {
    if (dim.empty()) continue;
    if (!is_resized(axes, dim[0])) {
      (resized.empty() ? rows : after).push_back(dim);
      continue;
    }
    resized.push_back(dim);
    rows.insert(rows.end(), after.begin(), after.end());
    after.clear();
  }
  if (!after.empty()) {
    Arrangement images{axis::flatten(rows), resized[0]};
    images.push_back(resized.size() > 1 ? resized[1] : Labels{});
    images.push_back(axis::flatten(after));
    return images;
  }
  Arrangement images = rows;
  images.insert(images.end(), resized.begin(), resized.end());
  while (images.size() > 4) {
    images[1].insert(images[1].begin(), images[0].begin(), images[0].end());
    images.erase(images.begin());
  }
  if (images.size() % 2 == 1) images.insert(images.begin(), Labels{});
  return images;
}

Arrangement after_resize(Arrangement dims, const Axes& axes) {
  for (const ResizeOp::Axis& axis : axes) {
    for (Labels& dim : dims) std::ranges::replace(dim, axis.from, axis.to);
  }
  return dims;
}

onnx::Args attributes(const ResizeOp& op, const Dims& sizes) {
  const auto size = [&](Label label) { return sizes[label].value(); };
  if (op.is_nearest()) {
    // ONNX Runtime has a fast way for twice the size, in this spelling.
    const bool repeats = std::ranges::all_of(
        op.axes, [&](const ResizeOp::Axis& axis) { return size(axis.to) % size(axis.from) == 0; });
    return {{"mode", op.mode},
            {"coordinate_transformation_mode", repeats ? "asymmetric" : "half_pixel"},
            {"nearest_mode", repeats ? "floor" : "round_prefer_ceil"}};
  }
  onnx::Args args{{"mode", op.mode}, {"coordinate_transformation_mode", "half_pixel"}};
  const bool antialias = op.is_cubic() ? op.antialias : !op.plain;
  if (antialias) args.emplace_back("antialias", 1);
  if (antialias || op.is_cubic()) args.emplace_back("exclude_outside", 1);
  if (op.is_cubic()) args.emplace_back("cubic_coeff_a", -0.5);
  return args;
}

void emit_resize(Emission& e, const Node& node) {
  const auto op = raise::read<ResizeOp>(node);
  const Edge from = edge(op.x);
  std::vector<Arrangement> candidates = e.values.arrangements(from, node.sizes);
  for (Arrangement& candidate : candidates) {
    candidate = split_alone(candidate, op.axes);
    if (!op.is_nearest()) candidate = as_images(candidate, op.axes);
  }
  const Arrangement best = cheapest_of(std::move(candidates), [&](const Arrangement& candidate) {
    return e.values.price(from, node.sizes, candidate) +
           regret(e, node, after_resize(candidate, op.axes));
  });
  const Value x = e.values.bring(from, node.sizes, best);
  Ints dims, sizes;
  for (std::size_t i = 0; i < best.size(); ++i) {
    for (const ResizeOp::Axis& axis : op.axes) {
      if (best[i] != Labels{axis.from}) continue;
      dims.push_back(static_cast<std::int64_t>(i));
      sizes.push_back(node.sizes[axis.to].value());
    }
  }
  onnx::Args args = attributes(op, node.sizes);
  args.emplace_back("axes", dims);
  e.values.define(node, e.op.call("Resize", {x, {}, {}, e.op.ints(sizes)}, std::move(args)),
                  after_resize(best, op.axes));
}

MaybeWish resize_wish(const Node& node, std::size_t i, const MaybeWish& own) {
  if (!own || i != 0) return std::nullopt;
  Wish wish = *own;
  for (const ResizeOp::Axis& axis : raise::read<ResizeOp>(node).axes) {
    for (Labels& dim : wish.dims) std::ranges::replace(dim, axis.to, axis.from);
  }
  return wish;
}

// Where the target takes longer for the node than for its contractions.
bool is_slow(const Node& node, const Preferences& preferences) {
  const auto op = raise::read<ResizeOp>(node);
  if (!op.is_cubic() || !preferences.has_slow_cubic_resize) return false;
  if (!op.antialias) return true;
  Dim length = 0, elements = 1;
  for (const ResizeOp::Axis& axis : op.axes) {
    length = length + node.sizes[axis.from];
  }
  for (std::size_t axis = 0; axis < node.out.size(); ++axis) {
    if (node.axis_size(axis).is_static()) elements = elements * node.axis_size(axis);
  }
  return length.value() < Preferences::kShortCubicAxes &&
         elements.value() > Preferences::kFewCubicElements;
}

// Whether the target has the mode, with the setting of `antialias` that gives the weights.
bool is_right(const Node& node, const Preferences& preferences) {
  const auto op = raise::read<ResizeOp>(node);
  return (op.plain || !preferences.lacks_antialias) &&
         (op.is_nearest() || !preferences.has_wrong_interpolation);
}

// Integers are copied; no other dtype can stand in for them.
bool has_resize(const Node& node, const Options& options) {
  constexpr int kSinceAxes = 18;
  const DType dtype = is_float(node.dtype) && node.dtype != DType::kF64 ? DType::kF32 : node.dtype;
  const Preferences& preferences = options.preferences();
  return !is_slow(node, preferences) && is_right(node, preferences) &&
         options.opset >= kSinceAxes &&
         target::runs(options.target, "Resize", options.opset, dtype);
}

}  // namespace

MacroRow resize_macro() {
  return {.name = ResizeOp::kName,
          .is_available = has_resize,
          .emit = emit_resize,
          .wish = resize_wish,
          .treats_labels_alike = true};
}

}  // namespace jaxport::lower

// SPDX-License-Identifier: Apache-2.0
// resize along one label or two, in the layout that costs least.
//
// Mode nearest takes any layout. Of the others ONNX Runtime takes two dims [H][W], and four as
// [..][..][H][W] or [..][H][W][channels]; for three it needs twice the time, or fails in mode
// cubic.
#include <algorithm>

#include "axis/pattern.h"
#include "lower/cheapest.h"
#include "lower/emission.h"
#include "lower/resize.h"
#include "raise/views.h"

namespace jaxport::lower {

using axis::Edge;
using axis::Label;
using axis::Labels;
using axis::Node;

std::vector<ResizeAxis> resize_axes(const axis::Node& node) {
  std::vector<ResizeAxis> axes{{node.role("i0")[0], node.role("o0")[0]}};
  if (!node.role("i1").empty()) axes.push_back({node.role("i1")[0], node.role("o1")[0]});
  return axes;
}

const std::string& resize_mode(const axis::Node& node) {
  return *node.attr("mode")->get_if<std::string>();
}

// Measured: cubic takes 2.6 ns for an element of the result, a contraction n / 45 ns for n
// elements along its axis. Without antialias it takes 6 to 16 times as long as the contractions.
bool is_slow_resize(const axis::Node& node) {
  constexpr std::int64_t kShort = 96, kFewElements = 4096;
  if (resize_mode(node) != "cubic") return false;
  if (!raise::flag(node, "antialias")) return true;
  Dim length = 0, elements = 1;
  for (const ResizeAxis& axis : resize_axes(node)) {
    length = length + node.sizes[static_cast<std::size_t>(axis.from)];
  }
  for (std::size_t axis = 0; axis < node.out.size(); ++axis) {
    if (node.axis_size(axis).is_static()) elements = elements * node.axis_size(axis);
  }
  return length.value() < kShort && elements.value() > kFewElements;
}

namespace {

bool is_one_of(const std::vector<ResizeAxis>& axes, Label label) {
  return std::ranges::find(axes, label, &ResizeAxis::from) != axes.end();
}

// Every label that is resized has a dim of its own.
Arrangement split_alone(const Arrangement& dims, const std::vector<ResizeAxis>& axes) {
  Arrangement result;
  for (const Labels& dim : dims) {
    bool is_open = false;
    for (Label label : dim) {
      const bool is_alone = is_one_of(axes, label);
      if (!is_open || is_alone) result.emplace_back();
      result.back().push_back(label);
      is_open = !is_alone;
    }
    if (dim.empty()) result.emplace_back();
  }
  return result;
}

// The same as images that interpolations take.
Arrangement as_images(const Arrangement& dims, const std::vector<ResizeAxis>& axes) {
  Arrangement rows, resized, after;
  for (const Labels& dim : dims) {
    if (dim.empty()) continue;
    if (!is_one_of(axes, dim[0])) {
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

Arrangement after_resize(Arrangement dims, const std::vector<ResizeAxis>& axes) {
  for (const ResizeAxis& axis : axes) {
    for (Labels& dim : dims) std::ranges::replace(dim, axis.from, axis.to);
  }
  return dims;
}

onnx::Args attributes(const axis::Node& node, const std::vector<ResizeAxis>& axes) {
  const auto size = [&](Label label) {
    return node.sizes[static_cast<std::size_t>(label)].value();
  };
  if (resize_mode(node) == "nearest") {
    // ONNX Runtime has a fast way for twice the size, in this spelling.
    const bool repeats = std::ranges::all_of(
        axes, [&](const ResizeAxis& axis) { return size(axis.to) % size(axis.from) == 0; });
    return {{"mode", "nearest"},
            {"coordinate_transformation_mode", repeats ? "asymmetric" : "half_pixel"},
            {"nearest_mode", repeats ? "floor" : "round_prefer_ceil"}};
  }
  onnx::Args args{{"mode", resize_mode(node)}, {"coordinate_transformation_mode", "half_pixel"}};
  const bool is_cubic = resize_mode(node) == "cubic";
  const bool antialias = is_cubic ? raise::flag(node, "antialias") : !raise::flag(node, "plain");
  if (antialias) args.emplace_back("antialias", 1);
  if (antialias || is_cubic) args.emplace_back("exclude_outside", 1);
  if (is_cubic) args.emplace_back("cubic_coeff_a", -0.5);
  return args;
}

}  // namespace

void emit_resize(Emission& e, const Node& node) {
  const Edge& edge = node.edges[0];
  const std::vector<ResizeAxis> axes = resize_axes(node);
  std::vector<Arrangement> candidates = e.values.arrangements(edge, node.sizes);
  for (Arrangement& candidate : candidates) {
    candidate = split_alone(candidate, axes);
    if (resize_mode(node) != "nearest") candidate = as_images(candidate, axes);
  }
  const Arrangement best = cheapest_of(std::move(candidates), [&](const Arrangement& candidate) {
    return e.values.price(edge, node.sizes, candidate) +
           regret(e, node, after_resize(candidate, axes));
  });
  const Value x = e.values.bring(edge, node.sizes, best);
  Dims shape = x.shape();
  Ints dims, sizes;
  for (std::size_t i = 0; i < best.size(); ++i) {
    for (const ResizeAxis& axis : axes) {
      if (best[i] != Labels{axis.from}) continue;
      dims.push_back(static_cast<std::int64_t>(i));
      shape[i] = node.sizes[static_cast<std::size_t>(axis.to)];
      sizes.push_back(shape[i].value());
    }
  }
  onnx::Args args = attributes(node, axes);
  args.emplace_back("axes", dims);
  e.values.define(node, e.op.call("Resize", {x, {}, {}, e.op.ints(sizes)}, std::move(args)),
                  after_resize(best, axes));
}

// --- repetitions: jnp.repeat, a broadcast along the end of each dim

std::optional<Ints> repeats_of(const Arrangement& to, const LabelSet& mine, const Dims& sizes) {
  constexpr std::int64_t kShortRow = 16;
  Ints times;
  Dim row = 1;  // what follows the last repetition
  for (const Labels& dim : to) {
    const Labels kept = mine.keep(dim);
    Dim count = 1, length = 1;
    for (Label label : dim) {
      Dim& factor = mine.has(label) ? length : count;
      factor = factor * sizes[static_cast<std::size_t>(label)];
    }
    const bool is_repeated = !count.is_one();
    const bool leads = std::equal(kept.begin(), kept.end(), dim.begin());
    if (is_repeated && (kept.empty() || !leads || !count.is_static())) return std::nullopt;
    times.push_back(is_repeated ? count.value() : 1);
    row = is_repeated ? Dim(1) : row * length;
  }
  const bool repeats = std::ranges::any_of(times, [](std::int64_t n) { return n > 1; });
  const bool is_short = row.is_static() && row.value() < kShortRow;
  return repeats && is_short ? std::optional(times) : std::nullopt;
}

// Resize takes scales without axes from opset 13 on.
bool has_repeat(const onnx::Builder& op, DType dtype) {
  constexpr DType kTypes[] = {DType::kF32, DType::kI32, DType::kI8, DType::kU8};
  return op.opset() >= 13 && std::ranges::find(kTypes, dtype) != std::ranges::end(kTypes);
}

Value repeated(onnx::Builder& op, const Value& x, const Ints& times) {
  Dims shape = x.shape();
  MutableTensor scales = allocate(DType::kF32, {std::ssize(times)});
  for (std::size_t i = 0; i < times.size(); ++i) {
    shape[i] = shape[i] * times[i];
    scales.as<float>()[i] = static_cast<float>(times[i]);
  }
  return op.call_with_shape("Resize", {x, {}, op.constant(scales.tensor)},
                            {{"mode", "nearest"},
                             {"coordinate_transformation_mode", "asymmetric"},
                             {"nearest_mode", "floor"}},
                            shape);
}

}  // namespace jaxport::lower

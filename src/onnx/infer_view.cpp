// SPDX-License-Identifier: Apache-2.0
// Ops that move, cut or repeat data.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "onnx/infer.h"

namespace jaxport::onnx {
namespace {

void transpose(Inference& n) {
  const Dims* in = n.shape(0);
  if (in == nullptr) return;
  Dims out(in->rbegin(), in->rend());
  if (const auto perm = n.attr_ints("perm")) {
    if (perm->size() != in->size()) n.fail("perm does not have one entry for each axis");
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = (*in)[n.from_front((*perm)[i], in->size())];
  }
  n.set(0, std::move(out));
}

// The size that -1 stands for, when it can be told.
std::optional<Dim> rest_of(const Dims& in, const Dims& others) {
  const Dim divisor = product(others);
  if (divisor.is_static() && divisor.value() == 0) return std::nullopt;
  const Dim total = product(in);
  if (const auto exact = exact_div(total, divisor)) return exact;
  return floordiv(total, divisor);
}

void reshape(Inference& n) {
  const Dims* in = n.shape(0);
  const auto target = n.ints(1);
  if (!target) return;
  const bool copies_zero = n.attr("allowzero", 0) == 0;
  Dims out, others;
  std::optional<std::size_t> rest;
  for (std::size_t i = 0; i < target->size(); ++i) {
    Dim size = (*target)[i];
    if (size == 0 && copies_zero) {
      if (in == nullptr) return;
      if (i >= in->size()) n.fail("a 0 in the shape has no axis to copy");
      size = (*in)[i];
    }
    if (size == -1) {
      rest = i;
    } else {
      others.push_back(size);
    }
    out.push_back(size);
  }
  if (rest) {
    const auto size = in != nullptr ? rest_of(*in, others) : std::nullopt;
    if (!size) return;
    out[*rest] = *size;
  }
  if (in != nullptr && equal(product(*in), product(out)) == Truth::kNo) {
    n.fail("the shapes have different numbers of elements");
  }
  n.set(0, std::move(out));
}

// Which of `rank` axes are listed.
std::vector<bool> marked(const Inference& n, const Ints& axes, std::size_t rank) {
  std::vector<bool> is_marked(rank, false);
  for (std::int64_t axis : axes) is_marked[n.from_front(axis, rank)] = true;
  return is_marked;
}

void squeeze(Inference& n) {
  const Dims* in = n.shape(0);
  if (in == nullptr) return;
  std::vector<bool> is_dropped;
  if (n.has(1)) {
    const auto axes = n.ints(1);
    if (!axes) return;
    is_dropped = marked(n, *axes, in->size());
  } else {
    // Without axes every unit dim goes, so all sizes must be known.
    for (const Dim& size : *in) {
      if (!size.is_static()) return;
      is_dropped.push_back(size.is_one());
    }
  }
  Dims out;
  for (std::size_t i = 0; i < in->size(); ++i) {
    if (!is_dropped[i])
      out.push_back((*in)[i]);
    else
      agreed(n, (*in)[i], 1);
  }
  n.set(0, std::move(out));
}

void unsqueeze(Inference& n) {
  const Dims* in = n.shape(0);
  const auto axes = n.ints(1);
  if (in == nullptr || !axes) return;
  const std::size_t rank = in->size() + axes->size();
  const std::vector<bool> is_new = marked(n, *axes, rank);
  Dims out;
  std::size_t next = 0;
  for (std::size_t i = 0; i < rank; ++i) {
    if (!is_new[i] && next == in->size()) n.fail("an axis is listed twice");
    out.push_back(is_new[i] ? Dim(1) : (*in)[next++]);
  }
  n.set(0, std::move(out));
}

void flatten(Inference& n) {
  const Dims* in = n.shape(0);
  if (in == nullptr) return;
  const auto rank = static_cast<std::int64_t>(in->size());
  std::int64_t axis = n.attr("axis", 1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank) n.fail("axis is out of range");
  n.set(0, {product(Dims(in->begin(), in->begin() + axis)),
            product(Dims(in->begin() + axis, in->end()))});
}

void expand(Inference& n) {
  const Dims* in = n.shape(0);
  const auto target = n.ints(1);
  if (in == nullptr || !target) return;
  n.set(0, broadcast(n, *in, Dims(target->begin(), target->end())));
}

void tile(Inference& n) {
  const Dims* in = n.shape(0);
  const auto repeats = n.ints(1);
  if (in == nullptr || !repeats) return;
  if (repeats->size() != in->size()) n.fail("repeats does not have one entry for each axis");
  Dims out;
  for (std::size_t i = 0; i < in->size(); ++i) out.push_back((*in)[i] * (*repeats)[i]);
  n.set(0, std::move(out));
}

void concat(Inference& n) {
  const Dims* first = n.shape(0);
  if (first == nullptr) return;
  const std::size_t axis = n.axis("axis", 0, first->size());
  Dims out = *first;
  for (std::size_t i = 1; i < n.input_count(); ++i) {
    const Dims* next = n.shape(i);
    if (next == nullptr) return;
    if (next->size() != out.size()) n.fail("the inputs have different ranks");
    for (std::size_t k = 0; k < out.size(); ++k) {
      out[k] = k == axis ? out[k] + (*next)[k] : agreed(n, out[k], (*next)[k]);
    }
  }
  n.set(0, std::move(out));
}

// The sizes of the parts along the split axis; nullopt when they are only known at run time.
std::optional<Dims> part_sizes(const Inference& n, const Dim& total) {
  const auto count = static_cast<std::int64_t>(n.output_count());
  if (n.has(1)) {
    const auto sizes = n.ints(1);
    if (!sizes) return std::nullopt;
    if (sizes->size() != n.output_count()) n.fail("split does not have one entry for each result");
    Dims parts(sizes->begin(), sizes->end());
    Dim sum = 0;
    for (const Dim& part : parts) sum = sum + part;
    agreed(n, sum, total);
    return parts;
  }
  // Equal parts, rounded up; the last one is what remains.
  const Dim part = floordiv(total + (count - 1), count);
  Dims parts(n.output_count(), part);
  parts.back() = total - part * (count - 1);
  return parts;
}

void split(Inference& n) {
  const Dims* in = n.shape(0);
  if (in == nullptr) return;
  const std::size_t axis = n.axis("axis", 0, in->size());
  const auto parts = part_sizes(n, (*in)[axis]);
  if (!parts) return;
  for (std::size_t i = 0; i < parts->size(); ++i) {
    Dims out = *in;
    out[axis] = (*parts)[i];
    n.set(i, std::move(out));
  }
}

// A bound of Slice as a position in [lo, hi]; bounds beyond any size mean the end of the axis.
Dim clamped(const Dim& size, std::int64_t bound, const Dim& lo, const Dim& hi) {
  constexpr std::int64_t kFar = std::numeric_limits<std::int32_t>::max();
  if (bound >= kFar) return hi;
  if (bound <= -kFar) return lo;
  const Dim position = bound < 0 ? size + bound : Dim(bound);
  return max(lo, min(position, hi));
}

// ceil((end - start) / step), after both were clamped the way ONNX does it.
Dim sliced_size(const Dim& size, std::int64_t start, std::int64_t end, std::int64_t step) {
  const bool forward = step > 0;
  const Dim lo = forward ? 0 : -1;
  const Dim hi = forward ? size : size - 1;
  const Dim first = clamped(size, start, 0, hi);
  const Dim last = clamped(size, end, lo, hi);
  const Dim length = forward ? last - first : first - last;
  const std::int64_t stride = forward ? step : -step;
  return max(0, floordiv(length + (stride - 1), stride));
}

void slice(Inference& n) {
  const Dims* in = n.shape(0);
  const auto starts = n.ints(1), ends = n.ints(2);
  if (in == nullptr || !starts || !ends) return;
  std::optional<Ints> axes = n.ints(3), steps = n.ints(4);
  if ((n.has(3) && !axes) || (n.has(4) && !steps)) return;
  if (!steps) steps = Ints(starts->size(), 1);
  if (!axes) {
    axes.emplace();
    for (std::size_t i = 0; i < starts->size(); ++i) axes->push_back(static_cast<std::int64_t>(i));
  }
  if (ends->size() != starts->size() || axes->size() != starts->size() ||
      steps->size() != starts->size()) {
    n.fail("starts, ends, axes and steps have different lengths");
  }
  Dims out = *in;
  for (std::size_t i = 0; i < axes->size(); ++i) {
    if ((*steps)[i] == 0) n.fail("a step is 0");
    Dim& size = out[n.from_front((*axes)[i], in->size())];
    size = sliced_size(size, (*starts)[i], (*ends)[i], (*steps)[i]);
  }
  n.set(0, std::move(out));
}

void pad(Inference& n) {
  const Dims* in = n.shape(0);
  const auto pads = n.ints(1);
  if (in == nullptr || !pads) return;
  std::optional<Ints> axes = n.ints(3);
  if (n.has(3) && !axes) return;
  if (!axes) {
    axes.emplace();
    for (std::size_t i = 0; i < in->size(); ++i) axes->push_back(static_cast<std::int64_t>(i));
  }
  if (pads->size() != 2 * axes->size()) n.fail("pads does not have two entries for each axis");
  Dims out = *in;
  for (std::size_t i = 0; i < axes->size(); ++i) {
    Dim& size = out[n.from_front((*axes)[i], in->size())];
    size = size + (*pads)[i] + (*pads)[axes->size() + i];
  }
  n.set(0, std::move(out));
}

std::int64_t block_size(const Inference& n) {
  const std::int64_t size = n.attr("blocksize", 1);
  if (size <= 0) n.fail("blocksize is not positive");
  return size;
}

void depth_to_space(Inference& n) {
  const Dims* in = n.shape(0);
  if (in == nullptr || in->size() != 4) return;
  const std::int64_t block = block_size(n);
  n.set(0, {(*in)[0], floordiv((*in)[1], block * block), (*in)[2] * block, (*in)[3] * block});
}

void space_to_depth(Inference& n) {
  const Dims* in = n.shape(0);
  if (in == nullptr || in->size() != 4) return;
  const std::int64_t block = block_size(n);
  n.set(0,
        {(*in)[0], (*in)[1] * block * block, floordiv((*in)[2], block), floordiv((*in)[3], block)});
}

constexpr InferenceRule kInferViewRules[] = {
    {"Concat", concat},
    {"DepthToSpace", depth_to_space},
    {"Expand", expand},
    {"Flatten", flatten},
    {"Pad", pad},
    {"Reshape", reshape},
    {"ReverseSequence", same_as_input},
    {"Slice", slice},
    {"SpaceToDepth", space_to_depth},
    {"Split", split},
    {"Squeeze", squeeze},
    {"Tile", tile},
    {"Transpose", transpose},
    {"Trilu", same_as_input},
    {"Unsqueeze", unsqueeze},
};
static_assert(std::ranges::is_sorted(kInferViewRules, {}, &InferenceRule::op));

}  // namespace

std::span<const InferenceRule> view_rules() { return kInferViewRules; }

}  // namespace jaxport::onnx

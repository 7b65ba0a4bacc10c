// SPDX-License-Identifier: Apache-2.0
// Convolutions, pools and resizing: sizes along the spatial axes (all after batch and channels).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "onnx/infer.h"

namespace jaxport::onnx {
namespace {

// Attributes of a window, with one entry for each spatial axis.
struct Window {
  Dims kernel;
  Ints strides, dilations, pads_begin, pads_end;
  std::string_view auto_pad;
};

Ints ints_or(const Inference& n, std::string_view name, std::size_t count, std::int64_t fill) {
  Ints values = n.attr_ints(name).value_or(Ints(count, fill));
  if (values.size() != count) n.fail(fmt::format("{} does not fit the spatial axes", name));
  return values;
}

Window window_of(const Inference& n, Dims kernel) {
  const std::size_t rank = kernel.size();
  const Ints pads = ints_or(n, "pads", 2 * rank, 0);
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(rank);
  Window window{.kernel = std::move(kernel),
                .strides = ints_or(n, "strides", rank, 1),
                .dilations = ints_or(n, "dilations", rank, 1),
                .pads_begin = Ints(pads.begin(), middle),
                .pads_end = Ints(middle, pads.end()),
                .auto_pad = n.attr("auto_pad", "NOTSET")};
  const bool is_positive = std::ranges::all_of(window.strides, [](auto s) { return s > 0; });
  if (!is_positive) n.fail("a stride is not positive");
  return window;
}

bool is_same_padded(const Window& window) { return window.auto_pad.starts_with("SAME"); }

// (kernel - 1) * dilation + 1
Dim extent(const Window& window, std::size_t axis) {
  return (window.kernel[axis] - 1) * window.dilations[axis] + 1;
}

Dim ceil_div(const Dim& a, std::int64_t b) { return floordiv(a + (b - 1), b); }

// floor((size + pads - extent) / stride) + 1; SAME_* pads to ceil(size / stride).
Dim strided(const Window& window, std::size_t axis, const Dim& size) {
  const std::int64_t stride = window.strides[axis];
  if (is_same_padded(window)) return ceil_div(size, stride);
  const std::int64_t pads = window.pads_begin[axis] + window.pads_end[axis];
  return floordiv(size + pads - extent(window, axis), stride) + 1;
}

// ceil_mode rounds up, but no window starts in the padding at the end. Sizes must be static to
// tell.
std::optional<Dim> strided_up(const Window& window, std::size_t axis, const Dim& size) {
  if (is_same_padded(window)) return strided(window, axis, size);
  if (!size.is_static() || !window.kernel[axis].is_static()) return std::nullopt;
  const std::int64_t stride = window.strides[axis], begin = window.pads_begin[axis];
  const std::int64_t span = size.value() + begin + window.pads_end[axis];
  const std::int64_t rest = span - extent(window, axis).value();
  const std::int64_t count = (rest + stride - 1) / stride + 1;
  return (count - 1) * stride >= size.value() + begin ? count - 1 : count;
}

Dims spatial(const Dims& shape) { return {shape.begin() + 2, shape.end()}; }

// `data` and `weight` name the inputs; weight is [out channels, in channels / group, kernel...].
void convolve(Inference& n, std::size_t data, std::size_t weight) {
  const Dims *x = n.shape(data), *w = n.shape(weight);
  if (x == nullptr || w == nullptr) return;
  if (x->size() != w->size() || x->size() < 3) n.fail("X and W must have one rank, at least 3");
  agreed(n, (*x)[1], (*w)[1] * n.attr("group", 1));
  const Window window = window_of(n, spatial(*w));
  Dims out{(*x)[0], (*w)[0]};
  for (std::size_t i = 0; i < window.kernel.size(); ++i) {
    out.push_back(strided(window, i, (*x)[i + 2]));
  }
  n.set(0, std::move(out));
}

void conv(Inference& n) { convolve(n, 0, 1); }
void qlinear_conv(Inference& n) { convolve(n, 0, 3); }

// stride * (size - 1) + output_padding + extent - pads; weight is [in, out / group, kernel...].
void conv_transpose(Inference& n) {
  const Dims *x = n.shape(0), *w = n.shape(1);
  if (x == nullptr || w == nullptr) return;
  if (x->size() != w->size() || x->size() < 3) n.fail("X and W must have one rank, at least 3");
  agreed(n, (*x)[1], (*w)[0]);
  const Window window = window_of(n, spatial(*w));
  const Ints padding = ints_or(n, "output_padding", window.kernel.size(), 0);
  const bool is_stated = n.attr_ints("output_shape").has_value();
  const Ints stated = ints_or(n, "output_shape", window.kernel.size(), 0);
  Dims out{(*x)[0], (*w)[1] * n.attr("group", 1)};
  for (std::size_t i = 0; i < window.kernel.size(); ++i) {
    const Dim& size = (*x)[i + 2];
    const std::int64_t stride = window.strides[i];
    const std::int64_t pads = window.pads_begin[i] + window.pads_end[i];
    if (is_stated)
      out.push_back(stated[i]);
    else if (is_same_padded(window))
      out.push_back(size * stride);
    else
      out.push_back((size - 1) * stride + padding[i] + extent(window, i) - pads);
  }
  n.set(0, std::move(out));
}

void pool(Inference& n) {
  const Dims* x = n.shape(0);
  const auto kernel = n.attr_ints("kernel_shape");
  if (x == nullptr || !kernel) return;
  if (x->size() != kernel->size() + 2) n.fail("kernel_shape does not fit the spatial axes");
  const Window window = window_of(n, Dims(kernel->begin(), kernel->end()));
  const bool rounds_up = n.attr("ceil_mode", 0) != 0;
  Dims out{(*x)[0], (*x)[1]};
  for (std::size_t i = 0; i < kernel->size(); ++i) {
    const Dim& size = (*x)[i + 2];
    const auto count = rounds_up ? strided_up(window, i, size) : strided(window, i, size);
    if (!count) return;
    out.push_back(*count);
  }
  n.set(0, out);
  n.set(1, std::move(out));  // MaxPool: the indices
}

// Sizes or scales are constants; scales give floor(size * scale), which needs static sizes.
void resize(Inference& n) {
  const Dims* in = n.shape(0);
  if (in == nullptr || n.attr("keep_aspect_ratio_policy", "stretch") != "stretch") return;
  Ints axes = n.attr_ints("axes").value_or(Ints());
  if (axes.empty()) {
    for (std::size_t i = 0; i < in->size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  const auto sizes = n.ints(3);
  const Tensor* scales = n.known(2);
  if (!sizes && (n.has(3) || scales == nullptr)) return;
  const std::size_t count = sizes ? sizes->size() : static_cast<std::size_t>(scales->size());
  if (count != axes.size()) n.fail("sizes or scales do not have one entry for each axis");
  Dims out = *in;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    Dim& size = out[n.from_front(axes[i], in->size())];
    if (sizes) {
      size = (*sizes)[i];
      continue;
    }
    const double scale = scales->at(static_cast<std::int64_t>(i));
    if (scale == 1.0) continue;
    if (!size.is_static()) return;
    size = static_cast<std::int64_t>(std::floor(static_cast<double>(size.value()) * scale));
  }
  n.set(0, std::move(out));
}

constexpr InferenceRule kInferWindowRules[] = {
    {"AveragePool", pool},
    {"Conv", conv},
    {"ConvInteger", conv},
    {"ConvTranspose", conv_transpose},
    {"LpPool", pool},
    {"MaxPool", pool},
    {"QLinearConv", qlinear_conv},
    {"Resize", resize},
};
static_assert(std::ranges::is_sorted(kInferWindowRules, {}, &InferenceRule::op));

}  // namespace

std::span<const InferenceRule> window_rules() { return kInferWindowRules; }

}  // namespace jaxport::onnx

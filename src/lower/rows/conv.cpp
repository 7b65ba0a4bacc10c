// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <utility>

#include "lower/rows/ctx.h"
#include "lower/rows/pad.h"

namespace jaxport::lower {
namespace {

// The operands arrive as [N, C, spatial…] and [O, I, spatial…]; the result leaves as [N, O,
// spatial…].
Order conv_order(const front::Eqn& eqn, std::span<const front::Type>,
                 std::span<const front::Type>) {
  const auto conv = front::ConvParams::read(eqn);
  return {{conv.lhs, conv.rhs}, {conv.out}};
}

// Groups of the batch become groups of features: [G N, C, …] to [N, G C, …].
Value batch_groups_as_features(Ctx& c, Value x, std::int64_t groups) {
  Dims apart = x.shape(), merged = x.shape();
  apart[0] = floordiv(apart[0], groups);
  merged[0] = apart[0];
  merged[1] = merged[1] * groups;
  apart.insert(apart.begin(), Dim(groups));
  Ints perm(apart.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[0], perm[1]);
  return c.reshape(c.transpose(c.reshape(x, apart), perm), merged);
}

// Negative padding, with what is padded at the other end, and dilation of the input are done ahead
// of the op.
struct Padding {
  PadConfig ahead;    // of all dims
  onnx::Args inside;  // of the op
};
Padding padding_of(const front::ConvParams& conv) {
  if (!is_static(conv.padding)) {
    return {PadConfig(2 + conv.padding.size()), {{"auto_pad", "SAME_UPPER"}}};
  }
  Padding padding{PadConfig(2), {}};
  Ints pads, high_ends;  // the low ends of the spatial dims, then the high ends
  for (const PadDim dim : static_config(conv.padding)) {
    const bool is_ahead = dim.low < 0 || dim.high < 0;
    padding.ahead.push_back({is_ahead ? dim.low : 0, is_ahead ? dim.high : 0, dim.interior});
    pads.push_back(is_ahead ? 0 : dim.low);
    high_ends.push_back(is_ahead ? 0 : dim.high);
  }
  pads.insert(pads.end(), high_ends.begin(), high_ends.end());
  padding.inside = {{"pads", pads}};
  return padding;
}

// vmap over kernels makes the batch a factor of the groups.
std::int64_t feature_groups(Ctx& c, const Dim& count) {
  if (!count.is_static()) {
    c.unsupported(
        "there is a kernel for each element of a symbolic dim, and ONNX needs the number of groups "
        "when the model is written; give that dim a size");
  }
  return count.value();
}

Results conv_general_dilated(Ctx& c) {
  const DType dtype = c.out_type().dtype;
  Value x = cast(c.in(0), dtype);
  const Value weight = cast(c.in(1), dtype);
  const auto conv = front::ConvParams::read(c.eqn());
  if (conv.batch_groups != 1) x = batch_groups_as_features(c, x, conv.batch_groups);
  const Padding padding = padding_of(conv);
  x = padded(c, x, like(x, 0), padding.ahead);
  Ints kernel;
  for (std::size_t i = 2; i < weight.rank(); ++i) kernel.push_back(weight.shape()[i].value());
  onnx::Args args{{"kernel_shape", kernel},
                  {"strides", conv.stride},
                  {"dilations", conv.rhs_dilation},
                  {"group", conv.batch_groups * feature_groups(c, conv.feature_groups)}};
  args.insert(args.end(), padding.inside.begin(), padding.inside.end());
  if (c.operands().size() == 3) return c.op.Conv(x, weight, c.in(2), args);
  return c.op.Conv(x, weight, args);
}

// --- ConvTranspose, see rewrite/conv_transpose.cpp

// The kernel is [I, O/g, spatial…] already.
Order conv_transpose_order(const front::Eqn& eqn, std::span<const front::Type>,
                           std::span<const front::Type>) {
  const auto conv = front::ConvParams::read(eqn);
  return {{conv.lhs, {}}, {conv.out}};
}

// ConvTranspose cuts off what a convolution does not pad to the reach of its kernel. What is padded
// beyond it are places that no element reaches: a few at the high end are output_padding, others
// come from zeros around the input, one for each stride.
struct Crop {
  PadDim ahead;
  std::int64_t low, high, output_padding = 0;
};
Crop crop_of(const PadDim& padding, std::int64_t reach) {
  const std::int64_t stride = padding.interior + 1;
  Crop crop{{}, reach - padding.low, reach - padding.high};
  const auto zeros = [&](std::int64_t& end) {
    const std::int64_t count = end < 0 ? (stride - 1 - end) / stride : 0;
    end += count * stride;
    return count;
  };
  crop.ahead.low = zeros(crop.low);
  if (crop.high < 0 && -crop.high < stride) {
    crop.output_padding = -std::exchange(crop.high, 0);
  }
  crop.ahead.high = zeros(crop.high);
  return crop;
}

Results conv_transpose(Ctx& c) {
  const DType dtype = c.out_type().dtype;
  const auto conv = front::ConvParams::read(c.eqn());
  const Value weight = cast(c.in(1), dtype);
  PadConfig ahead(2);
  Ints kernel, strides, pads, high_ends, output_padding;
  for (const PadDim& dim : static_config(conv.padding)) {
    const std::int64_t size = weight.shape()[2 + kernel.size()].value(),
                       dilation = conv.rhs_dilation[kernel.size()];
    const Crop crop = crop_of(dim, (size - 1) * dilation);
    kernel.push_back(size);
    strides.push_back(dim.interior + 1);
    ahead.push_back(crop.ahead);
    pads.push_back(crop.low);
    high_ends.push_back(crop.high);
    output_padding.push_back(crop.output_padding);
  }
  pads.insert(pads.end(), high_ends.begin(), high_ends.end());
  const Value input = cast(c.in(0), dtype), x = padded(c, input, like(input, 0), ahead);
  const onnx::Args args{{"kernel_shape", kernel},           {"strides", strides},
                        {"dilations", conv.rhs_dilation},   {"pads", pads},
                        {"output_padding", output_padding}, {"group", conv.feature_groups.value()}};
  if (c.operands().size() == 3) return c.op.ConvTranspose(x, weight, c.in(2), args);
  return c.op.ConvTranspose(x, weight, args);
}

constexpr Row kConvRows[] = {
    {"conv_general_dilated", conv_general_dilated, 0, conv_order},
    {"conv_transpose", conv_transpose, 0, conv_transpose_order},
};
static_assert(std::ranges::is_sorted(kConvRows, {}, &Row::primitive));

}  // namespace

std::span<const Row> conv_rows() { return kConvRows; }

}  // namespace jaxport::lower

// SPDX-License-Identifier: Apache-2.0
// conv_general_dilated: any layout, stride, padding, dilation and grouping.
#include <algorithm>

#include "eval/arithmetic.h"
#include "eval/map.h"
#include "eval/window.h"

namespace jaxport::eval {
namespace {

// The permutation that brings an array to (first dim, spatial dims, second dim), so that the sum
// over input features runs over neighbours: lhs (batch, …, feature), rhs (out feature, …, in
// feature), result (batch, …, feature).
Ints spatial_in_the_middle(Ints dims) {
  std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
  return dims;
}

struct ConvSizes {
  std::int64_t batch, in_features, out_features;  // of the result, of the kernel, of the result
  std::int64_t feature_groups, batch_groups;
  std::int64_t lhs_features;
  std::int64_t operand_positions, kernel_positions;
};

ConvSizes conv_sizes(const Call& c, const front::ConvParams& conv, const Shape& lhs,
                     const Shape& rhs, const Shape& out) {
  ConvSizes n{};
  n.batch = out.front();
  n.in_features = rhs.back();
  n.out_features = rhs.front();
  n.feature_groups = c.bound(conv.feature_groups);
  n.batch_groups = conv.batch_groups;
  n.lhs_features = lhs.back();
  n.operand_positions = element_count(std::span(lhs).subspan(1, lhs.size() - 2));
  n.kernel_positions = element_count(std::span(rhs).subspan(1, rhs.size() - 2));
  c.require(n.feature_groups >= 1 && n.batch_groups >= 1, "a group count is less than 1");
  const auto is_product = [](std::int64_t whole, std::int64_t part, std::int64_t count) {
    return whole % count == 0 && whole / count == part;
  };
  c.require(is_product(n.lhs_features, n.in_features, n.feature_groups), "feature dims do not fit");
  c.require(is_product(lhs.front(), n.batch, n.batch_groups), "batch dims do not fit");
  c.require(n.out_features % n.feature_groups == 0 && n.out_features % n.batch_groups == 0,
            "the groups do not divide the output features");
  c.require(out.back() == n.out_features, "the result has another number of features");
  return n;
}

// `lhs` and `rhs` are shapes with the spatial dims in the middle. High padding is in the result.
SlidingWindow spatial_window(const Call& c, const front::ConvParams& conv, const Shape& lhs,
                             const Shape& rhs) {
  std::vector<WindowDim> dims;
  for (std::size_t i = 0; i < conv.padding.size(); ++i) {
    const front::Padding& padding = conv.padding[i];
    dims.push_back({lhs[i + 1], rhs[i + 1], conv.stride[i], c.bound(padding.low),
                    padding.interior + 1, conv.rhs_dilation[i]});
  }
  return SlidingWindow(std::move(dims));
}

// A kernel position that reads the operand at a given position.
struct Tap {
  std::int64_t kernel, operand;
};

// What each output position reads, without the taps that fall into the padding.
std::vector<std::vector<Tap>> taps_of(const SlidingWindow& window, const Shape& out) {
  std::vector<std::vector<Tap>> taps;
  for (Odometer o(Shape(out.begin() + 1, out.end() - 1)); o.valid(); o.next()) {
    std::vector<Tap>& here = taps.emplace_back();
    window.each(o.index(), [&](std::int64_t kernel, std::int64_t operand) {
      here.push_back({kernel, operand});
    });
  }
  return taps;
}

// out[n, o, f] = sum over taps and input features of lhs * rhs, within f's groups.
template <class T>
Array<T> convolve(const Array<T>& lhs, const Array<T>& rhs,
                  const std::vector<std::vector<Tap>>& taps, const ConvSizes& n) {
  const auto positions = static_cast<std::int64_t>(taps.size());
  Array<T> out(n.batch * positions * n.out_features);
  for (std::int64_t i = 0; i < out.size(); ++i) {
    const std::int64_t f = i % n.out_features, o = i / n.out_features % positions;
    const std::int64_t group = f / (n.out_features / n.feature_groups);
    const std::int64_t batch =
        f / (n.out_features / n.batch_groups) * n.batch + i / (n.out_features * positions);
    T sum{0};
    for (const Tap& tap : taps[o]) {
      const T* x = lhs.begin() + (batch * n.operand_positions + tap.operand) * n.lhs_features +
                   group * n.in_features;
      const T* w = rhs.begin() + (f * n.kernel_positions + tap.kernel) * n.in_features;
      for (std::int64_t k = 0; k < n.in_features; ++k) sum = kAdd(sum, kMul(x[k], w[k]));
    }
    out[i] = sum;
  }
  return out;
}

Ints inverse(const Ints& permutation) {
  Ints result(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    result[permutation[i]] = static_cast<std::int64_t>(i);
  }
  return result;
}

Results conv_general_dilated(const Call& c) {
  c.require_counts(2, 1);
  const auto conv = front::ConvParams::read(c.eqn);
  c.require(c.rank(0) == std::ssize(conv.lhs) && c.rank(1) == c.rank(0),
            "'dimension_numbers' do not fit the operands");
  const Shape shape = c.out_shape();
  c.require(std::ssize(shape) == c.rank(0), "the result has another rank");
  const Tensor lhs = transposed(c.in[0], spatial_in_the_middle(conv.lhs));
  const Tensor rhs = transposed(c.in[1], spatial_in_the_middle(conv.rhs));
  const Ints out_order = spatial_in_the_middle(conv.out);
  Shape out;
  for (const std::int64_t dim : out_order) out.push_back(shape[dim]);
  const ConvSizes sizes = conv_sizes(c, conv, lhs.shape, rhs.shape, out);
  const auto taps = taps_of(spatial_window(c, conv, lhs.shape, rhs.shape), out);
  const DType dtype = c.out_dtype();
  return with_class<Results>(
      accumulator_class_of(dtype),
      [&]<Number T>(T) -> Results {
        const Array<T> sums = convolve(load_as<T>(lhs, dtype), load_as<T>(rhs, dtype), taps, sizes);
        return {transposed(store_all(sums, dtype, out), inverse(out_order))};
      },
      [&] { return c.no_dtype(dtype); });
}

constexpr Row kConvRows[] = {{"conv_general_dilated", conv_general_dilated}};

}  // namespace
std::span<const Row> conv_rows() { return kConvRows; }
}  // namespace jaxport::eval

// SPDX-License-Identifier: Apache-2.0
// Running sums, products, maxima and minima along one axis.
#include <algorithm>
#include <cmath>

#include "eval/arithmetic.h"
#include "eval/map.h"

namespace jaxport::eval {
namespace {

// log(exp(x) + exp(y)); equal infinities stay what they are.
constexpr auto kLogAddExp = []<Floating T>(T x, T y) -> T {
  if (x == y && std::isinf(x)) return x;
  const T larger = kMax(x, y);
  return larger + std::log1p(std::exp(-std::fabs(x - y)));
};

// A dense array as outer x length x inner around the axis.
struct Line {
  std::int64_t outer = 1, length = 1, inner = 1;
};

Line line_along(const Shape& shape, std::int64_t axis) {
  Line line{.length = shape[axis]};
  for (std::int64_t i = 0; i < axis; ++i) line.outer *= shape[i];
  for (std::int64_t i = axis + 1; i < std::ssize(shape); ++i) line.inner *= shape[i];
  return line;
}

template <class T, class Op>
void accumulate(Array<T>& x, const Line& line, bool reverse, const Op& op) {
  const std::int64_t step = reverse ? -line.inner : line.inner;
  const std::int64_t first = reverse ? (line.length - 1) * line.inner : 0;
  for (std::int64_t o = 0; o < line.outer; ++o) {
    const std::int64_t start = o * line.length * line.inner + first;
    for (std::int64_t k = 1; k < line.length; ++k) {
      for (std::int64_t i = 0; i < line.inner; ++i) {
        const std::int64_t at = start + k * step + i;
        x[at] = op(x[at - step], x[at]);
      }
    }
  }
}

template <auto Op>
Results cumulate(const Call& c) {
  c.require_counts(1, 1);
  const auto [axis, reverse] = front::CumulativeParams::read(c.eqn);
  const Line line = line_along(c.shape(0), c.checked({axis}, c.rank(0))[0]);
  const DType dtype = c.in[0].dtype;
  const auto run_along =
      [&, reverse = reverse ]<class T>(T) -> Results requires Takes<decltype(Op), T, 2> {
    Array<T> x = load_all<T>(c.in[0]);
    accumulate(x, line, reverse, Op);
    return {store_all(x, c.out_dtype(), c.shape(0))};
  };
  return with_class<Results>(accumulator_class_of(dtype), run_along,
                             [&] { return c.no_dtype(dtype); });
}

constexpr Row kCumulativeRows[] = {
    {"cumlogsumexp", cumulate<kLogAddExp>},
    {"cummax", cumulate<kMax>},
    {"cummin", cumulate<kMin>},
    {"cumprod", cumulate<kMul>},
    {"cumsum", cumulate<kAdd>},
};
static_assert(std::ranges::is_sorted(kCumulativeRows, {}, &Row::primitive));

}  // namespace
std::span<const Row> cumulative_rows() { return kCumulativeRows; }
}  // namespace jaxport::eval

// SPDX-License-Identifier: Apache-2.0
// Reductions over axes.
#include <algorithm>
#include <cmath>

#include "eval/arithmetic.h"
#include "eval/map.h"

namespace jaxport::eval {
namespace {

// An operand with the reduced axes last: `outer` rows of `inner` elements.
struct Rows {
  Tensor tensor;
  std::int64_t outer = 1, inner = 1;
};

Rows rows_over(const Tensor& tensor, const Ints& axes) {
  Rows rows;
  Ints permutation;
  for (std::int64_t i = 0; i < std::ssize(tensor.shape); ++i) {
    if (std::ranges::find(axes, i) != axes.end()) continue;
    permutation.push_back(i);
    rows.outer *= tensor.shape[i];
  }
  for (const std::int64_t axis : axes) rows.inner *= tensor.shape[axis];
  permutation.insert(permutation.end(), axes.begin(), axes.end());
  rows.tensor = transposed(tensor, permutation);
  return rows;
}

template <class T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}

// Calls visit(value, index) for each element of a row.
template <class T, class Visit>
void for_each_in_row(const Rows& rows, std::int64_t row, const Visit& visit) {
  std::array<T, kBlock> x;
  for (std::int64_t begin = 0; begin < rows.inner; begin += kBlock) {
    const std::int64_t count = std::min(kBlock, rows.inner - begin);
    load(rows.tensor, row * rows.inner + begin, count, x.data());
    for (std::int64_t i = 0; i < count; ++i) visit(x[i], begin + i);
  }
}

// Floats are summed in double.
template <class Monoid>
Results reduce(const Call& c) {
  c.require_counts(1, 1);
  Ints axes = c.checked(front::ReduceParams::read(c.eqn).axes, c.rank(0));
  std::ranges::sort(axes);
  const Rows rows = rows_over(c.in[0], axes);
  const Shape shape = c.out_shape();
  c.require(element_count(shape) == rows.outer, "the result has another number of elements");
  const DType dtype = c.in[0].dtype;
  const auto fold = [&]<class T>(T) -> Results requires Takes<decltype(Monoid::kOp), T, 2> {
    Array<T> totals(rows.outer);
    for (std::int64_t row = 0; row < rows.outer; ++row) {
      T total = Monoid::template start<T>(dtype);
      for_each_in_row<T>(rows, row, [&](T x, std::int64_t) { total = Monoid::kOp(total, x); });
      totals[row] = total;
    }
    return {store_all(totals, c.out_dtype(), shape)};
  };
  return with_class<Results>(accumulator_class_of(dtype), fold, [&] { return c.no_dtype(dtype); });
}

// The first index of the best element; the first NaN is better than everything.
template <auto Better>
Results arg_reduce(const Call& c) {
  c.require_counts(1, 1);
  const Ints axes = c.checked(front::ReduceParams::read(c.eqn).axes, c.rank(0));
  c.require(axes.size() == 1, "needs one axis");
  const Rows rows = rows_over(c.in[0], axes);
  c.require(rows.inner > 0, "the axis is empty");
  c.require(element_count(c.out_shape()) == rows.outer, "the result has another size");
  const DType dtype = c.in[0].dtype;
  Array<std::int64_t> results(rows.outer);
  const auto search = [&]<Ordered T>(T) {
    for (std::int64_t row = 0; row < rows.outer; ++row) {
      T best{};
      std::int64_t best_index = -1;
      for_each_in_row<T>(rows, row, [&](T x, std::int64_t index) {
        if (best_index >= 0 && (is_nan(best) || (!is_nan(x) && !Better(x, best)))) return;
        best = x;
        best_index = index;
      });
      results[row] = best_index;
    }
  };
  with_class(class_of(dtype), search, [&] { return c.no_dtype(dtype); });
  return {store_all(results, c.out_dtype(), c.out_shape())};
}

constexpr auto kGreater = []<Ordered T>(T x, T y) { return x > y; };
constexpr auto kLess = []<Ordered T>(T x, T y) { return x < y; };

constexpr Row kReduceRows[] = {
    {"argmax", arg_reduce<kGreater>}, {"argmin", arg_reduce<kLess>},
    {"reduce_and", reduce<All>},      {"reduce_max", reduce<Maximum>},
    {"reduce_min", reduce<Minimum>},  {"reduce_or", reduce<Any>},
    {"reduce_prod", reduce<Product>}, {"reduce_sum", reduce<Sum>},
    {"reduce_xor", reduce<Parity>},
};
static_assert(std::ranges::is_sorted(kReduceRows, {}, &Row::primitive));

}  // namespace
std::span<const Row> reduce_rows() { return kReduceRows; }
}  // namespace jaxport::eval

// SPDX-License-Identifier: Apache-2.0
// sort and top_k, through integer keys that order as the elements do.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "eval/element.h"
#include "eval/view.h"

namespace jaxport::eval {
namespace {

using Key = std::uint64_t;

// How floats order where < says nothing. lax.sort: -0 and 0 are equal, and every NaN is larger than
// infinity. lax.top_k: IEEE total order, with -0 below 0 and -NaN below everything.
enum class FloatOrder : std::uint8_t { kNumeric, kTotal };

constexpr Key kSignBit = Key{1} << 63;

Key key_of(double x, FloatOrder order) {
  if (order == FloatOrder::kNumeric) {
    if (std::isnan(x)) return std::numeric_limits<Key>::max();
    if (x == 0) return kSignBit;
  }
  const Key bits = std::bit_cast<Key>(x);
  return bits & kSignBit ? ~bits : bits | kSignBit;
}
Key key_of(std::int64_t x, FloatOrder) { return static_cast<Key>(x) ^ kSignBit; }
Key key_of(std::uint64_t x, FloatOrder) { return x; }
Key key_of(bool x, FloatOrder) { return x ? 1 : 0; }

// A complex number orders by its real part, then by its imaginary part: two lists of keys.
void append_keys(const Call& c, const Tensor& tensor, FloatOrder order,
                 std::vector<Array<Key>>& keys) {
  with_class(
      accumulator_class_of(tensor.dtype),
      [&]<class T>(T) {
        const Array<T> x = load_all<T>(tensor);
        const auto append = [&](auto part) {
          Array<Key>& list = keys.emplace_back(x.size());
          std::transform(x.begin(), x.end(), list.begin(),
                         [&](T v) { return key_of(part(v), order); });
        };
        if constexpr (Complex<T>) {
          append([](T v) { return v.real(); });
          append([](T v) { return v.imag(); });
        } else {
          append([](T v) { return v; });
        }
      },
      [&] { return c.no_dtype(tensor.dtype); });
}

// The dims of a tensor with `axis` last, so that what is sorted lies in rows.
Ints axis_last(std::int64_t rank, std::int64_t axis) {
  Ints permutation(static_cast<std::size_t>(rank));
  std::iota(permutation.begin(), permutation.end(), 0);
  std::rotate(permutation.begin() + axis, permutation.begin() + axis + 1, permutation.end());
  return permutation;
}
Ints axis_back(std::int64_t rank, std::int64_t axis) {
  Ints permutation(static_cast<std::size_t>(rank));
  std::iota(permutation.begin(), permutation.end(), 0);
  std::rotate(permutation.begin() + axis, permutation.end() - 1, permutation.end());
  return permutation;
}

// order[i] is the element that belongs to place i, row by row. Equal elements keep their order.
Array<std::int64_t> sorted_order(const std::vector<Array<Key>>& keys, std::int64_t length) {
  Array<std::int64_t> order(keys[0].size());
  std::iota(order.begin(), order.end(), 0);
  const auto before = [&](std::int64_t a, std::int64_t b) {
    for (const Array<Key>& key : keys) {
      if (key[a] != key[b]) return key[a] < key[b];
    }
    return false;
  };
  for (std::int64_t row = 0; row < order.size(); row += length) {
    std::stable_sort(order.begin() + row, order.begin() + row + length, before);
  }
  return order;
}

// Row-major elements order[0], order[1], … of a tensor.
Tensor reordered(const Tensor& tensor, const Array<std::int64_t>& order, Shape shape) {
  MutableTensor out = allocate(tensor.dtype, std::move(shape));
  const auto width = static_cast<std::int64_t>(byte_width(tensor.dtype));
  for (std::int64_t i = 0; i < order.size(); ++i) {
    std::memcpy(out.bytes + i * width, tensor.data.get() + order[i] * width,
                static_cast<std::size_t>(width));
  }
  return std::move(out.tensor);
}

// Sorts all operands by the first num_keys of them.
Results sort(const Call& c) {
  c.require(!c.in.empty(), "needs an operand");
  const auto params = front::SortParams::read(c.eqn);
  const std::int64_t rank = c.rank(0), axis = c.checked({params.axis}, rank)[0];
  c.require(params.keys >= 1 && params.keys <= c.in.size(), "'num_keys' is out of range");
  Results rows;
  std::vector<Array<Key>> keys;
  for (const Tensor& operand : c.in) {
    c.require(operand.shape == c.shape(0), "operands of different shapes");
    rows.push_back(transposed(operand, axis_last(rank, axis)));
    if (rows.size() <= params.keys) append_keys(c, rows.back(), FloatOrder::kNumeric, keys);
  }
  if (c.in[0].size() == 0) return {c.in.begin(), c.in.end()};
  const Array<std::int64_t> order = sorted_order(keys, c.shape(0)[axis]);
  for (Tensor& row : rows) {
    row = transposed(reordered(row, order, row.shape), axis_back(rank, axis));
  }
  return rows;
}

// The k largest along the last dim (or `axis`), largest first; of equal ones the first.
Results top_k(const Call& c) {
  c.require_counts(1, 2);
  const std::int64_t rank = c.rank(0);
  const std::int64_t axis = c.has("axis") ? c.axis("axis", rank) : rank - 1;
  c.require(axis >= 0, "needs an operand with a dim");
  const std::int64_t length = c.shape(0)[axis], k = c.integer("k");
  c.require(k >= 0 && k <= length, "'k' is out of range");
  const Tensor rows = transposed(c.in[0], axis_last(rank, axis));
  std::vector<Array<Key>> keys;
  append_keys(c, rows, FloatOrder::kTotal, keys);
  for (Array<Key>& list : keys) {
    for (Key& key : list) key = ~key;
  }
  const std::int64_t row_count = length == 0 ? 0 : rows.size() / length;
  const Array<std::int64_t> order = sorted_order(keys, std::max<std::int64_t>(length, 1));
  Array<std::int64_t> picks(row_count * k), positions(row_count * k);
  for (std::int64_t i = 0; i < picks.size(); ++i) {
    picks[i] = order[i / k * length + i % k];
    positions[i] = picks[i] % length;
  }
  Shape shape = rows.shape;
  shape.back() = k;
  const Ints back = axis_back(rank, axis);
  return {transposed(reordered(rows, picks, shape), back),
          transposed(store_all(positions, c.out_dtype(1), shape), back)};
}

constexpr Row kSortRows[] = {{"sort", sort}, {"top_k", top_k}};
static_assert(std::ranges::is_sorted(kSortRows, {}, &Row::primitive));

}  // namespace
std::span<const Row> sort_rows() { return kSortRows; }
}  // namespace jaxport::eval

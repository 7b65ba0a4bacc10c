// SPDX-License-Identifier: Apache-2.0
// Pointwise evaluation: one typed loop for each operation and compute type.
#pragma once

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "eval/call.h"
#include "eval/element.h"
#include "eval/eval.h"
#include "eval/view.h"

namespace jaxport::eval {

constexpr std::int64_t kBlock = 512;

// The operands of a pointwise primitive in the shape of its result.
template <std::size_t N>
std::array<Repeated, N> pointwise_operands(const Call& c, const Shape& shape) {
  c.require_counts(N, 1);
  std::array<Repeated, N> operands;
  for (std::size_t k = 0; k < N; ++k) operands[k] = repeated_to(c, c.in[k], shape);
  return operands;
}

// Elements [begin, begin + count) of the result's, widened.
template <class T>
void load(const Repeated& operand, std::int64_t begin, std::int64_t count, T* into) {
  const std::int64_t size = operand.tensor.size();
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t run = (begin + done) / operand.each, place = (begin + done) % operand.each;
    if (operand.each == 1) {
      const std::int64_t length = std::min(count - done, size - run % size);
      load(operand.tensor, run % size, length, into + done);
      done += length;
    } else {
      const std::int64_t length = std::min(count - done, operand.each - place);
      load(operand.tensor, run % size, 1, into + done);
      std::fill_n(into + done + 1, length - 1, into[done]);
      done += length;
    }
  }
}

// out[i] = op(operands[0][i], …) in blocks: widen into T, compute, round into the result dtype.
template <class T, std::size_t N, class Op>
void map_blocks(const std::array<Repeated, N>& operands, const Op& op, MutableTensor& out) {
  const std::int64_t total = out.tensor.size();
  std::array<std::array<T, kBlock>, N> x;
  std::array<bool, N> single{};
  for (std::size_t k = 0; k < N; ++k) {
    single[k] = operands[k].tensor.size() == 1;
    if (!single[k]) continue;
    load(operands[k].tensor, 0, 1, x[k].data());
    x[k].fill(x[k][0]);
  }
  const auto at = [&]<std::size_t... K>(std::int64_t i, std::index_sequence<K...>) {
    return op(x[K][i]...);
  };
  constexpr auto kOperands = std::make_index_sequence<N>{};
  std::array<decltype(at(0, kOperands)), kBlock> y;
  for (std::int64_t begin = 0; begin < total; begin += kBlock) {
    const std::int64_t count = std::min(kBlock, total - begin);
    for (std::size_t k = 0; k < N; ++k) {
      if (!single[k]) load(operands[k], begin, count, x[k].data());
    }
    for (std::int64_t i = 0; i < count; ++i) y[i] = at(i, kOperands);
    store(y.data(), count, out, begin);
  }
}

template <class Op, class T, std::size_t N>
concept Takes = (N == 1 && std::is_invocable_v<Op, T>) ||
                (N == 2 && std::is_invocable_v<Op, T, T>) ||
                (N == 3 && std::is_invocable_v<Op, T, T, T>);

// `op` is a generic callable constrained to the compute types it makes sense for.
template <std::size_t N, class Op>
Results map_operands(const Call& c, const std::array<Repeated, N>& operands, const Op& op) {
  const DType dtype = operands[0].tensor.dtype;
  for (const Repeated& operand : operands) {
    c.require(operand.tensor.dtype == dtype, "operands of different dtypes");
  }
  MutableTensor out = allocate(c.out_dtype(), c.out_shape());
  with_class(
      class_of(dtype),
      [&]<class T>(T) requires Takes<Op, T, N> { map_blocks<T>(operands, op, out); },
      [&] { return c.no_dtype(dtype); });
  return {std::move(out.tensor)};
}

template <std::size_t N, class Op>
Results map(const Call& c, const Op& op) {
  return map_operands(c, pointwise_operands<N>(c, c.out_shape()), op);
}

// All elements for an operation with a result of `dtype`, whose compute type is T. An operand of
// another kind, such as an integer that meets floats, is converted first.
template <class T>
Array<T> load_as(const Tensor& tensor, DType dtype) {
  const bool widens =
      is_complex(tensor.dtype) == is_complex(dtype) && is_float(tensor.dtype) == is_float(dtype);
  return load_all<T>(widens ? tensor : cast(tensor, dtype));
}

// Rows of tables: {"add", binary<kAdd>}.
template <auto Op>
Results unary(const Call& c) {
  return map<1>(c, Op);
}
template <auto Op>
Results binary(const Call& c) {
  return map<2>(c, Op);
}
template <auto Op>
Results ternary(const Call& c) {
  return map<3>(c, Op);
}

}  // namespace jaxport::eval

// SPDX-License-Identifier: Apache-2.0
// dot_general as a batch of matrix products.
#include <algorithm>

#include "eval/arithmetic.h"
#include "eval/eval.h"
#include "eval/map.h"

namespace jaxport::eval {
namespace {

// The dims that are in neither list, in order.
Ints free_dims(const Call& c, std::size_t operand, const Ints& contract, const Ints& batch) {
  c.checked(contract, c.rank(operand));
  c.checked(batch, c.rank(operand));
  Ints free;
  for (std::int64_t i = 0; i < c.rank(operand); ++i) {
    const bool contracted = std::ranges::find(contract, i) != contract.end();
    const bool batched = std::ranges::find(batch, i) != batch.end();
    c.require(!(contracted && batched), "a dim is both contracted and batched");
    if (!contracted && !batched) free.push_back(i);
  }
  return free;
}

Shape picked(const Shape& shape, const Ints& dims) {
  Shape sizes;
  for (const std::int64_t dim : dims) sizes.push_back(shape[dim]);
  return sizes;
}

Ints joined(Ints first, const Ints& second, const Ints& third) {
  first.insert(first.end(), second.begin(), second.end());
  first.insert(first.end(), third.begin(), third.end());
  return first;
}

struct MatrixSizes {
  std::int64_t batch, rows, inner, cols;
};

// out[b] = lhs[b] * rhs[b]; the innermost loop runs along rows of rhs and out.
template <class T>
void multiply(const Array<T>& lhs, const Array<T>& rhs, Array<T>& out, const MatrixSizes& n) {
  std::fill(out.begin(), out.end(), T{0});
  for (std::int64_t row = 0; row < n.batch * n.rows; ++row) {
    T* to = out.begin() + row * n.cols;
    const T* block = rhs.begin() + row / n.rows * n.inner * n.cols;
    for (std::int64_t k = 0; k < n.inner; ++k) {
      const T scale = lhs[row * n.inner + k];
      const T* from = block + k * n.cols;
      for (std::int64_t j = 0; j < n.cols; ++j) to[j] = kAdd(to[j], kMul(scale, from[j]));
    }
  }
}

// Result dims: batch, free dims of lhs, free dims of rhs. Bools count as integers: any product that
// is true makes the sum true.
Results dot_general(const Call& c) {
  c.require_counts(2, 1);
  const auto dims = front::DotParams::read(c.eqn);
  const Ints lhs_free = free_dims(c, 0, dims.lhs_contract, dims.lhs_batch);
  const Ints rhs_free = free_dims(c, 1, dims.rhs_contract, dims.rhs_batch);
  const Shape inner = picked(c.shape(0), dims.lhs_contract);
  const Shape batch = picked(c.shape(0), dims.lhs_batch);
  c.require(inner == picked(c.shape(1), dims.rhs_contract), "contracted dims have different sizes");
  c.require(batch == picked(c.shape(1), dims.rhs_batch), "batch dims have different sizes");
  const Shape rows = picked(c.shape(0), lhs_free), cols = picked(c.shape(1), rhs_free);
  c.require(joined(batch, rows, cols) == c.out_shape(), "the result has another shape");
  const MatrixSizes sizes{element_count(batch), element_count(rows), element_count(inner),
                          element_count(cols)};
  const Tensor lhs = transposed(c.in[0], joined(dims.lhs_batch, lhs_free, dims.lhs_contract));
  const Tensor rhs = transposed(c.in[1], joined(dims.rhs_batch, dims.rhs_contract, rhs_free));
  const DType dtype = c.out_dtype() == DType::kBool ? DType::kI64 : c.out_dtype();
  const auto product = [&]<Number T>(T) {
    Array<T> out(sizes.batch * sizes.rows * sizes.cols);
    multiply(load_as<T>(lhs, dtype), load_as<T>(rhs, dtype), out, sizes);
    return store_all(out, dtype, c.out_shape());
  };
  const Tensor out =
      with_class<Tensor>(accumulator_class_of(dtype), product, [&] { return c.no_dtype(dtype); });
  return {cast(out, c.out_dtype())};
}

constexpr Row kContractRows[] = {{"dot_general", dot_general}};

}  // namespace
std::span<const Row> contract_rows() { return kContractRows; }
}  // namespace jaxport::eval

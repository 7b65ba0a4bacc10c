// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/dtype.h"

namespace jaxport {

using Ints = std::vector<std::int64_t>;  // axes, permutations, strides
using Shape = Ints;
bool contains(const Ints& list, std::int64_t item);

// Product of the sizes. Throws Error E022 when a size is negative or the product leaves int64.
std::int64_t element_count(std::span<const std::int64_t> shape);

// A dense row-major array. The bytes belong to `data`'s owner (a Python object, a file mapping,
// our own allocation); copying a Tensor shares them. Bytes never change after construction.
struct Tensor {
  DType dtype = DType::kF32;
  Shape shape;
  std::shared_ptr<const std::byte> data;

  std::int64_t size() const { return element_count(shape); }
  std::size_t nbytes() const { return static_cast<std::size_t>(size()) * byte_width(dtype); }
  bool is_scalar() const { return shape.empty(); }
  std::span<const std::byte> bytes() const { return {data.get(), nbytes()}; }
  template <class T>
  std::span<const T> as() const {
    require_width(sizeof(T));
    return {reinterpret_cast<const T*>(data.get()), static_cast<std::size_t>(size())};
  }
  // The value of element `index` (row-major) of any real dtype, widened to double. Bools are 0
  // and 1.
  double at(std::int64_t index) const;
  // The same for integers and bools, exact for 64-bit values.
  std::int64_t int_at(std::int64_t index) const;

  // What is read as numbers of a dtype that it does not have would leave the bytes: Error BUG.
  void require_width(std::size_t bytes) const;
};

// Fresh memory to be filled through the returned pointer before the Tensor is shared.
struct MutableTensor {
  Tensor tensor;
  std::byte* bytes = nullptr;
  template <class T>
  T* as() {
    tensor.require_width(sizeof(T));
    return reinterpret_cast<T*>(bytes);
  }
};
MutableTensor allocate(DType dtype, Shape shape);  // Error E110 beyond the limit

Tensor scalar(DType dtype, double value);  // rounds to dtype (nearest even)
Tensor int_scalar(DType dtype, std::int64_t value);
Tensor int64s(std::span<const std::int64_t> values);    // i64[n]
bool same_bytes(const Tensor& lhs, const Tensor& rhs);  // dtype, shape and content
std::uint64_t content_hash(const Tensor& tensor);       // of dtype, shape and bytes

// A strided, possibly broadcasting (stride 0) window on a tensor, enumerated row-major over
// `sizes`. Transposes, slices, repeats and any regrouping of a constant are views; bytes are copied
// once, while they are written.
struct StridedView {
  Tensor base;
  std::int64_t offset = 0;  // in elements
  Shape sizes;
  std::vector<std::int64_t> strides;  // in elements, one for each size

  std::int64_t size() const { return element_count(sizes); }
  bool is_dense() const;  // enumerates base's bytes in order, without gaps
};
StridedView whole(Tensor tensor);             // the tensor as it is
Tensor materialise(const StridedView& view);  // dense; shares the bytes when the view is dense
// Hands the view's bytes out in order, in chunks of at most about 1 MiB.
void for_each_chunk(const StridedView& view,
                    const std::function<void(std::span<const std::byte>)>& sink);

// Conversions of single elements that C++20 has no type for.
float bf16_to_float(std::uint16_t bits);
float f16_to_float(std::uint16_t bits);
std::uint16_t float_to_bf16(float value);      // nearest even
std::uint16_t float_to_f16(float value);       // nearest even
double rounded_to(DType dtype, double value);  // as f64, f32, bf16 or f16 holds it
// Any float dtype of at most 16 bits, as ml_dtypes converts it: nearest even, overflow gives
// infinity where the format has one, else NaN (f4_e2m1fn: the largest value).
double small_float_to_double(DType dtype, std::uint16_t bits);
std::uint16_t double_to_small_float(DType dtype, double value);

}  // namespace jaxport

// SPDX-License-Identifier: Apache-2.0
// Moving elements without looking at them: views to read through and windows to write through.
#pragma once

#include <cstdint>
#include <span>

#include "eval/call.h"
#include "support/tensor.h"

namespace jaxport::eval {

Ints row_major_strides(const Shape& shape);

// The same bytes under another shape; E041 when the sizes differ.
Tensor reshaped(const Call& c, const Tensor& tensor, Shape shape);
Tensor transposed(const Tensor& tensor, const Ints& permutation);
Tensor element(const Tensor& tensor, std::int64_t at);  // row-major number `at`, as a scalar
// numpy's rule: trailing dims align, dims of size 1 repeat. E041 when that does not give `shape`.
Tensor broadcast(const Call& c, const Tensor& tensor, const Shape& shape);

// A tensor in a larger shape, whose element i is element (i / each) % size of the tensor. Single
// elements and most broadcasts have this form and are not copied.
struct Repeated {
  Tensor tensor;
  std::int64_t each = 1;
};
Repeated repeated_to(const Call& c, const Tensor& tensor, const Shape& shape);

// Counts through all indices of a shape in row-major order:
//   for (Odometer at(shape); at.valid(); at.next()) use(at.index());
class Odometer {
 public:
  explicit Odometer(Shape sizes);
  bool valid() const { return valid_; }
  void next();
  const Ints& index() const { return index_; }
  std::int64_t operator[](std::size_t dim) const { return index_[dim]; }

 private:
  Shape sizes_;
  Ints index_;
  bool valid_;
};

// Element number `at` of a row-major array.
std::int64_t offset_of(std::span<const std::int64_t> index, std::span<const std::int64_t> strides);

// Where the elements of a dense source go in a destination, in elements.
struct Window {
  std::int64_t offset = 0;
  Ints strides;  // one for each dim of the source; may be negative
};
void write_window(const Tensor& source, MutableTensor& into, const Window& window);

MutableTensor copy_of(const Tensor& tensor);
MutableTensor filled(DType dtype, Shape shape, const Tensor& element);

}  // namespace jaxport::eval

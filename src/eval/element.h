// SPDX-License-Identifier: Apache-2.0
// Elements of any dtype as the few C++ types that arithmetic is done in.
//
// bool; int64 and uint64 for the integers (a result wraps when it is stored); float for every float
// up to f32 (rounded when it is stored), double for f64; complex<float>, complex<double>. Loops are
// written once for each of these seven, not for each of the 23 dtypes.
#pragma once

#include <complex>
#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "support/dtype.h"
#include "support/tensor.h"

namespace jaxport::eval {

template <class T>
concept Boolean = std::same_as<T, bool>;
template <class T>
concept Integer = std::same_as<T, std::int64_t> || std::same_as<T, std::uint64_t>;
template <class T>
concept Floating = std::floating_point<T>;
template <class T>
concept Complex = std::same_as<T, std::complex<float>> || std::same_as<T, std::complex<double>>;
template <class T>
concept Inexact = Floating<T> || Complex<T>;
template <class T>
concept Ordered = Boolean<T> || Integer<T> || Floating<T>;
template <class T>
concept Number = Integer<T> || Inexact<T>;

enum class Class : std::uint8_t {
  kBool,
  kSigned,
  kUnsigned,
  kFloat,
  kDouble,
  kComplexFloat,
  kComplexDouble,
  kNone,  // strings and keys: no arithmetic
};
Class class_of(DType dtype);
// The class for sums over many elements: float widens to double.
Class accumulator_class_of(DType dtype);

// Elements [begin, begin + count) of a tensor of T's kind (bool, integer, float, complex), widened.
template <class T>
void load(const Tensor& tensor, std::int64_t begin, std::int64_t count, T* into);
// The inverse: integers wrap, floats round to nearest even (f64 to a 16-bit float through f32, as
// XLA does).
template <class T>
void store(const T* from, std::int64_t count, MutableTensor& tensor, std::int64_t begin);

// All elements at once, for what cannot be done block by block.
template <class T>
struct Array {
  explicit Array(std::int64_t count)
      : count_(count),
        data_(std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(count))) {}
  T* begin() { return data_.get(); }
  T* end() { return data_.get() + count_; }
  const T* begin() const { return data_.get(); }
  const T* end() const { return data_.get() + count_; }
  T& operator[](std::int64_t i) { return data_[i]; }
  const T& operator[](std::int64_t i) const { return data_[i]; }
  std::int64_t size() const { return count_; }

 private:
  std::int64_t count_;
  std::unique_ptr<T[]> data_;
};

template <class T>
Array<T> load_all(const Tensor& tensor) {
  Array<T> elements(tensor.size());
  load(tensor, 0, elements.size(), elements.begin());
  return elements;
}

template <class T>
Tensor store_all(const Array<T>& elements, DType dtype, Shape shape) {
  MutableTensor out = allocate(dtype, std::move(shape));
  store(elements.begin(), elements.size(), out, 0);
  return std::move(out.tensor);
}

// Smallest and largest value of a dtype, infinite for floats: where max and min start.
template <Ordered T>
T lowest(DType dtype);
template <Ordered T>
T highest(DType dtype);

// Calls visit(T{}) with the type of the class. Throws refusal() for kNone and for types that visit
// does not take.
template <class Result = void, class Visit, class Refusal>
Result with_class(Class c, const Visit& visit, const Refusal& refusal) {
  const auto visit_as = [&]<class T>(T zero) -> Result {
    if constexpr (std::is_invocable_v<Visit, T>) {
      return visit(zero);
    } else {
      throw refusal();
    }
  };
  switch (c) {
    case Class::kBool:
      return visit_as(bool{});
    case Class::kSigned:
      return visit_as(std::int64_t{});
    case Class::kUnsigned:
      return visit_as(std::uint64_t{});
    case Class::kFloat:
      return visit_as(float{});
    case Class::kDouble:
      return visit_as(double{});
    case Class::kComplexFloat:
      return visit_as(std::complex<float>{});
    case Class::kComplexDouble:
      return visit_as(std::complex<double>{});
    case Class::kNone:
      break;
  }
  throw refusal();
}

}  // namespace jaxport::eval

// SPDX-License-Identifier: Apache-2.0
#include "support/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "jaxport/error.h"
#include "support/hash.h"
#include "support/watch.h"

namespace jaxport {
namespace {

constexpr std::align_val_t kAlignment{64};

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <class T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

[[noreturn]] void no_number(DType dtype) {
  throw Error("BUG", fmt::format("an element of dtype {} is not a real number", name_of(dtype)));
}

// i4 is stored sign-extended in one byte, as numpy does; only the low half counts.
std::int64_t sign_extend_4(std::uint8_t bits) { return ((bits & 0xf) ^ 8) - 8; }

std::size_t checked_bytes(DType dtype, const Shape& shape) {
  std::int64_t bytes;
  if (__builtin_mul_overflow(element_count(shape), std::int64_t{byte_width(dtype)}, &bytes)) {
    throw Error("E022", fmt::format("a {} tensor of {} elements has too many bytes", name_of(dtype),
                                    element_count(shape)));
  }
  return static_cast<std::size_t>(bytes);
}

void store_int(std::byte* at, DType dtype, std::int64_t value) {
  switch (dtype) {
    case DType::kBool:
      return store(at, static_cast<std::uint8_t>(value != 0));
    case DType::kI4:
      return store(at, static_cast<std::int8_t>(sign_extend_4(static_cast<std::uint8_t>(value))));
    case DType::kU4:
      return store(at, static_cast<std::uint8_t>(value & 0xf));
    case DType::kI8:
    case DType::kU8:
      return store(at, static_cast<std::uint8_t>(value));
    case DType::kI16:
    case DType::kU16:
      return store(at, static_cast<std::uint16_t>(value));
    case DType::kI32:
    case DType::kU32:
      return store(at, static_cast<std::uint32_t>(value));
    case DType::kI64:
    case DType::kU64:
      return store(at, value);
    default:
      no_number(dtype);
  }
}

// Truncates; saturates at the ends of 64 bits, and NaN gives 0, as XLA on CPU does.
std::int64_t to_int(double value) {
  if (value != value) return 0;
  if (value >= 0x1p63) return INT64_MAX;
  if (value <= -0x1p63) return INT64_MIN;
  return static_cast<std::int64_t>(value);
}

std::int64_t largest_int(DType dtype) {
  return is_signed(dtype) ? INT64_MAX >> (64 - bit_width(dtype)) : -1;  // -1: all bits are set
}
std::int64_t smallest_int(DType dtype) {
  return is_signed(dtype) ? INT64_MIN >> (64 - bit_width(dtype)) : 0;
}

}  // namespace

bool contains(const Ints& list, std::int64_t item) {
  return std::ranges::find(list, item) != list.end();
}

std::int64_t element_count(std::span<const std::int64_t> shape) {
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  std::int64_t count = 1;
  for (const std::int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(count, size, &count)) {
      throw Error("E022", fmt::format("shape ({}) has a negative or too large number of elements",
                                      fmt::join(shape, ", ")));
    }
  }
  return count;
}

double Tensor::at(std::int64_t index) const {
  const std::byte* element = data.get() + index * byte_width(dtype);
  switch (dtype) {
    case DType::kF64:
      return load<double>(element);
    case DType::kF32:
      return load<float>(element);
    case DType::kU64:
      return static_cast<double>(load<std::uint64_t>(element));
    case DType::kBF16:
      return bf16_to_float(load<std::uint16_t>(element));
    case DType::kF16:
      return f16_to_float(load<std::uint16_t>(element));
    default:
      break;
  }
  if (is_float(dtype)) return small_float_to_double(dtype, load<std::uint8_t>(element));
  return static_cast<double>(int_at(index));
}

std::int64_t Tensor::int_at(std::int64_t index) const {
  const std::byte* element = data.get() + index * byte_width(dtype);
  switch (dtype) {
    case DType::kBool:
      return load<std::uint8_t>(element) != 0;
    case DType::kI4:
      return sign_extend_4(load<std::uint8_t>(element));
    case DType::kU4:
      return load<std::uint8_t>(element) & 0xf;
    case DType::kI8:
      return load<std::int8_t>(element);
    case DType::kU8:
      return load<std::uint8_t>(element);
    case DType::kI16:
      return load<std::int16_t>(element);
    case DType::kU16:
      return load<std::uint16_t>(element);
    case DType::kI32:
      return load<std::int32_t>(element);
    case DType::kU32:
      return load<std::uint32_t>(element);
    case DType::kI64:
    case DType::kU64:
      return load<std::int64_t>(element);
    default:
      no_number(dtype);
  }
}

void Tensor::require_width(std::size_t bytes) const {
  const auto width = static_cast<std::size_t>(byte_width(dtype));
  if (width > 0 && width % bytes == 0) return;
  throw Error("BUG", fmt::format("{} is taken for numbers of {} bytes", name_of(dtype), bytes));
}

MutableTensor allocate(DType dtype, Shape shape) {
  const std::size_t bytes = checked_bytes(dtype, shape);
  watch().require_bytes(bytes, "an array that the compiler computes");
  auto* memory =
      static_cast<std::byte*>(::operator new(std::max<std::size_t>(bytes, 1), kAlignment));
  std::shared_ptr<const std::byte> owner(memory, [](const std::byte* block) {
    ::operator delete(const_cast<std::byte*>(block), kAlignment);
  });
  return {.tensor = {.dtype = dtype, .shape = std::move(shape), .data = std::move(owner)},
          .bytes = memory};
}

// An infinity is the smallest or largest number of an integer dtype; of bool, false or true.
Tensor scalar(DType dtype, double value) {
  MutableTensor out = allocate(dtype, {});
  switch (dtype) {
    case DType::kF64:
      store(out.bytes, value);
      return out.tensor;
    case DType::kF32:
      store(out.bytes, static_cast<float>(value));
      return out.tensor;
    case DType::kC64:
      store(out.bytes, static_cast<float>(value));
      store(out.bytes + sizeof(float), 0.0f);
      return out.tensor;
    case DType::kC128:
      store(out.bytes, value);
      store(out.bytes + sizeof(double), 0.0);
      return out.tensor;
    case DType::kBool:
      store(out.bytes, static_cast<std::uint8_t>(value != 0 && value != -INFINITY));
      return out.tensor;
    case DType::kU64:
      if (value >= 0x1p63 && value < 0x1p64) {
        store(out.bytes, static_cast<std::uint64_t>(value));
        return out.tensor;
      }
      break;
    default:
      break;
  }
  if (is_float(dtype)) {
    const std::uint16_t bits = double_to_small_float(dtype, value);
    std::memcpy(out.bytes, &bits, byte_width(dtype));
  } else if (std::isinf(value)) {
    store_int(out.bytes, dtype, value > 0 ? largest_int(dtype) : smallest_int(dtype));
  } else {
    store_int(out.bytes, dtype, to_int(value));
  }
  return out.tensor;
}

Tensor int_scalar(DType dtype, std::int64_t value) {
  if (is_float(dtype) || is_complex(dtype)) return scalar(dtype, static_cast<double>(value));
  MutableTensor out = allocate(dtype, {});
  store_int(out.bytes, dtype, value);
  return out.tensor;
}

Tensor int64s(std::span<const std::int64_t> values) {
  MutableTensor out = allocate(DType::kI64, {static_cast<std::int64_t>(values.size())});
  std::ranges::copy(values, out.as<std::int64_t>());
  return out.tensor;
}

bool same_bytes(const Tensor& lhs, const Tensor& rhs) {
  if (lhs.dtype != rhs.dtype || lhs.shape != rhs.shape) return false;
  const std::size_t bytes = lhs.nbytes();
  return lhs.data == rhs.data || bytes == 0 ||
         std::memcmp(lhs.data.get(), rhs.data.get(), bytes) == 0;
}

std::uint64_t content_hash(const Tensor& tensor) {
  std::uint64_t seed = mix(static_cast<std::uint64_t>(tensor.dtype), tensor.shape.size());
  for (const std::int64_t size : tensor.shape) seed = mix(seed, static_cast<std::uint64_t>(size));
  return hash_bytes(tensor.data.get(), tensor.nbytes(), seed);
}

}  // namespace jaxport

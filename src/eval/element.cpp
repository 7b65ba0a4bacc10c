// SPDX-License-Identifier: Apache-2.0
#include "eval/element.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "jaxport/error.h"

namespace jaxport::eval {
namespace {

// A codec says how one dtype lies in memory: Stored is its bytes, Value what they mean.
template <class T>
struct Plain {
  using Stored = T;
  using Value = T;
  Value decode(Stored s) const { return s; }
  Stored encode(Value v) const { return v; }
};

struct BoolCodec {
  using Stored = std::uint8_t;
  using Value = bool;
  Value decode(Stored s) const { return s != 0; }
  Stored encode(Value v) const { return v ? 1 : 0; }
};

// Four-bit integers take one byte each, sign-extended; only the low half counts when read.
template <class T>
struct NibbleCodec {
  using Stored = T;
  using Value = T;
  Value decode(Stored s) const {
    return static_cast<Value>(static_cast<Value>(static_cast<unsigned>(s) << 4) >> 4);
  }
  Stored encode(Value v) const { return decode(v); }
};

template <float (*Decode)(std::uint16_t), std::uint16_t (*Encode)(float)>
struct HalfCodec {
  using Stored = std::uint16_t;
  using Value = float;
  Value decode(Stored s) const { return Decode(s); }
  Stored encode(Value v) const { return Encode(v); }
};
using BF16Codec = HalfCodec<bf16_to_float, float_to_bf16>;
using F16Codec = HalfCodec<f16_to_float, float_to_f16>;

struct TinyFloatCodec {
  using Stored = std::uint8_t;
  using Value = float;
  DType dtype;
  Value decode(Stored s) const { return static_cast<float>(small_float_to_double(dtype, s)); }
  Stored encode(Value v) const { return static_cast<Stored>(double_to_small_float(dtype, v)); }
};

template <class Visit>
void with_codec(DType dtype, Visit&& visit) {
  switch (dtype) {
    case DType::kBool:
      return visit(BoolCodec{});
    case DType::kI4:
      return visit(NibbleCodec<std::int8_t>{});
    case DType::kI8:
      return visit(Plain<std::int8_t>{});
    case DType::kI16:
      return visit(Plain<std::int16_t>{});
    case DType::kI32:
      return visit(Plain<std::int32_t>{});
    case DType::kI64:
      return visit(Plain<std::int64_t>{});
    case DType::kU4:
      return visit(NibbleCodec<std::uint8_t>{});
    case DType::kU8:
      return visit(Plain<std::uint8_t>{});
    case DType::kU16:
      return visit(Plain<std::uint16_t>{});
    case DType::kU32:
      return visit(Plain<std::uint32_t>{});
    case DType::kU64:
      return visit(Plain<std::uint64_t>{});
    case DType::kF8E4M3FN:
    case DType::kF8E4M3FNUZ:
    case DType::kF8E5M2:
    case DType::kF8E5M2FNUZ:
    case DType::kF8E8M0FNU:
    case DType::kF4E2M1FN:
      return visit(TinyFloatCodec{dtype});
    case DType::kBF16:
      return visit(BF16Codec{});
    case DType::kF16:
      return visit(F16Codec{});
    case DType::kF32:
      return visit(Plain<float>{});
    case DType::kF64:
      return visit(Plain<double>{});
    case DType::kC64:
      return visit(Plain<std::complex<float>>{});
    case DType::kC128:
      return visit(Plain<std::complex<double>>{});
    case DType::kString:
    case DType::kKey:
      break;
  }
  throw Error("E040", fmt::format("no evaluation for dtype {}", name_of(dtype)));
}

template <class Value, class T>
constexpr bool same_kind() {
  if constexpr (Complex<T>) return Complex<Value>;
  if constexpr (Floating<T>) return Floating<Value>;
  if constexpr (Boolean<T>) return Boolean<Value>;
  return Integer<T> && std::integral<Value>;
}

// A program from a file may declare any result dtype, so this is an error of the input.
[[noreturn]] void other_kind(DType dtype) {
  throw Error("E041", fmt::format("dtype {} does not fit the operation", name_of(dtype)));
}

}  // namespace

// Bytes of a file mapping may lie anywhere, so elements move through memcpy.
template <class T>
void load(const Tensor& tensor, std::int64_t begin, std::int64_t count, T* into) {
  with_codec(tensor.dtype, [&]<class Codec>(const Codec& codec) {
    using Stored = typename Codec::Stored;
    if constexpr (same_kind<typename Codec::Value, T>()) {
      const std::byte* from = tensor.data.get() + begin * static_cast<std::int64_t>(sizeof(Stored));
      if constexpr (std::same_as<Codec, Plain<T>>) {
        std::memcpy(into, from, static_cast<std::size_t>(count) * sizeof(T));
        return;
      }
      for (std::int64_t i = 0; i < count; ++i) {
        Stored stored;
        std::memcpy(&stored, from + i * static_cast<std::int64_t>(sizeof stored), sizeof stored);
        into[i] = static_cast<T>(codec.decode(stored));  // NOLINT: i8 is a number, not a character
      }
    } else {
      other_kind(tensor.dtype);
    }
  });
}

template <class T>
void store(const T* from, std::int64_t count, MutableTensor& tensor, std::int64_t begin) {
  with_codec(tensor.tensor.dtype, [&]<class Codec>(const Codec& codec) {
    using Stored = typename Codec::Stored;
    if constexpr (same_kind<typename Codec::Value, T>()) {
      std::byte* into = tensor.bytes + begin * static_cast<std::int64_t>(sizeof(Stored));
      if constexpr (std::same_as<Codec, Plain<T>>) {
        std::memcpy(into, from, static_cast<std::size_t>(count) * sizeof(T));
        return;
      }
      for (std::int64_t i = 0; i < count; ++i) {
        const Stored stored = codec.encode(static_cast<typename Codec::Value>(from[i]));
        std::memcpy(into + i * static_cast<std::int64_t>(sizeof stored), &stored, sizeof stored);
      }
    } else {
      other_kind(tensor.tensor.dtype);
    }
  });
}

Class class_of(DType dtype) {
  if (dtype == DType::kBool) return Class::kBool;
  if (is_signed(dtype)) return Class::kSigned;
  if (is_unsigned(dtype)) return Class::kUnsigned;
  if (dtype == DType::kF64) return Class::kDouble;
  if (is_float(dtype)) return Class::kFloat;
  if (dtype == DType::kC64) return Class::kComplexFloat;
  if (dtype == DType::kC128) return Class::kComplexDouble;
  return Class::kNone;
}

Class accumulator_class_of(DType dtype) {
  const Class c = class_of(dtype);
  if (c == Class::kFloat) return Class::kDouble;
  return c == Class::kComplexFloat ? Class::kComplexDouble : c;
}

template <Ordered T>
T lowest(DType dtype) {
  if constexpr (Floating<T>) {
    return -std::numeric_limits<T>::infinity();
  } else if constexpr (std::same_as<T, std::int64_t>) {
    return std::numeric_limits<std::int64_t>::min() >> (64 - bit_width(dtype));
  } else {
    return T{0};
  }
}

template <Ordered T>
T highest(DType dtype) {
  if constexpr (Floating<T>) {
    return std::numeric_limits<T>::infinity();
  } else if constexpr (Boolean<T>) {
    return true;
  } else {
    return std::numeric_limits<T>::max() >> (64 - bit_width(dtype));
  }
}

template void load(const Tensor&, std::int64_t, std::int64_t, bool*);
template void load(const Tensor&, std::int64_t, std::int64_t, std::int64_t*);
template void load(const Tensor&, std::int64_t, std::int64_t, std::uint64_t*);
template void load(const Tensor&, std::int64_t, std::int64_t, float*);
template void load(const Tensor&, std::int64_t, std::int64_t, double*);
template void load(const Tensor&, std::int64_t, std::int64_t, std::complex<float>*);
template void load(const Tensor&, std::int64_t, std::int64_t, std::complex<double>*);
template void store(const bool*, std::int64_t, MutableTensor&, std::int64_t);
template void store(const std::int64_t*, std::int64_t, MutableTensor&, std::int64_t);
template void store(const std::uint64_t*, std::int64_t, MutableTensor&, std::int64_t);
template void store(const float*, std::int64_t, MutableTensor&, std::int64_t);
template void store(const double*, std::int64_t, MutableTensor&, std::int64_t);
template void store(const std::complex<float>*, std::int64_t, MutableTensor&, std::int64_t);
template void store(const std::complex<double>*, std::int64_t, MutableTensor&, std::int64_t);
template bool lowest(DType);
template std::int64_t lowest(DType);
template std::uint64_t lowest(DType);
template float lowest(DType);
template double lowest(DType);
template bool highest(DType);
template std::int64_t highest(DType);
template std::uint64_t highest(DType);
template float highest(DType);
template double highest(DType);

}  // namespace jaxport::eval

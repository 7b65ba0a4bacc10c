// SPDX-License-Identifier: Apache-2.0
// Floats of 16 bits and fewer, as ml_dtypes defines them.
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "jaxport/error.h"
#include "support/tensor.h"

namespace jaxport {
namespace {

// Codes are bit patterns without the sign. Finite values have codes 0 … largest, in rising order.
struct Format {
  int bits, mantissa, bias;
  int largest;       // code of the largest finite value
  int overflow;      // code for what rounds beyond it; NaN when the format has no infinity
  int nan;           // code of NaN
  bool signed_zero;  // false: the pattern of -0 is NaN instead
};

std::optional<Format> format_of(DType dtype) {
  switch (dtype) {
    case DType::kF8E4M3FN:
      return Format{8, 3, 7, 0x7e, 0x7f, 0x7f, true};
    case DType::kF8E4M3FNUZ:
      return Format{8, 3, 8, 0x7f, -1, -1, false};
    case DType::kF8E5M2:
      return Format{8, 2, 15, 0x7b, 0x7c, 0x7e, true};
    case DType::kF8E5M2FNUZ:
      return Format{8, 2, 16, 0x7f, -1, -1, false};
    case DType::kF4E2M1FN:
      return Format{4, 1, 1, 7, 7, 8, true};
    case DType::kBF16:
      return Format{16, 7, 127, 0x7f7f, 0x7f80, 0x7fc0, true};
    case DType::kF16:
      return Format{16, 10, 15, 0x7bff, 0x7c00, 0x7e00, true};
    default:
      return std::nullopt;
  }
}

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// f8_e8m0fnu holds powers of two only: no sign, no zero, 0xff is NaN. Ties go up.
constexpr int kE8M0Bias = 127, kE8M0NaN = 0xff;

std::uint16_t encode_e8m0(double value) {
  if (!(value > 0) || std::isinf(value)) return kE8M0NaN;
  const int exponent = std::max(std::ilogb(value), -kE8M0Bias);
  const double significand = std::ldexp(value, -exponent);
  const int code = exponent + kE8M0Bias + (significand >= 1.5 ? 1 : 0);
  return static_cast<std::uint16_t>(std::min(code, kE8M0NaN));
}

// The code of a finite, non-negative value: a significand that rounds up to the next power of two
// carries into the exponent by itself.
int magnitude_code(const Format& format, double magnitude) {
  if (magnitude == 0) return 0;
  const int exponent = std::max(std::ilogb(magnitude), 1 - format.bias);
  if (exponent > format.bias + 1) return format.overflow;
  const double significand = std::nearbyint(std::ldexp(magnitude, format.mantissa - exponent));
  const int code =
      ((exponent + format.bias - 1) << format.mantissa) + static_cast<int>(significand);
  return code > format.largest ? format.overflow : code;
}

[[noreturn]] void not_a_small_float(DType dtype) {
  throw Error("BUG", std::string(name_of(dtype)) + " is not a float of at most 16 bits");
}

}  // namespace

double small_float_to_double(DType dtype, std::uint16_t bits) {
  if (dtype == DType::kF8E8M0FNU) {
    return bits == kE8M0NaN ? kNaN : std::ldexp(1.0, bits - kE8M0Bias);
  }
  const std::optional<Format> format = format_of(dtype);
  if (!format) not_a_small_float(dtype);
  const int sign_bit = 1 << (format->bits - 1);
  const bool negative = (bits & sign_bit) != 0;
  const int code = bits & (sign_bit - 1);
  if (!format->signed_zero && negative && code == 0) return kNaN;
  double magnitude = kNaN;
  if (code <= format->largest) {
    const int exponent = std::max(code >> format->mantissa, 1);
    const int significand = code - ((exponent - 1) << format->mantissa);
    magnitude = std::ldexp(significand, exponent - format->bias - format->mantissa);
  } else if (code == format->overflow && format->overflow != format->nan) {
    magnitude = kInfinity;
  }
  return negative ? -magnitude : magnitude;
}

std::uint16_t double_to_small_float(DType dtype, double value) {
  if (dtype == DType::kF8E8M0FNU) return encode_e8m0(value);
  const std::optional<Format> format = format_of(dtype);
  if (!format) not_a_small_float(dtype);
  const int sign_bit = 1 << (format->bits - 1);
  int code = std::isnan(value)   ? format->nan
             : std::isinf(value) ? format->overflow
                                 : magnitude_code(*format, std::fabs(value));
  if (code < 0) return static_cast<std::uint16_t>(sign_bit);  // the NaN of formats without -0
  if (std::signbit(value) && (code != 0 || format->signed_zero)) code |= sign_bit;
  return static_cast<std::uint16_t>(code & (2 * sign_bit - 1));
}

float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  // Rounding could carry a NaN into the sign bit; the quiet bit keeps it one.
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float f16_to_float(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t code = bits & 0x7fffu;
  std::uint32_t magnitude;
  if (code >= 0x7c00u) {  // infinity, NaN
    magnitude = 0x7f800000u | ((code & 0x3ffu) << 13);
  } else if (code >= 0x400u) {
    magnitude = (code << 13) + ((127u - 15u) << 23);
  } else {  // subnormal: code * 2^-24 is exact
    magnitude = std::bit_cast<std::uint32_t>(static_cast<float>(code) * 0x1p-24f);
  }
  return std::bit_cast<float>(sign | magnitude);
}

std::uint16_t float_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t code;
  if (magnitude > 0x7f800000u) {
    code = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  } else if (magnitude >= 0x47800000u) {  // 65536 and more
    code = 0x7c00u;
  } else if (magnitude >= 0x38800000u) {  // normal: round the 13 bits that do not fit
    const std::uint32_t rebased = magnitude - ((127u - 15u) << 23);
    code = (rebased + 0xfffu + ((rebased >> 13) & 1u)) >> 13;
  } else {  // subnormal: the float adder rounds at bit 2^-24
    const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
    code = std::bit_cast<std::uint32_t>(aligned) - std::bit_cast<std::uint32_t>(0.5f);
  }
  return static_cast<std::uint16_t>(sign | code);
}

double rounded_to(DType dtype, double value) {
  if (dtype == DType::kF64) return value;
  const auto narrow = static_cast<float>(value);
  if (dtype == DType::kBF16) return bf16_to_float(float_to_bf16(narrow));
  return dtype == DType::kF16 ? f16_to_float(float_to_f16(narrow)) : narrow;
}

}  // namespace jaxport

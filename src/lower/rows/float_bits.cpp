// SPDX-License-Identifier: Apache-2.0
#include "lower/rows/float_bits.h"

#include <cmath>

namespace jaxport::lower {
namespace {

// A float is (-1)^sign * mantissa * 2^(exponent - bias - mantissa bits).
struct Format {
  int mantissa, exponent;
  int bias() const { return (1 << (exponent - 1)) - 1; }
  // The unit of subnormal numbers is 2^lowest.
  int lowest() const { return 1 - bias() - mantissa; }
  // What the exponent counts in the code, and what the sign adds to it.
  std::int64_t scale() const { return std::int64_t{1} << mantissa; }
  std::int64_t sign() const {
    return static_cast<std::int64_t>(std::uint64_t{1} << (mantissa + exponent));
  }
  // The code of infinity; a larger one is a NaN.
  std::int64_t infinity() const { return ((std::int64_t{1} << exponent) - 1) << mantissa; }
};

Format format_of(Ctx& c, DType dtype) {
  const int mantissa = mantissa_bits(dtype);
  if (bit_width(dtype) < 16) c.unsupported("floats of fewer than 16 bits are not supported");
  return {mantissa, bit_width(dtype) - 1 - mantissa};
}

// With e = floor(log2 |x|), at least that of the smallest normal number, and m = |x| / 2^(e -
// mantissa bits), the code is (e + bias - 1) * 2^(mantissa bits) + m, for subnormal numbers too.
Value bits_of_double(Ctx& c, const Value& x) {
  const Format format = format_of(c, x.dtype());
  const double smallest = std::ldexp(1, 1 - format.bias());
  const double largest = std::ldexp(2 - std::ldexp(1, -format.mantissa), format.bias());
  const Value size = abs(x), exponent = floor_log2(min(max(size, smallest), largest));
  const Value mantissa = cast(size / two_to(exponent - format.mantissa), DType::kI64);
  const Value biased = cast(exponent + (format.bias() - 1), DType::kI64);
  Value code = biased * format.scale() + mantissa;
  code = where(is_inf(x), format.infinity(), code);
  const std::int64_t quiet = format.infinity() + (std::int64_t{1} << (format.mantissa - 1));
  code = where(is_nan(x), quiet, code);
  return where(has_sign(x), code + format.sign(), code);
}

// The same for floats that f64 has room for. Infinity and NaN are 2^(bias + 1) and half as much
// again: the formula gives their codes. No logarithm of a number of at most 24 digits is so close
// to the next integer that `margin` reaches it, and none that is an integer is rounded down by so
// much.
Value bits_of_narrow(Ctx& c, const Value& x, DType to) {
  constexpr double margin = 0x1p-30;
  const Format format = format_of(c, x.dtype());
  const double infinity = std::ldexp(1, format.bias() + 1);
  const double smallest = std::ldexp(1, 1 - format.bias());
  const Value wide = cast(x, DType::kF64), finite = clip(abs(wide), 0, infinity);
  const Value size = where(is_nan(x), 1.5 * infinity, finite);
  const Value logarithm = log(clip(size, smallest, 2 * infinity)) * (1 / std::log(2.0));
  const Value exponent = floor(logarithm + margin);
  const Value mantissa = size * two_to(format.mantissa - exponent);
  const Value code = (exponent + (format.bias() - 1)) * static_cast<double>(format.scale());
  const auto sign = static_cast<double>(format.sign());
  const Value signs = where(has_sign(wide), like(wide, is_signed(to) ? -sign : sign), 0.0);
  return cast(code + mantissa + signs, to);
}

Value double_from_bits(Ctx& c, const Value& bits) {
  const Format format = format_of(c, DType::kF64);
  const Value negative = bits < 0, code = where(negative, bits - format.sign(), bits);
  const Value exponent = code / format.scale(), rest = code % format.scale();
  const Value is_normal = exponent > 0;
  const Value mantissa = where(is_normal, rest + format.scale(), rest);
  const Value step = max(exponent, 1) - 1;
  // In three factors, since the whole range of f64 is larger than its largest power of two.
  const Value half = step / 2;
  Value size = cast(mantissa, DType::kF64) * std::ldexp(1, format.lowest());
  for (const Value& part : {half, step - half}) size = size * two_to(cast(part, DType::kF64));
  size = where(equal(code, format.infinity()), kInfinity, size);
  size = where(code > format.infinity(), std::nan(""), size);
  return size * where(negative, like(size, -1), 1.0);
}

// With s = max(exponent in the code - 1, 0) the number is (code - s * 2^(mantissa bits)) * 2^(s +
// lowest). The code of infinity gives 2^(bias + 1), which `dtype` rounds to infinity. A product
// keeps the sign of -0, which ONNX Runtime's Where does not.
Value narrow_from_bits(Ctx& c, const Value& bits, DType dtype) {
  const Format format = format_of(c, dtype);
  const Value given = cast(bits, DType::kF64);
  const auto sign = static_cast<double>(format.sign());
  const bool has_signs = is_signed(bits.dtype()) && bit_width(bits.dtype()) == bit_width(dtype);
  const Value negative = has_signs ? given < 0 : given >= sign;
  const Value code = where(negative, given + (has_signs ? sign : -sign), given);
  const auto scale = static_cast<double>(format.scale());
  const Value step = clip(floor(code * (1 / scale) - 1), 0, kInfinity);
  const Value mantissa = code - step * scale;
  Value size = mantissa * two_to(step + format.lowest());
  size = where(code > static_cast<double>(format.infinity()), std::nan(""), size);
  return cast(size * where(negative, like(size, -1), 1.0), dtype);
}

}  // namespace

// The sum has the sign of x, also where x is -0, whose reciprocal is -inf; that of a NaN is NaN.
Value has_sign(const Value& x) { return x + reciprocal(x) < 0; }

Value two_to(const Value& exponent) { return pow(2, exponent); }

// The logarithm may round to the other side of an integer.
Value floor_log2(const Value& x) {
  const Value guess = floor(log(x) * (1 / std::log(2.0))), power = two_to(guess);
  const Value one = like(x, 1), is_low = x >= power + power;
  const Value raised = where(is_low, guess + one, guess);
  return where(x < power, guess - one, raised);
}

Value bits_of_float(Ctx& c, const Value& x, DType to) {
  return x.dtype() == DType::kF64 ? cast(bits_of_double(c, x), to) : bits_of_narrow(c, x, to);
}

Value float_from_bits(Ctx& c, const Value& bits, DType dtype) {
  if (dtype == DType::kF64) return double_from_bits(c, cast(bits, DType::kI64));
  return narrow_from_bits(c, bits, dtype);
}

Value total_order(Ctx& c, const Value& x) {
  const bool is_double = x.dtype() == DType::kF64;
  const Value bits = c.op.BitCast(is_double ? x : cast(x, DType::kF32),
                                  onnx::Args{{"to", is_double ? DType::kI64 : DType::kI32}});
  const Value sign = like(bits, is_double ? -0x1p63 : -0x1p31), is_negative = bits < 0;
  return where(is_negative, c.op.BitwiseNot(bits - sign), bits);
}

}  // namespace jaxport::lower

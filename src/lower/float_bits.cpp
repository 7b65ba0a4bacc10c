// SPDX-License-Identifier: Apache-2.0
#include "lower/float_bits.h"

#include <cmath>
#include <limits>

namespace jaxport::lower {
namespace {

// A float is (-1)^sign * mantissa * 2^(exponent - bias - mantissa bits).
struct Format {
  int mantissa, exponent;
  int bias() const { return (1 << (exponent - 1)) - 1; }
  // The unit of subnormal numbers is 2^lowest.
  int lowest() const { return 1 - bias() - mantissa; }
  // The code of infinity; a larger one is a NaN.
  std::int64_t infinity() const { return ((std::int64_t{1} << exponent) - 1) << mantissa; }
};

Format format_of(Ctx& c, DType dtype) {
  const int mantissa = mantissa_bits(dtype);
  if (bit_width(dtype) < 16) c.unsupported("the bits of floats of fewer than 16 bits");
  return {mantissa, bit_width(dtype) - 1 - mantissa};
}

Value number(Ctx& c, double value) { return c.op.scalar(value, DType::kF64); }
Value integer(Ctx& c, std::int64_t value) { return c.constant(int_scalar(DType::kI64, value)); }

// -0 is negative too: its reciprocal is.
Value is_negative(Ctx& c, Value x) {
  const Value zero = number(c, 0);
  return c.op.Or(c.op.Less(x, zero), c.op.Less(c.op.Reciprocal(x), zero));
}

}  // namespace

Value two_to(Ctx& c, Value exponent) { return c.op.Pow(number(c, 2), exponent); }

// floor(log2 x) of positive, finite x. The logarithm may round to the other side of an integer.
Value floor_log2(Ctx& c, Value x) {
  const Value log = c.op.Mul(c.op.Log(x), number(c, 1 / std::log(2.0)));
  const Value guess = c.op.Floor(log), power = two_to(c, guess), one = number(c, 1);
  const Value low = c.op.GreaterOrEqual(x, c.op.Add(power, power));
  const Value raised = c.op.Where(low, c.op.Add(guess, one), guess);
  return c.op.Where(c.op.Less(x, power), c.op.Sub(guess, one), raised);
}

// With e = floor(log2 |x|), at least that of the smallest normal number, and m = |x| / 2^(e -
// mantissa bits), the code is (e + bias - 1) * 2^(mantissa bits) + m, for subnormal numbers too.
Value bits_of_float(Ctx& c, Value x) {
  const Format format = format_of(c, x.dtype());
  x = c.cast(x, DType::kF64);
  const Value size = c.op.Abs(x), smallest = number(c, std::ldexp(1, 1 - format.bias()));
  const Value largest = number(c, std::ldexp(2 - std::ldexp(1, -format.mantissa), format.bias()));
  const Value finite = c.op.Min(c.op.Max(size, smallest), largest);
  const Value exponent = floor_log2(c, finite);
  const Value unit = two_to(c, c.op.Sub(exponent, number(c, format.mantissa)));
  const Value mantissa = c.cast(c.op.Div(size, unit), DType::kI64);
  const Value biased = c.op.Add(exponent, number(c, format.bias() - 1));
  const Value scale = integer(c, std::int64_t{1} << format.mantissa);
  Value code = c.op.Add(c.op.Mul(c.cast(biased, DType::kI64), scale), mantissa);
  code = c.op.Where(c.op.IsInf(x), integer(c, format.infinity()), code);
  const std::int64_t quiet = format.infinity() + (std::int64_t{1} << (format.mantissa - 1));
  code = c.op.Where(c.op.IsNaN(x), integer(c, quiet), code);
  const int sign_at = format.mantissa + format.exponent;
  const Value sign = integer(c, static_cast<std::int64_t>(std::uint64_t{1} << sign_at));
  return c.op.Where(is_negative(c, x), c.op.Add(code, sign), code);
}

Value float_from_bits(Ctx& c, Value bits, DType dtype) {
  const Format format = format_of(c, dtype);
  const int sign_at = format.mantissa + format.exponent;
  const auto sign = static_cast<std::int64_t>(std::uint64_t{1} << sign_at);
  const Value negative =
      sign_at == 63 ? c.op.Less(bits, integer(c, 0)) : c.op.GreaterOrEqual(bits, integer(c, sign));
  const Value code = c.op.Where(negative, c.op.Sub(bits, integer(c, sign)), bits);
  const Value scale = integer(c, std::int64_t{1} << format.mantissa);
  const Value exponent = c.op.Div(code, scale), rest = c.op.Mod(code, scale);
  const Value is_normal = c.op.Greater(exponent, integer(c, 0));
  const Value mantissa = c.op.Where(is_normal, c.op.Add(rest, scale), rest);
  const Value step = c.op.Sub(c.op.Max(exponent, integer(c, 1)), integer(c, 1));
  // In three factors, since the whole range of f64 is larger than its largest power of two.
  const Value half = c.op.Div(step, integer(c, 2));
  Value size = c.op.Mul(c.cast(mantissa, DType::kF64), number(c, std::ldexp(1, format.lowest())));
  for (const Value& part : {half, c.op.Sub(step, half)})
    size = c.op.Mul(size, two_to(c, c.cast(part, DType::kF64)));
  const Value infinity = integer(c, format.infinity());
  const double inf = std::numeric_limits<double>::infinity();
  size = c.op.Where(c.op.Equal(code, infinity), number(c, inf), size);
  size = c.op.Where(c.op.Greater(code, infinity), number(c, std::nan("")), size);
  return c.cast(c.op.Where(negative, c.op.Neg(size), size), dtype);
}

}  // namespace jaxport::lower

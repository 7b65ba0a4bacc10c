// SPDX-License-Identifier: Apache-2.0
// What depends on how many digits a float has.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lower/rows/float_bits.h"

namespace jaxport::lower {
namespace {

int exponent_bits(DType dtype) { return bit_width(dtype) - 1 - mantissa_bits(dtype); }
int bias_of(std::int64_t bits) { return (1 << (bits - 1)) - 1; }

// x + d with d between 0.5 and 1.5 units in the last place rounds to the neighbour of x. A unit is
// between |x| * 2^-mantissa bits and half of that.
Results nextafter(Ctx& c) {
  const Value x = c.in(0), to = c.in(1);
  const int mantissa = mantissa_bits(x.dtype()), bias = bias_of(exponent_bits(x.dtype()));
  const double largest = std::ldexp(2 - std::ldexp(1, -mantissa), bias);
  const Value finite = clip(x, -largest, largest);
  const Value share = abs(finite) * std::ldexp(1.25, -mantissa - 1);
  const Value step = max(share, std::ldexp(1, 1 - bias - mantissa));
  const Value moved = where(to > x, finite + step, finite - step);
  const Value result = where(equal(x, finite), moved, finite);
  const Value any_nan = is_nan(x) | is_nan(to);
  return where(any_nan, x + to, where(equal(x, to), to, result));
}

// Rounds to a multiple of 2^(floor(log2 |x|) - mantissa bits); with fewer exponent bits a number
// that is too large becomes infinite and one that is too small zero.
Results reduce_precision(Ctx& c) {
  const DType dtype = c.out_type().dtype;
  const Value x = cast(c.in(0), DType::kF64);
  const double smallest = std::ldexp(1, 1 - bias_of(exponent_bits(dtype)));  // normal number
  const Value size = clip(abs(x), smallest, std::numeric_limits<double>::max());
  const Value mantissa = like(x, static_cast<double>(c.param<std::int64_t>("mantissa_bits")));
  const Value unit = two_to(floor_log2(size) - mantissa);
  Value result = round(x / unit) * unit;
  const auto exponent = c.param<std::int64_t>("exponent_bits");
  if (exponent < exponent_bits(dtype)) {
    const int bias = bias_of(exponent);
    const Value rounded = abs(result);
    const Value infinite = result * kInfinity;
    const Value too_large = rounded >= std::ldexp(1, bias + 1);
    const Value too_small = rounded < std::ldexp(1, 1 - bias);
    result = where(too_small, result * 0, result);
    result = where(too_large, infinite, result);
  }
  return cast(result, dtype);
}

constexpr Row kPrecisionRows[] = {{"nextafter", nextafter}, {"reduce_precision", reduce_precision}};
static_assert(std::ranges::is_sorted(kPrecisionRows, {}, &Row::primitive));

}  // namespace

std::span<const Row> precision_rows() { return kPrecisionRows; }

}  // namespace jaxport::lower

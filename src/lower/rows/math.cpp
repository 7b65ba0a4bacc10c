// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "lower/rows/float_bits.h"

namespace jaxport::lower {
namespace {

// A formula of several roundings has no digits of a 16-bit float to spare: it is computed in f32.
template <Value (*Formula)(const Value&)>
Results in_f32(Ctx& c) {
  auto [x] = c.in<1>();
  const DType dtype = x.dtype();
  return cast(Formula(byte_width(dtype) < 4 ? cast(x, DType::kF32) : x), dtype);
}

// A value whose ONNX kernel would lose digits near zero is computed by an identity that does not.

// expm1(x) = tanh(x/2) * (exp(x) + 1)
Value expm1(const Value& x) {
  const Value half = x * 0.5;
  return tanh(half) * (exp(x) + 1);
}

// log1p(x) = x * (log(u) / (u - 1)) with u = 1 + x rounded; x itself where u is 1. A product keeps
// the sign of x = -0, which ONNX Runtime's Where does not; the bound is for x = inf.
Value log1p(const Value& x) {
  const double largest = x.dtype() == DType::kF64 ? std::numeric_limits<double>::max()
                                                  : std::numeric_limits<float>::max();
  const Value u = x + 1;
  return x * where(equal(u, 1), 1, log(u) / min(u - 1, largest));
}

// erfc(x) = 1 - erf(x) for |x| < 1. Beyond, the difference would lose digits, and S. Moshier's
// polynomials give erfc(x) exp(x^2) x in 1/x^2 for x < 2 and above.
constexpr double kErfcNear[] = {2.326819970068386e-2,  -1.387039388740657e-1, 3.687424674597105e-1,
                                -5.824733027278666e-1, 6.210004621745983e-1,  -4.944515323274145e-1,
                                3.404879937665872e-1,  -2.741127028184656e-1, 5.638259427386472e-1};
constexpr double kErfcFar[] = {-1.047766399936249e1,  1.297719955372516e1, -7.495518717768503,
                               2.921019019210786,     -1.0152652792027,    4.218463358204948e-1,
                               -2.820767439740514e-1, 5.641895067754075e-1};

Value erfc(const Value& x) {
  const Value one = like(x, 1), two = like(x, 2);
  const Value size = abs(x), far = max(size, one), square = far * far, y = reciprocal(square);
  const Value shape = where(far < two, polynomial(kErfcNear, y), polynomial(kErfcFar, y));
  const Value tail = exp(-square) / far * shape, is_left = x < 0;
  const Value outside = where(is_left, two - tail, tail), inside = one - erf(x);
  return where(size < one, inside, outside);
}

Results exp2(Ctx& c) { return onnx::pow(2, c.in(0)); }

Value cbrt(const Value& x) { return sign(x) * onnx::pow(abs(x), 1.0 / 3); }

// atan2(y, x) = atan(|y| / |x|), then mirrored into its quadrant. Both may be zero or infinite.
Results atan2(Ctx& c) {
  auto [y, x] = c.in<2>();
  const Value up = abs(y), right = abs(x), zero = like(x, 0), is_diagonal = equal(up, right);
  Value slope = where(is_diagonal, 1, up / right);
  slope = where(equal(up, zero), zero, slope);
  const Value any_nan = is_nan(x) | is_nan(y);
  slope = where(any_nan, x + y, slope);
  const Value angle = atan(slope), mirrored = where(has_sign(x), M_PI - angle, angle);
  return where(has_sign(y), -mirrored, mirrored);
}

// A literal that Clip takes as a bound. ONNX Runtime's Clip ignores a bound that is NaN, where JAX
// gives NaN.
bool is_bound(const Ctx& c, const Value& x) {
  if (!x.is_scalar()) return false;
  if (!is_float(x.dtype())) return true;
  const Tensor* literal = c.op.known(x);
  return literal != nullptr && !std::isnan(literal->at(0));
}

// ONNX Clip takes scalar bounds only. Both forms give hi when lo > hi, as lax.clamp does.
Results clamp(Ctx& c) {
  auto [lo, x, hi] = c.in<3>();
  if (is_bound(c, lo) && is_bound(c, hi)) return clip(x, lo, hi);
  return onnx::min(onnx::max(x, lo), hi);
}

bool is_float_bound(const Ctx& c, std::size_t i) {
  return is_float(c.in(i).dtype()) && is_bound(c, c.in(i));
}

// With one constant bound. Clip is faster than Max and Min, and fuses with convolutions. The other
// bound is written: for one that is left out ONNX Runtime takes the largest finite number.
Results max(Ctx& c) {
  for (std::size_t i : {0u, 1u}) {
    if (is_float_bound(c, i)) return clip(c.in(1 - i), c.in(i), kInfinity);
  }
  return onnx::max(c.in(0), c.in(1));
}
Results min(Ctx& c) {
  for (std::size_t i : {0u, 1u}) {
    if (is_float_bound(c, i)) return clip(c.in(1 - i), -kInfinity, c.in(i));
  }
  return onnx::min(c.in(0), c.in(1));
}

// Rounds toward zero; numbers out of range give the nearest that is inside, NaN gives 0. In a dtype
// of which the bounds of the integers are values: f32 for 16 bits and less, f64 else.
Value saturated(Ctx& c, Value x, DType to) {
  const int bits = bit_width(to);
  const double end = std::ldexp(1, is_signed(to) ? bits - 1 : bits),
               start = is_signed(to) ? -end : 0;
  const bool is_narrow = bits <= 16 && x.dtype() != DType::kF64;
  x = cast(where(is_nan(x), 0, x), is_narrow ? DType::kF32 : DType::kF64);
  const double last = bits < 64 ? end - 1 : std::nextafter(end, 0.0);
  const Value inside = cast(clip(x, start, last), to);
  if (bits < 64) return inside;
  const auto largest = is_signed(to) ? std::numeric_limits<std::int64_t>::max() : -1;
  return where(x >= end, c.constant(int_scalar(to, largest)), inside);
}

Results convert_element_type(Ctx& c) {
  auto [x] = c.in<1>();
  const DType to = c.out_type().dtype;
  if (is_float(x.dtype()) && to == DType::kBool) return c.op.Not(equal(x, 0));
  return is_float(x.dtype()) && is_integer(to) ? saturated(c, x, to) : cast(x, to);
}

Value power(const Value& x, std::int64_t exponent) {
  if (exponent == 1) return x;
  const Value half = power(x, exponent / 2), square = half * half;
  return exponent % 2 == 0 ? square : square * x;
}

// Repeated squaring: Pow is several times slower than Mul.
Results integer_pow(Ctx& c) {
  auto [x] = c.in<1>();
  const auto exponent = c.param<std::int64_t>("y");
  const Value magnitude = power(x, std::abs(exponent));
  return exponent > 0 ? magnitude : reciprocal(magnitude);
}

Results round(Ctx& c) {
  auto [x] = c.in<1>();
  if (!c.has("rounding_method") || c.param<std::string>("rounding_method") == "to_nearest_even") {
    return onnx::round(x);
  }
  // Away from zero. Just less than a half carries every half and nothing below it, also where the
  // sum is rounded: to f32 or f64, because a runtime may compute a 16-bit float in f32.
  const DType wide = x.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  const double below_half = 0.5 - std::ldexp(1, -2 - mantissa_bits(wide));
  return sign(x) * cast(floor(cast(abs(x), wide) + below_half), x.dtype());
}

Results rsqrt(Ctx& c) { return reciprocal(sqrt(c.in(0))); }
Results square(Ctx& c) { return c.in(0) * c.in(0); }

constexpr Row kMathRows[] = {
    // sorted by primitive
    {"abs", same<"Abs">},
    {"acos", same<"Acos">},
    {"acosh", same<"Acosh">},
    {"add", same<"Add">},
    {"asin", same<"Asin">},
    {"asinh", same<"Asinh">},
    {"atan", same<"Atan">},
    {"atan2", atan2},
    {"atanh", same<"Atanh">},
    {"cbrt", in_f32<cbrt>},
    {"ceil", same<"Ceil">},
    {"clamp", clamp},
    {"convert_element_type", convert_element_type},
    {"cos", same<"Cos">},
    {"cosh", same<"Cosh">},
    {"erf", same<"Erf">},
    {"erfc", in_f32<erfc>},
    {"exp", same<"Exp">},
    {"exp2", exp2},
    {"expm1", in_f32<expm1>},
    {"floor", same<"Floor">},
    {"integer_pow", integer_pow},
    {"log", same<"Log">},
    {"log1p", in_f32<log1p>},
    {"logistic", same<"Sigmoid">},
    {"max", max},
    {"min", min},
    {"mul", same<"Mul">},
    {"neg", same<"Neg">},
    {"pow", same<"Pow">},
    {"round", round},
    {"rsqrt", rsqrt},
    {"sign", same<"Sign">},
    {"sin", same<"Sin">},
    {"sinh", same<"Sinh">},
    {"sqrt", same<"Sqrt">},
    {"square", square},
    {"sub", same<"Sub">},
    {"tan", same<"Tan">},
    {"tanh", same<"Tanh">},
};
static_assert(std::ranges::is_sorted(kMathRows, {}, &Row::primitive));

}  // namespace

std::span<const Row> math_rows() { return kMathRows; }

}  // namespace jaxport::lower

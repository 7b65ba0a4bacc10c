// SPDX-License-Identifier: Apache-2.0
// Elementary and special functions. Those whose float versions are weak are computed in double.
#include <cmath>

#include "eval/map.h"
#include "eval/special.h"

namespace jaxport::eval {
namespace {

constexpr auto kAcos = [](Inexact auto x) { return std::acos(x); };
constexpr auto kAcosh = [](Inexact auto x) { return std::acosh(x); };
constexpr auto kAsin = [](Inexact auto x) { return std::asin(x); };
constexpr auto kAsinh = [](Inexact auto x) { return std::asinh(x); };
constexpr auto kAtan = [](Inexact auto x) { return std::atan(x); };
constexpr auto kAtanh = [](Inexact auto x) { return std::atanh(x); };
constexpr auto kCos = [](Inexact auto x) { return std::cos(x); };
constexpr auto kCosh = [](Inexact auto x) { return std::cosh(x); };
constexpr auto kExp = [](Inexact auto x) { return std::exp(x); };
constexpr auto kLog = [](Inexact auto x) { return std::log(x); };
constexpr auto kSin = [](Inexact auto x) { return std::sin(x); };
constexpr auto kSinh = [](Inexact auto x) { return std::sinh(x); };
constexpr auto kSqrt = [](Inexact auto x) { return std::sqrt(x); };
constexpr auto kTan = [](Inexact auto x) { return std::tan(x); };
constexpr auto kTanh = [](Inexact auto x) { return std::tanh(x); };

constexpr auto kCbrt = [](Floating auto x) { return std::cbrt(x); };
constexpr auto kCeil = [](Floating auto x) { return std::ceil(x); };
constexpr auto kExp2 = [](Floating auto x) { return std::exp2(x); };
constexpr auto kExpm1 = [](Floating auto x) { return std::expm1(x); };
constexpr auto kFloor = [](Floating auto x) { return std::floor(x); };
constexpr auto kLog1p = [](Floating auto x) { return std::log1p(x); };
constexpr auto kAtan2 = []<Floating T>(T y, T x) { return std::atan2(y, x); };
constexpr auto kPow = []<Inexact T>(T x, T y) { return std::pow(x, y); };

template <auto F>
constexpr auto kInDouble = []<Floating T>(T x) { return static_cast<T>(F(double{x})); };

constexpr auto kErf = [](double x) { return std::erf(x); };
constexpr auto kErfc = [](double x) { return std::erfc(x); };
constexpr auto kLgamma = [](double x) { return std::lgamma(x); };

constexpr auto kLogistic = []<Inexact T>(T x) -> T {
  if constexpr (Complex<T>) {
    return T{1} / (T{1} + std::exp(-x));
  } else {
    return static_cast<T>(1 / (1 + std::exp(-double{x})));
  }
};
constexpr auto kRsqrt = []<Inexact T>(T x) {
  if constexpr (Complex<T>) {
    return T{1} / std::sqrt(x);
  } else {
    return static_cast<T>(1 / std::sqrt(double{x}));
  }
};

// The exponent may be an integer while the base is not.
Results pow(const Call& c) {
  auto operands = pointwise_operands<2>(c, c.out_shape());
  operands[1].tensor = cast(operands[1].tensor, operands[0].tensor.dtype);
  return map_operands(c, operands, kPow);
}

// Square and multiply, as lax.integer_pow expands it; integers wrap.
template <Number T>
T integer_power(T x, std::uint64_t exponent) {
  const auto multiply = [](T a, T b) {
    if constexpr (Integer<T>) {
      return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    } else {
      return a * b;
    }
  };
  T power{1};
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) power = multiply(power, x);
    x = multiply(x, x);
  }
  return power;
}

Results integer_pow(const Call& c) {
  const std::int64_t y = c.integer("y");
  const std::uint64_t magnitude =
      y < 0 ? -static_cast<std::uint64_t>(y) : static_cast<std::uint64_t>(y);
  if (y >= 0) {
    return map<1>(c, [=]<Number T>(T x) -> T { return integer_power(x, magnitude); });
  }
  return map<1>(c, [=]<Inexact T>(T x) -> T { return T{1} / integer_power(x, magnitude); });
}

Results round(const Call& c) {
  const std::string method = c.text("rounding_method");
  if (method == "to_nearest_even") return map<1>(c, [](Floating auto x) { return std::rint(x); });
  c.require(method == "away_from_zero", "unknown 'rounding_method'");
  return map<1>(c, [](Floating auto x) { return std::round(x); });
}

// The neighbour in the result's own dtype. Floats of one sign are ordered as their bits are, so a
// 16-bit float steps by one unit of its code.
template <float (*Decode)(std::uint16_t), std::uint16_t (*Encode)(float)>
float next_half(float from, float to) {
  if (std::isnan(from) || std::isnan(to)) return from + to;
  if (from == to) return to;
  if (from == 0) return std::copysign(Decode(1), to);
  const std::uint16_t bits = Encode(from);
  const bool away_from_zero = (from < to) == (from > 0);
  return Decode(static_cast<std::uint16_t>(away_from_zero ? bits + 1 : bits - 1));
}

Results nextafter(const Call& c) {
  const DType dtype = c.out_dtype();
  if (dtype == DType::kBF16) {
    return map<2>(c, [](std::same_as<float> auto x, std::same_as<float> auto y) {
      return next_half<bf16_to_float, float_to_bf16>(x, y);
    });
  }
  if (dtype == DType::kF16) {
    return map<2>(c, [](std::same_as<float> auto x, std::same_as<float> auto y) {
      return next_half<f16_to_float, float_to_f16>(x, y);
    });
  }
  if (dtype != DType::kF32 && dtype != DType::kF64) throw c.no_dtype(dtype);
  return map<2>(c, []<Floating T>(T x, T y) { return std::nextafter(x, y); });
}

constexpr Row kMathRows[] = {
    {"acos", unary<kAcos>},
    {"acosh", unary<kAcosh>},
    {"asin", unary<kAsin>},
    {"asinh", unary<kAsinh>},
    {"atan", unary<kAtan>},
    {"atan2", binary<kAtan2>},
    {"atanh", unary<kAtanh>},
    {"cbrt", unary<kCbrt>},
    {"ceil", unary<kCeil>},
    {"cos", unary<kCos>},
    {"cosh", unary<kCosh>},
    {"digamma", unary<kInDouble<digamma>>},
    {"erf", unary<kInDouble<kErf>>},
    {"erf_inv", unary<kInDouble<erf_inv>>},
    {"erfc", unary<kInDouble<kErfc>>},
    {"exp", unary<kExp>},
    {"exp2", unary<kExp2>},
    {"expm1", unary<kExpm1>},
    {"floor", unary<kFloor>},
    {"integer_pow", integer_pow},
    {"lgamma", unary<kInDouble<kLgamma>>},
    {"log", unary<kLog>},
    {"log1p", unary<kLog1p>},
    {"logistic", unary<kLogistic>},
    {"nextafter", nextafter},
    {"pow", pow},
    {"round", round},
    {"rsqrt", unary<kRsqrt>},
    {"sin", unary<kSin>},
    {"sinh", unary<kSinh>},
    {"sqrt", unary<kSqrt>},
    {"tan", unary<kTan>},
    {"tanh", unary<kTanh>},
};
static_assert(std::ranges::is_sorted(kMathRows, {}, &Row::primitive));

}  // namespace
std::span<const Row> math_rows() { return kMathRows; }
}  // namespace jaxport::eval

// SPDX-License-Identifier: Apache-2.0
#include "target/compose.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "onnx/expr.h"

namespace jaxport::target {
namespace {

using onnx::Builder;
using onnx::Value;

// cosh(x) = (h^2 + 1/h^2) / 2 with h = exp(|x| / 2), which does not overflow before the result.
Value cosh(const Value& x) {
  const Value h = exp(abs(x) * 0.5);
  return 0.5 * h * h + 0.5 / h / h;
}

// sinh(x) = tanh(x / 2) * (cosh(x) + 1), which keeps the digits of small x.
Value sinh(const Value& x) {
  const Value half = tanh(x * 0.5);
  return half * (cosh(x) + 1);
}

// cos(x) = sin(2 x) / (2 sin x) keeps the digits near the zeros of cos; 1 - 2 sin(x/2)^2 stands in
// near those of sin, and where 2 x overflows. (ONNX Runtime has the op from 1.29 on.)
Value cosine(const Value& x) {
  const Value s = sin(x), half = sin(x * 0.5);
  const Value is_flat = s * s<0.5, is_huge = abs(x)> 1e300;
  return where(is_flat | is_huge, 1 - 2 * half * half, sin(x + x) / (s + s));
}

Value tan(const Value& x) { return sin(x) / cos(x); }

// sigmoid(x) = 1 / (1 + exp(-x))
Value sigmoid(const Value& x) { return reciprocal(1 + exp(-x)); }

// log(1 + z) = log(u) * z / (u - 1) with u = 1 + z rounded; z itself where u is 1, log(u) where
// u - 1 is z.
Value log1p(const Value& z) {
  const Value u = z + 1, d = u - 1, log_u = log(u);
  const Value corrected = where(equal(d, z), log_u, log_u * (z / d));
  return where(equal(u, 1), z, corrected);
}

// log(2 * a) where a^2 would overflow or swallow the 1.
Value or_large(const Value& a, const Value& result) {
  return where(a > 1e9, log(a) + std::log(2.0), result);
}

// asinh(a) = log1p(a + a^2 / (1 + sqrt(a^2 + 1))) for a >= 0
Value asinh(const Value& x) {
  const Value a = abs(x), square = a * a;
  return sign(x) * or_large(a, log1p(a + square / (1 + sqrt(square + 1))));
}

// acosh(x) = log1p(t + sqrt(2 t + t^2)) with t = x - 1
Value acosh(const Value& x) {
  const Value t = x - 1;
  const Value result = or_large(x, log1p(t + sqrt(t * (t + 2))));
  return where(x < 1, std::numeric_limits<double>::quiet_NaN(), result);
}

// atanh(a) = log1p(2 a / (1 - a)) / 2 for a >= 0
Value atanh(const Value& x) {
  const Value a = abs(x);
  return sign(x) * 0.5 * log1p((a + a) / (1 - a));
}

// atan(t) = r + atan(d) with d = (t - tan r) / (1 + t tan r). With r from the f32 kernel d is so
// small that atan(d) = d in f64. For |x| > 1, atan(x) = sign(x) * pi/2 - atan(1/x).
Value atan(const Value& x) {
  const Value outside = abs(x) > 1, t = where(outside, reciprocal(x), x);
  const Value r = cast(onnx::atan(cast(t, DType::kF32)), DType::kF64);
  const Value s = sin(r), c = cos(r), d = (t * c - s) / (c + t * s);
  const Value inside = r + d;
  return where(outside, sign(x) * (M_PI / 2) - inside, inside);
}

// asin(x) = atan(x / sqrt((1 - x) (1 + x)))
Value asin(const Value& x) { return target::atan(x / sqrt((1 - x) * (1 + x))); }

// acos(x) = 2 atan(sqrt((1 - x) / (1 + x)))
Value acos(const Value& x) { return 2 * target::atan(sqrt((1 - x) / (1 + x))); }

// erf(x) = x p(x^2) for |x| < 1, and 1 - exp(-a^2) q((a - 3) / (a + 3)) with a = |x| beyond. The
// Chebyshev fits p and q are within 1e-17; from a = 6 on the result is 1.
Value erf(const Value& x) {
  constexpr double kP[] = {-7.795898827002142e-10, 1.3720064546777686e-08, -1.6208483801871705e-07,
                           1.6447424703317362e-06, -1.492473690741966e-05, 0.00012055294904839707,
                           -0.0008548325975389692, 0.0052239776071164225,  -0.02686617064323777,
                           0.11283791670945006,    -0.37612638903183543,   1.1283791670955126};
  constexpr double kQ[] = {1.2801900862962662e-06, 2.023603179641757e-06, -8.008021319412685e-06,
                           -1.284889451252353e-05, 6.406182073530546e-05, 4.525472635483354e-05,
                           -0.0005970623517093284, 0.0007077464443901538, 0.004269136347508256,
                           -0.024392499318273194,  0.07166583719774874,   -0.15011593650078744,
                           0.24560380171233195,    -0.32623356004303716,  0.17900115118138996};
  const Value one = like(x, 1), three = like(x, 3), size = abs(x);
  const Value near = x * polynomial(kP, x * x);
  const Value a = min(size, 6), t = (a - three) / (a + three);
  const Value tail = exp(-(a * a)) * polynomial(kQ, t), far = sign(x) * (one - tail);
  return where(size < one, near, far);
}

template <Value (*Function)(const Value&)>
std::optional<Value> in_f64(Builder& op, const onnx::Node& node) {
  const Value x(&op, node.in.at(0));
  return x.dtype() == DType::kF64 ? std::optional(Function(x)) : std::nullopt;
}

template <std::optional<Value> (*Compose)(Builder&, const onnx::Node&)>
std::optional<Value> of_integers(Builder& op, const onnx::Node& node) {
  return is_integer(Value(&op, node.in.at(0)).dtype()) ? Compose(op, node) : std::nullopt;
}

struct Row {
  std::string_view op;
  std::optional<Value> (*compose)(Builder&, const onnx::Node&);
};
constexpr Row kRows[] = {
    // sorted by op
    {"Acos", in_f64<acos>},
    {"Acosh", in_f64<acosh>},
    {"ArgMax", of_integers<compose_arg_max>},
    {"ArgMin", of_integers<compose_arg_min>},
    {"Asin", in_f64<asin>},
    {"Asinh", in_f64<asinh>},
    {"Atan", in_f64<atan>},
    {"Atanh", in_f64<atanh>},
    {"BitShift", compose_right_shift},
    {"Clip", of_integers<compose_clip>},
    {"Conv", compose_conv},
    {"Cos", in_f64<cosine>},
    {"Cosh", in_f64<cosh>},
    {"Erf", in_f64<erf>},
    {"Max", of_integers<compose_max>},
    {"Min", of_integers<compose_min>},
    {"Mod", of_integers<compose_mod>},
    {"ReduceMax", of_integers<compose_reduce_max>},
    {"ReduceMin", of_integers<compose_reduce_min>},
    {"ReduceProd", compose_reduce_prod},
    {"ReduceSum", of_integers<compose_reduce_sum>},
    {"Sigmoid", in_f64<sigmoid>},
    {"Sign", of_integers<compose_sign>},
    {"Sinh", in_f64<sinh>},
    {"Tan", in_f64<tan>},
};
static_assert(std::ranges::is_sorted(kRows, {}, &Row::op));

}  // namespace

std::optional<Value> compose(Builder& op, const onnx::Node& node) {
  const auto* row = std::ranges::lower_bound(kRows, node.op, {}, &Row::op);
  if (row == std::end(kRows) || row->op != node.op) return std::nullopt;
  return row->compose(op, node);
}

}  // namespace jaxport::target

// SPDX-License-Identifier: Apache-2.0
#include "target/compose.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace jaxport::target {
namespace {

using onnx::Builder;
using onnx::Value;

// One op of one operand, with arithmetic that reads like the formulas.
class Formula {
 public:
  Formula(Builder& builder, const Value& operand) : op(builder), x(operand) {}
  Builder& op;
  Value x;

  Value number(double value) const { return op.scalar_like(x, value); }
  Value add(const Value& a, const Value& b) const { return op.Add(a, b); }
  Value sub(const Value& a, const Value& b) const { return op.Sub(a, b); }
  Value mul(const Value& a, const Value& b) const { return op.Mul(a, b); }
  Value div(const Value& a, const Value& b) const { return op.Div(a, b); }
  Value cast(const Value& a, DType to) const { return op.Cast(a, onnx::Args{{"to", to}}); }
};

// cosh(x) = (h^2 + 1/h^2) / 2 with h = exp(|x| / 2), which does not overflow before the result.
Value cosh(const Formula& f) {
  const Value half = f.number(0.5), h = f.op.Exp(f.mul(f.op.Abs(f.x), half));
  return f.add(f.mul(f.mul(half, h), h), f.div(f.div(half, h), h));
}

// sinh(x) = tanh(x / 2) * (cosh(x) + 1), which keeps the digits of small x.
Value sinh(const Formula& f) {
  const Value tanh = f.op.Tanh(f.mul(f.x, f.number(0.5)));
  return f.mul(tanh, f.add(cosh(f), f.number(1)));
}

Value tan(const Formula& f) { return f.div(f.op.Sin(f.x), f.op.Cos(f.x)); }

// sigmoid(x) = 1 / (1 + exp(-x))
Value sigmoid(const Formula& f) {
  return f.op.Reciprocal(f.add(f.number(1), f.op.Exp(f.op.Neg(f.x))));
}

// log(1 + z) = log(u) * z / (u - 1) with u = 1 + z rounded; z itself where u is 1, log(u) where
// u - 1 is z.
Value log1p(const Formula& f, const Value& z) {
  const Value one = f.number(1), u = f.add(z, one), d = f.sub(u, one), log_u = f.op.Log(u);
  const Value corrected = f.op.Where(f.op.Equal(d, z), log_u, f.mul(log_u, f.div(z, d)));
  return f.op.Where(f.op.Equal(u, one), z, corrected);
}

// log(2 * a) where a^2 would overflow or swallow the 1.
Value or_large(const Formula& f, const Value& a, const Value& result) {
  const Value large = f.add(f.op.Log(a), f.number(std::log(2.0)));
  return f.op.Where(f.op.Greater(a, f.number(1e9)), large, result);
}

// asinh(a) = log1p(a + a^2 / (1 + sqrt(a^2 + 1))) for a >= 0
Value asinh(const Formula& f) {
  const Value a = f.op.Abs(f.x), one = f.number(1), square = f.mul(a, a);
  const Value root = f.op.Sqrt(f.add(square, one));
  const Value z = f.add(a, f.div(square, f.add(one, root)));
  return f.mul(f.op.Sign(f.x), or_large(f, a, log1p(f, z)));
}

// acosh(x) = log1p(t + sqrt(2 t + t^2)) with t = x - 1
Value acosh(const Formula& f) {
  const Value one = f.number(1), t = f.sub(f.x, one);
  const Value root = f.op.Sqrt(f.mul(t, f.add(t, f.number(2))));
  const Value result = or_large(f, f.x, log1p(f, f.add(t, root)));
  const Value nan = f.number(std::numeric_limits<double>::quiet_NaN());
  return f.op.Where(f.op.Less(f.x, one), nan, result);
}

// atanh(a) = log1p(2 a / (1 - a)) / 2 for a >= 0
Value atanh(const Formula& f) {
  const Value a = f.op.Abs(f.x), z = f.div(f.add(a, a), f.sub(f.number(1), a));
  return f.mul(f.mul(f.op.Sign(f.x), f.number(0.5)), log1p(f, z));
}

// atan(t) = r + atan(d) with d = (t - tan r) / (1 + t tan r). With r from the f32 kernel d is so
// small that atan(d) = d in f64. For |x| > 1, atan(x) = sign(x) * pi/2 - atan(1/x).
Value atan_of(const Formula& f, const Value& x) {
  const Value one = f.number(1), outside = f.op.Greater(f.op.Abs(x), one);
  const Value t = f.op.Where(outside, f.op.Reciprocal(x), x);
  const Value r = f.cast(f.op.Atan(f.cast(t, DType::kF32)), DType::kF64);
  const Value sin = f.op.Sin(r), cos = f.op.Cos(r);
  const Value d = f.div(f.sub(f.mul(t, cos), sin), f.add(cos, f.mul(t, sin)));
  const Value inside = f.add(r, d), quarter = f.mul(f.op.Sign(x), f.number(M_PI / 2));
  return f.op.Where(outside, f.sub(quarter, inside), inside);
}
Value atan(const Formula& f) { return atan_of(f, f.x); }

// asin(x) = atan(x / sqrt((1 - x) (1 + x)))
Value asin(const Formula& f) {
  const Value one = f.number(1);
  const Value root = f.op.Sqrt(f.mul(f.sub(one, f.x), f.add(one, f.x)));
  return atan_of(f, f.div(f.x, root));
}

// acos(x) = 2 atan(sqrt((1 - x) / (1 + x)))
Value acos(const Formula& f) {
  const Value one = f.number(1);
  const Value root = f.op.Sqrt(f.div(f.sub(one, f.x), f.add(one, f.x)));
  return f.mul(f.number(2), atan_of(f, root));
}

// Horner's rule, highest coefficient first.
Value polynomial(const Formula& f, std::span<const double> coefficients, const Value& t) {
  Value sum = f.number(coefficients[0]);
  for (double coefficient : coefficients.subspan(1)) {
    sum = f.add(f.mul(sum, t), f.number(coefficient));
  }
  return sum;
}

// erf(x) = x p(x^2) for |x| < 1, and 1 - exp(-a^2) q((a - 3) / (a + 3)) with a = |x| beyond. The
// Chebyshev fits p and q are within 1e-17; from a = 6 on the result is 1.
Value erf(const Formula& f) {
  constexpr double kP[] = {-7.795898827002142e-10, 1.3720064546777686e-08, -1.6208483801871705e-07,
                           1.6447424703317362e-06, -1.492473690741966e-05, 0.00012055294904839707,
                           -0.0008548325975389692, 0.0052239776071164225,  -0.02686617064323777,
                           0.11283791670945006,    -0.37612638903183543,   1.1283791670955126};
  constexpr double kQ[] = {1.2801900862962662e-06, 2.023603179641757e-06, -8.008021319412685e-06,
                           -1.284889451252353e-05, 6.406182073530546e-05, 4.525472635483354e-05,
                           -0.0005970623517093284, 0.0007077464443901538, 0.004269136347508256,
                           -0.024392499318273194,  0.07166583719774874,   -0.15011593650078744,
                           0.24560380171233195,    -0.32623356004303716,  0.17900115118138996};
  const Value one = f.number(1), three = f.number(3), size = f.op.Abs(f.x);
  const Value near = f.mul(f.x, polynomial(f, kP, f.mul(f.x, f.x)));
  const Value a = f.op.Min(size, f.number(6)), t = f.div(f.sub(a, three), f.add(a, three));
  const Value tail = f.mul(f.op.Exp(f.op.Neg(f.mul(a, a))), polynomial(f, kQ, t));
  const Value far = f.mul(f.op.Sign(f.x), f.sub(one, tail));
  return f.op.Where(f.op.Less(size, one), near, far);
}

template <Value (*Function)(const Formula&)>
std::optional<Value> in_f64(Builder& op, const onnx::Node& node) {
  const Value x(&op, node.in.at(0));
  return x.dtype() == DType::kF64 ? std::optional(Function(Formula(op, x))) : std::nullopt;
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
    {"Asin", in_f64<asin>},
    {"Asinh", in_f64<asinh>},
    {"Atan", in_f64<atan>},
    {"Atanh", in_f64<atanh>},
    {"Clip", of_integers<compose_clip>},
    {"Conv", compose_conv},
    {"Cosh", in_f64<cosh>},
    {"Erf", in_f64<erf>},
    {"Max", of_integers<compose_max>},
    {"Min", of_integers<compose_min>},
    {"Mod", of_integers<compose_mod>},
    {"ReduceMax", of_integers<compose_reduce_max>},
    {"ReduceMin", of_integers<compose_reduce_min>},
    {"ReduceProd", of_integers<compose_reduce_prod>},
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

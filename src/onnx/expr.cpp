// SPDX-License-Identifier: Apache-2.0
#include "onnx/expr.h"

namespace jaxport::onnx {
namespace {

// The one whose graph is inside of the other's. One of them may be absent: a number.
const Value& inner(const Value& a, const Value& b) {
  if (!a || !b) return a ? a : b;
  return a.builder().is_inside(b.builder()) ? a : b;
}

Value node(std::string_view op, const Value& x) { return x.builder().call(op, {x}); }

Value node(std::string_view op, const Operand& a, const Operand& b) {
  Builder& builder = inner(a.value(), b.value()).builder();
  const DType dtype = (a.value() ? a.value() : b.value()).dtype();
  const Value lhs = a.as(builder, dtype), rhs = b.as(builder, dtype);
  return builder.call(op, {lhs, rhs});
}

}  // namespace

Value Operand::as(Builder& op, DType dtype) const {
  if (value_) return value_;
  const bool is_exact = integer_ && is_integer(dtype);
  return is_exact ? op.constant(int_scalar(dtype, *integer_)) : op.scalar(number_, dtype);
}

Value like(const Value& x, double number) { return x.builder().scalar(number, x.dtype()); }

Value operator-(const Value& x) { return node("Neg", x); }
Value operator+(const Operand& a, const Operand& b) { return node("Add", a, b); }
Value operator-(const Operand& a, const Operand& b) { return node("Sub", a, b); }
Value operator*(const Operand& a, const Operand& b) { return node("Mul", a, b); }
Value operator/(const Operand& a, const Operand& b) { return node("Div", a, b); }
Value operator%(const Operand& a, const Operand& b) { return node("Mod", a, b); }
Value min(const Operand& a, const Operand& b) { return node("Min", a, b); }
Value max(const Operand& a, const Operand& b) { return node("Max", a, b); }
Value pow(const Operand& a, const Operand& b) { return node("Pow", a, b); }

Value clip(const Value& x, const Operand& lo, const Operand& hi) {
  Builder& builder = inner(x, inner(lo.value(), hi.value())).builder();
  const Value highest = hi.as(builder, x.dtype()), lowest = lo.as(builder, x.dtype());
  return builder.Clip(x, lowest, highest);
}

Value equal(const Operand& a, const Operand& b) { return node("Equal", a, b); }
Value operator<(const Operand& a, const Operand& b) { return node("Less", a, b); }
Value operator>(const Operand& a, const Operand& b) { return node("Greater", a, b); }
Value operator<=(const Operand& a, const Operand& b) { return node("LessOrEqual", a, b); }
Value operator>=(const Operand& a, const Operand& b) { return node("GreaterOrEqual", a, b); }
Value operator&(const Value& a, const Value& b) { return node("And", a, b); }
Value operator|(const Value& a, const Value& b) { return node("Or", a, b); }
Value is_nan(const Value& x) { return node("IsNaN", x); }
Value is_inf(const Value& x) { return node("IsInf", x); }

Value where(const Value& condition, const Operand& a, const Operand& b) {
  Builder& builder = inner(condition, inner(a.value(), b.value())).builder();
  const DType dtype = (a.value() ? a.value() : b.value()).dtype();
  const Value yes = a.as(builder, dtype), no = b.as(builder, dtype);
  return builder.Where(condition, yes, no);
}

Value abs(const Value& x) { return node("Abs", x); }
Value atan(const Value& x) { return node("Atan", x); }
Value cos(const Value& x) { return node("Cos", x); }
Value erf(const Value& x) { return node("Erf", x); }
Value exp(const Value& x) { return node("Exp", x); }
Value floor(const Value& x) { return node("Floor", x); }
Value log(const Value& x) { return node("Log", x); }
Value reciprocal(const Value& x) { return node("Reciprocal", x); }
Value round(const Value& x) { return node("Round", x); }
Value sign(const Value& x) { return node("Sign", x); }
Value sin(const Value& x) { return node("Sin", x); }
Value sqrt(const Value& x) { return node("Sqrt", x); }
Value tanh(const Value& x) { return node("Tanh", x); }

Value cast(const Value& x, DType to) {
  return x.dtype() == to ? x : x.builder().Cast(x, Args{{"to", to}});
}

Value polynomial(std::span<const double> coefficients, const Value& x) {
  Value value = like(x, coefficients[0]);
  for (const double coefficient : coefficients.subspan(1)) value = value * x + coefficient;
  return value;
}

}  // namespace jaxport::onnx

// SPDX-License-Identifier: Apache-2.0
// Arithmetic on values that reads like the formula: where(x < 0, -x, x * 0.5 + y).
//
// Each operator is one node. It is added to the graph of the builder that its operands belong to,
// of the inner one when one graph is inside of the other. C++ leaves open which operand of an
// operator is computed first, and with it the order of nodes and constants in the model: name those
// that shall come first.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "onnx/builder.h"

namespace jaxport::onnx {

// A value, or a number that takes the dtype of the values beside it.
class Operand {
 public:
  Operand(const Value& value) : value_(value) {}  // NOLINT: written as a plain operand
  Operand(double number) : number_(number) {}     // NOLINT
  Operand(std::int64_t number)                    // NOLINT
      : number_(static_cast<double>(number)), integer_(number) {}
  Operand(int number) : Operand(std::int64_t{number}) {}  // NOLINT
  const Value& value() const { return value_; }           // absent: a number
  Value as(Builder& op, DType dtype) const;

 private:
  Value value_;
  double number_ = 0;
  std::optional<std::int64_t> integer_;  // exact, where f64 is not
};

Value like(const Value& x, double number);  // a constant of the dtype of x

Value operator-(const Value& x);
Value operator+(const Operand& a, const Operand& b);
Value operator-(const Operand& a, const Operand& b);
Value operator*(const Operand& a, const Operand& b);
Value operator/(const Operand& a, const Operand& b);
Value operator%(const Operand& a, const Operand& b);  // of integers, with the sign of b
Value min(const Operand& a, const Operand& b);
Value max(const Operand& a, const Operand& b);
Value pow(const Operand& a, const Operand& b);
Value clip(const Value& x, const Operand& lo, const Operand& hi);

// Truth values. a == b asks whether two values are the same one.
Value equal(const Operand& a, const Operand& b);
Value operator<(const Operand& a, const Operand& b);
Value operator>(const Operand& a, const Operand& b);
Value operator<=(const Operand& a, const Operand& b);
Value operator>=(const Operand& a, const Operand& b);
Value operator&(const Value& a, const Value& b);
Value operator|(const Value& a, const Value& b);
Value is_nan(const Value& x);
Value is_inf(const Value& x);
Value where(const Value& condition, const Operand& a, const Operand& b);

Value abs(const Value& x);
Value atan(const Value& x);
Value cos(const Value& x);
Value erf(const Value& x);
Value exp(const Value& x);
Value floor(const Value& x);
Value log(const Value& x);
Value reciprocal(const Value& x);
Value round(const Value& x);
Value sign(const Value& x);
Value sin(const Value& x);
Value sqrt(const Value& x);
Value tanh(const Value& x);
Value cast(const Value& x, DType to);  // no node when the dtype is already that

// Horner's rule; the coefficient of the highest power comes first.
Value polynomial(std::span<const double> coefficients, const Value& x);

}  // namespace jaxport::onnx

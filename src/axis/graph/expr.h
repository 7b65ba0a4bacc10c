// SPDX-License-Identifier: Apache-2.0
// Formulas on the axis graph, written as on paper: `0.5 * x * (1.0 + erf(x))`.
//
// Operands are uses in one context and of one dtype, which the result has too; a number takes the
// dtype of the use beside it. Everything goes through Graph::pointwise and Graph::reduce.
//
// C++ does not say which of two operands is computed first, and the age of nodes decides their
// order in the model. So at most one operand of a formula makes nodes; the others have names.
#pragma once

#include <cstdint>
#include <string_view>

#include "axis/graph/graph.h"

namespace jaxport::axis {

// An operand that may be a number.
struct Term {
  Term(const Use& given) : use(&given) {}  // NOLINT: what an operand may be
  Term(double number) : value(number) {}   // NOLINT
  Use beside(const Use& other) const;      // as a use, of the dtype of `other`
  const Use* use = nullptr;
  double value = 0;
};

// A lax primitive of one operand or two.
Use applied(std::string_view name, const Use& x);
Use applied(std::string_view name, const Use& a, Term b);
Use applied(std::string_view name, double a, const Use& b);

inline Use operator+(const Use& a, Term b) { return applied("add", a, b); }
inline Use operator+(double a, const Use& b) { return applied("add", a, b); }
inline Use operator-(const Use& a, Term b) { return applied("sub", a, b); }
inline Use operator-(double a, const Use& b) { return applied("sub", a, b); }
inline Use operator*(const Use& a, Term b) { return applied("mul", a, b); }
inline Use operator*(double a, const Use& b) { return applied("mul", a, b); }
inline Use operator/(const Use& a, Term b) { return applied("div", a, b); }
inline Use operator/(double a, const Use& b) { return applied("div", a, b); }
inline Use operator-(const Use& x) { return applied("neg", x); }

inline Use abs(const Use& x) { return applied("abs", x); }
inline Use erf(const Use& x) { return applied("erf", x); }
inline Use exp(const Use& x) { return applied("exp", x); }
inline Use expm1(const Use& x) { return applied("expm1", x); }
inline Use log(const Use& x) { return applied("log", x); }
inline Use log1p(const Use& x) { return applied("log1p", x); }
inline Use logistic(const Use& x) { return applied("logistic", x); }
inline Use rsqrt(const Use& x) { return applied("rsqrt", x); }
inline Use sqrt(const Use& x) { return applied("sqrt", x); }
inline Use tanh(const Use& x) { return applied("tanh", x); }
inline Use max(const Use& a, Term b) { return applied("max", a, b); }
inline Use min(const Use& a, Term b) { return applied("min", a, b); }
inline Use pow(const Use& base, Term exponent) { return applied("pow", base, exponent); }
Use integer_pow(const Use& base, std::int64_t exponent);
Use clamp(Term lo, const Use& x, Term hi);

// Truth values. `==` and `!` of a Use ask about the use itself.
Use compared(std::string_view name, const Use& a, Term b);
inline Use eq(const Use& a, Term b) { return compared("eq", a, b); }
inline Use ge(const Use& a, Term b) { return compared("ge", a, b); }
inline Use gt(const Use& a, Term b) { return compared("gt", a, b); }
inline Use le(const Use& a, Term b) { return compared("le", a, b); }
inline Use logical_and(const Use& a, const Use& b) { return applied("and", a, b); }
inline Use logical_or(const Use& a, const Use& b) { return applied("or", a, b); }
inline Use logical_not(const Use& a) { return applied("not", a); }
// `kept` where the mask is true, `other` elsewhere.
Use select(const Use& mask, const Use& kept, Term other);
Use select(const Use& mask, double kept, const Use& other);

// No node when the dtype is already that.
Use convert(const Use& x, DType dtype);

Use reduce_max(const Use& x, const Labels& over);
Use reduce_sum(const Use& x, const Labels& over);

}  // namespace jaxport::axis

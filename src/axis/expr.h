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

#include "axis/graph.h"

namespace jaxport::axis {

// An operand that may be a number.
struct Term {
  Term(const Use& given) : use(&given) {}  // NOLINT: what an operand may be
  Term(double number) : value(number) {}   // NOLINT
  Use beside(const Use& other) const;      // as a use, of the dtype of `other`
  const Use* use = nullptr;
  double value = 0;
};

Use operator+(const Use& a, Term b);
Use operator+(double a, const Use& b);
Use operator-(const Use& a, Term b);
Use operator-(double a, const Use& b);
Use operator*(const Use& a, Term b);
Use operator*(double a, const Use& b);
Use operator/(const Use& a, Term b);
Use operator/(double a, const Use& b);
Use operator-(const Use& x);

Use abs(const Use& x);
Use erf(const Use& x);
Use exp(const Use& x);
Use expm1(const Use& x);
Use log(const Use& x);
Use log1p(const Use& x);
Use logistic(const Use& x);
Use rsqrt(const Use& x);
Use sqrt(const Use& x);
Use tanh(const Use& x);
Use max(const Use& a, Term b);
Use min(const Use& a, Term b);
Use clamp(Term lo, const Use& x, Term hi);
Use pow(const Use& base, Term exponent);
Use integer_pow(const Use& base, std::int64_t exponent);

// Truth values. `==` and `!` of a Use ask about the use itself.
Use eq(const Use& a, Term b);
Use ge(const Use& a, Term b);
Use gt(const Use& a, Term b);
Use logical_and(const Use& a, const Use& b);
Use logical_not(const Use& a);
// `kept` where the mask is true, `other` elsewhere.
Use select(const Use& mask, const Use& kept, Term other);
Use select(const Use& mask, double kept, const Use& other);

// No node when the dtype is already that.
Use convert(const Use& x, DType dtype);

Use reduce_max(const Use& x, const Labels& over);
Use reduce_sum(const Use& x, const Labels& over);

}  // namespace jaxport::axis

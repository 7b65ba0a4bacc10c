// SPDX-License-Identifier: Apache-2.0
// A function of one number x on a piece: an interval inside which no condition changes its answer.
//
// There it is a quotient of two sums of terms c * x^i * g^s, plus perhaps a multiple of the
// logarithm of such a sum. g is exp of a polynomial without a constant term, or erf of a multiple
// of x. The functions x^i * exp(s * p(x)) of different i, s are linearly independent, and erf(k *
// x) is transcendental over the rational functions: two sums are the same function exactly when
// they have the same terms. So functions are compared by their terms; no points are sampled, and
// nothing can hide between them. What has no such form is unknown, and equal to nothing.
//
// This is a statement about real numbers. Roundings, and overflow on the way, are not seen.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>

#include "raise/algebra/algebra.h"

namespace jaxport::raise {

// What exp or erf is taken of, scaled: for exp the first coefficient is 1 and the exponent of a
// term says how often.
struct Generator {
  enum class Kind : std::uint8_t { kNone, kExp, kErf };
  Kind kind = Kind::kNone;
  std::array<double, algebra::kMaxDegree + 1> of{};  // by power of x; of[0] is 0
};

struct Piece {
  double lo, hi;  // without its ends; one point when they are equal
  Generator generator = {};
  // A condition that is not answered: it changes inside, or it cannot be decided.
  std::optional<double> split = {};
  bool is_split_exact = false;  // no rounding of the program moves it
  bool is_undecided = false;

  bool is_over() const { return split || is_undecided; }
  bool is_point() const { return lo == hi; }
  double inside() const;  // some number of the piece
};

class Form {
 public:
  Form(Piece& piece, double constant);
  static Form x(Piece& piece);
  static Form unknown(Piece& piece);

  Piece& piece() const { return *piece_; }
  std::optional<double> constant() const;
  double magnitude() const;  // the size of a constant, see algebra.h
  // The sign of a - b: -1, 0 or 1. Splits the piece where it changes.
  friend int compare(const Form& a, const Form& b);
  // Neither the program nor the runtime can make a NaN of it, nor an infinity, at finite x.
  bool is_finite() const;

  friend Form operator+(const Form& a, const Form& b);
  friend Form operator-(const Form& a);
  friend Form operator*(const Form& a, const Form& b);
  friend Form operator/(const Form& a, const Form& b);
  friend Form exp(const Form& a);
  friend Form log(const Form& a);
  friend Form erf(const Form& a);
  // Equal up to a relative `tolerance` of each number in it.
  friend bool same(const Form& a, const Form& b, double tolerance);

 private:
  friend struct Algebra;
  Piece* piece_;
  algebra::Terms numerator_, denominator_;  // the first term of the denominator is 1
  double log_factor_ = 0;
  algebra::Terms log_of_;  // the first term is 1
  double infinite_ = 0;    // a constant that is no number
  bool is_exact_ = false;  // computed without rounding: x, -x, literals
  bool cancels_ = false;   // terms cancelled: where it is small it may be mostly rounding
  bool is_unknown_ = false;
};

inline Form operator-(const Form& a, const Form& b) { return a + -b; }
inline Form operator+(const Form& a, double b) { return a + Form(a.piece(), b); }
inline Form operator+(double a, const Form& b) { return Form(b.piece(), a) + b; }
inline Form operator-(const Form& a, double b) { return a + -b; }
inline Form operator-(double a, const Form& b) { return a + -b; }
inline Form operator*(double a, const Form& b) { return Form(b.piece(), a) * b; }
inline Form operator*(const Form& a, double b) { return b * a; }
inline Form operator/(const Form& a, double b) { return a / Form(a.piece(), b); }
inline Form operator/(double a, const Form& b) { return Form(b.piece(), a) / b; }
Form power(const Form& a, int exponent);
Form max(const Form& a, const Form& b);
Form min(const Form& a, const Form& b);
inline Form max(const Form& a, double b) { return max(a, Form(a.piece(), b)); }
inline Form min(const Form& a, double b) { return min(a, Form(a.piece(), b)); }
Form abs(const Form& a);
Form sign(const Form& a);
Form expm1(const Form& a);
Form log1p(const Form& a);
Form logistic(const Form& a);
Form tanh(const Form& a);

// The same of numbers, as lax computes them: NaN wins.
inline double max(double a, double b) { return a > b || std::isnan(a) ? a : b; }
inline double min(double a, double b) { return -max(-a, -b); }
inline double logistic(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace jaxport::raise

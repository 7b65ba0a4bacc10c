// SPDX-License-Identifier: Apache-2.0
#include "raise/algebra/form.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <tuple>

#include "support/dtype.h"

namespace jaxport::raise {
namespace {

using GeneratorKind = Generator::Kind;
using algebra::kRounding;
using algebra::Term;
using algebra::Terms;

const Terms kOne{{0, 0, 1, 1}};

}  // namespace

double Piece::inside() const {
  if (is_point()) return lo;
  if (lo == -kInfinity && hi == kInfinity) return 0;
  if (lo == -kInfinity) return hi - std::max(1.0, std::abs(hi));
  if (hi == kInfinity) return lo + std::max(1.0, std::abs(lo));
  return lo / 2 + hi / 2;
}

// What needs the inside of a Form.
struct Algebra {
  // The denominator has no zero on the piece.
  static Form quotient(Piece& piece, Terms numerator, Terms denominator) {
    if (denominator.empty()) return Form::unknown(piece);
    const Term first = inverse(denominator.front());
    for (Terms* terms : {&numerator, &denominator}) {
      for (Term& term : *terms) term = product(term, first);
    }
    denominator.front() = kOne.front();
    return form(piece, std::move(numerator), std::move(denominator));
  }

  static Form form(Piece& piece, Terms numerator, Terms denominator = kOne) {
    if (!is_in_bounds(numerator) || !is_in_bounds(denominator)) return Form::unknown(piece);
    Form result(piece, 0);
    result.numerator_ = std::move(numerator);
    result.denominator_ = std::move(denominator);
    result.is_exact_ = false;
    return result;
  }

  static Form number(Piece& piece, double value, double relative_size = 1) {
    if (!std::isfinite(value)) return Form::unknown(piece);
    if (value == 0) return form(piece, {});
    return form(piece, {{0, 0, value, std::abs(value) * relative_size}});
  }

  static bool is_plain(const Form& a) { return !a.is_unknown_ && a.infinite_ == 0; }
  static bool has_terms_only(const Form& a) { return is_plain(a) && a.log_factor_ == 0; }
  static bool is_polynomial_form(const Form& a) {
    return is_plain(a) && is_one(a.denominator_) && is_polynomial(a.numerator_);
  }

  // On which side of `root` the piece lies; 0 when on both.
  static int side(Piece& piece, double root, bool is_exact) {
    if (root <= piece.lo) return 1;
    if (root >= piece.hi) return -1;
    piece.split = root;
    piece.is_split_exact = is_exact;
    return 0;
  }

  // The sign of the sum on the piece: 0 where it vanishes, or when the piece is over. Rounding must
  // not change the answer except near a zero, as it does for tanh(x) < 1 and exp(x) > 0, which are
  // false for some x in floating point. So the sum is linear, or a constant and an exponential of
  // x.
  static int signum(Piece& piece, const Terms& terms, bool is_exact) {
    if (piece.is_over() || terms.empty()) return 0;
    const Term &first = terms.front(), &last = terms.back();
    const int sign = last.value > 0 ? 1 : -1;
    if (is_number(terms)) return sign;
    const bool keeps_digits = is_exact || std::ranges::none_of(terms, algebra::loses_digits);
    if (keeps_digits && is_linear(terms)) {
      const double root = terms.size() == 1 ? 0 : -first.value / last.value;
      return side(piece, root, is_exact) * sign;
    }
    if (keeps_digits && is_exponential(piece, terms)) {
      if ((first.value > 0) == (last.value > 0)) return sign;
      const double root = std::log(-first.value / last.value) / (last.exponent - first.exponent);
      return side(piece, root, false) * sign;
    }
    piece.is_undecided = true;
    return 0;
  }

  // a + b * exp(s * x)
  static bool is_exponential(const Piece& piece, const Terms& terms) {
    const auto& of = piece.generator.of;
    const bool is_of_x = of[1] == 1 && std::ranges::all_of(of.begin() + 2, of.end(),
                                                           [](double c) { return c == 0; });
    return piece.generator.kind == GeneratorKind::kExp && is_of_x && terms.size() == 2 &&
           terms[0].power == 0 && terms[1].power == 0 &&
           (terms[0].exponent == 0 || terms[1].exponent == 0);
  }

  static bool has_no_zero(const Form& a) {
    Piece& piece = a.piece();
    if (a.cancels_ || piece.is_over()) return false;
    if (has_one_sign(piece, a.numerator_)) return true;
    const int sign = signum(piece, a.numerator_, false);
    piece.is_undecided = false;  // the quotient is unknown, which need not matter
    return sign != 0;
  }

  // A constant, and no term that has the other sign somewhere.
  static bool has_one_sign(const Piece& piece, const Terms& terms) {
    if (terms.empty() || terms.front().power != 0 || piece.generator.kind == GeneratorKind::kErf) {
      return false;
    }
    const bool is_positive = terms.front().value > 0;
    return std::ranges::all_of(terms, [&](const Term& term) {
      const bool is_odd = term.power % 2 != 0;
      if (is_odd && piece.lo < 0 && piece.hi > 0) return false;
      const bool flips = is_odd && piece.hi <= 0;
      return (term.value > 0) == (is_positive != flips);
    });
  }

  // Makes g what exp or erf of the polynomial needs. False when g is something else already.
  static bool take_generator(Piece& piece, const Generator& wanted) {
    Generator& known = piece.generator;
    if (known.kind == GeneratorKind::kNone) known = wanted;
    if (known.kind != wanted.kind) return false;
    return std::ranges::equal(known.of, wanted.of,
                              [](double a, double b) { return algebra::near(a, b, kRounding); });
  }

  // exp of a polynomial
  static Form exponential(Piece& piece, Terms polynomial) {
    double constant = 0, size = 0;
    if (!polynomial.empty() && polynomial.front().power == 0) {
      constant = polynomial.front().value;
      size = polynomial.front().size;
      polynomial.erase(polynomial.begin());
    }
    const double value = std::exp(constant);
    if (polynomial.empty()) return number(piece, value, 1 + size);
    const double scale = polynomial.front().value;
    Generator wanted{GeneratorKind::kExp, {}};
    for (const Term& term : polynomial) {
      wanted.of[term.power] = term.value / scale;
    }
    if (!take_generator(piece, wanted) || value == 0) return Form::unknown(piece);
    return form(piece, {{0, scale, value, value * (1 + size)}});
  }

  // log g^exponent
  static Terms logarithm_of_power(const Piece& piece, double exponent) {
    Terms result;
    for (std::size_t power = 1; power <= algebra::kMaxDegree && exponent != 0; ++power) {
      const double value = exponent * piece.generator.of[power];
      if (value != 0) result.push_back({static_cast<int>(power), 0, value, std::abs(value)});
    }
    return result;
  }
};

Form::Form(Piece& piece, double constant) : piece_(&piece), denominator_(kOne), is_exact_(true) {
  if (!std::isfinite(constant)) {
    infinite_ = constant;
  } else if (constant != 0) {
    numerator_ = {{0, 0, constant, std::abs(constant)}};
  }
}

Form Form::x(Piece& piece) {
  if (piece.is_point()) return Form(piece, piece.lo);
  Form result(piece, 0);
  result.numerator_ = {{1, 0, 1, 1}};
  return result;
}

Form Form::unknown(Piece& piece) {
  Form result(piece, 0);
  result.is_unknown_ = true;
  result.is_exact_ = false;
  return result;
}

std::optional<double> Form::constant() const {
  if (is_unknown_) return std::nullopt;
  if (infinite_ != 0) return infinite_;
  if (log_factor_ != 0 || !is_number(numerator_) || !is_one(denominator_)) return std::nullopt;
  return numerator_.empty() ? 0 : numerator_.front().value;
}

double Form::magnitude() const { return numerator_.empty() ? 0 : numerator_.front().size; }

bool Form::is_finite() const { return Algebra::is_plain(*this) && is_exact_; }

int compare(const Form& a, const Form& b) {
  Piece& piece = a.piece();
  if (piece.is_over()) return 0;
  const bool is_exact = a.is_exact_ && b.is_exact_;
  const bool is_number =
      !a.is_unknown_ && !b.is_unknown_ && !std::isnan(a.infinite_) && !std::isnan(b.infinite_);
  if (is_number && is_exact && (a.infinite_ != 0 || b.infinite_ != 0)) {
    return (a.infinite_ > b.infinite_) - (a.infinite_ < b.infinite_);
  }
  const Form difference = a - b;
  const bool is_decided = Algebra::has_terms_only(difference) && is_one(difference.denominator_) &&
                          (is_exact || piece.is_point() || !difference.cancels_);
  if (!is_decided) {
    piece.is_undecided = !piece.split;
    return 0;
  }
  return Algebra::signum(piece, difference.numerator_, is_exact);
}

Form operator+(const Form& a, const Form& b) {
  Piece& piece = a.piece();
  if (!Algebra::is_plain(a) || !Algebra::is_plain(b)) return Form::unknown(piece);
  if (a.constant() == 0.0) return b;
  if (b.constant() == 0.0) return a;
  if (a.log_factor_ != 0 && b.log_factor_ != 0) return Form::unknown(piece);
  bool cancels = a.cancels_ || b.cancels_;
  const bool is_alike = is_same(a.denominator_, b.denominator_, kRounding);
  Form result =
      is_alike ? Algebra::form(piece, sum(a.numerator_, b.numerator_, cancels), a.denominator_)
               : Algebra::quotient(piece,
                                   sum(product(a.numerator_, b.denominator_, cancels),
                                       product(b.numerator_, a.denominator_, cancels), cancels),
                                   product(a.denominator_, b.denominator_, cancels));
  const Form& with_log = a.log_factor_ != 0 ? a : b;
  result.log_factor_ = with_log.log_factor_;
  result.log_of_ = with_log.log_of_;
  result.cancels_ = cancels;
  return result;
}

Form operator-(const Form& a) {
  Form result = a;
  for (Term& term : result.numerator_) term.value = -term.value;
  result.log_factor_ = -a.log_factor_;
  result.infinite_ = -a.infinite_;
  return result;
}

Form operator*(const Form& a, const Form& b) {
  Piece& piece = a.piece();
  if (!Algebra::is_plain(a) || !Algebra::is_plain(b)) return Form::unknown(piece);
  for (const auto& [one, other] : {std::tie(a, b), std::tie(b, a)}) {
    const auto factor = one.constant();
    if (factor == 1.0) return other;
    if (factor == -1.0) return -other;
  }
  if (a.log_factor_ != 0) return b.constant() ? b * a : Form::unknown(piece);
  if (b.log_factor_ != 0 && !a.constant()) return Form::unknown(piece);
  bool cancels = a.cancels_ || b.cancels_;
  Form result = Algebra::quotient(piece, product(a.numerator_, b.numerator_, cancels),
                                  product(a.denominator_, b.denominator_, cancels));
  result.cancels_ = cancels;
  if (b.log_factor_ != 0) {
    result.log_factor_ = *a.constant() * b.log_factor_;
    result.log_of_ = b.log_of_;
  }
  return result;
}

Form operator/(const Form& a, const Form& b) {
  if (!Algebra::has_terms_only(b)) return Form::unknown(a.piece());
  if (b.constant() == 1.0) return a;
  // A quotient is one function only where its denominator has no zero.
  if (!Algebra::has_no_zero(b)) return Form::unknown(a.piece());
  return a * Algebra::quotient(a.piece(), b.denominator_, b.numerator_);
}

Form exp(const Form& a) {
  Piece& piece = a.piece();
  if (!Algebra::is_polynomial_form(a)) return Form::unknown(piece);
  Form result = Algebra::exponential(piece, a.numerator_);
  result.cancels_ = a.cancels_;
  if (a.log_factor_ == 0) return result;
  // exp(c log y) = y^c
  const double factor = std::round(a.log_factor_);
  if (!algebra::near(factor, a.log_factor_, kRounding) || std::abs(factor) > algebra::kMaxPower) {
    return Form::unknown(piece);
  }
  return result * power(Algebra::form(piece, a.log_of_), static_cast<int>(factor));
}

Form log(const Form& a) {
  Piece& piece = a.piece();
  const bool is_positive = piece.generator.kind != GeneratorKind::kErf &&
                           std::ranges::all_of(a.numerator_, [](const Term& term) {
                             return term.power == 0 && term.value > 0;
                           });
  if (!Algebra::has_terms_only(a) || !is_one(a.denominator_) || a.numerator_.empty() ||
      !is_positive) {
    return Form::unknown(piece);
  }
  // log(c g^s (1 + …)) = log c + s log g + log(1 + …)
  const Term first = a.numerator_.front();
  Form result = Algebra::number(piece, std::log(first.value), first.size / first.value) +
                Algebra::form(piece, Algebra::logarithm_of_power(piece, first.exponent));
  if (a.numerator_.size() == 1) return result;
  result.log_factor_ = 1;
  result.log_of_ = product(a.numerator_, {inverse(first)}, result.cancels_);
  result.is_exact_ = false;
  result.cancels_ = a.cancels_;
  return result;
}

Form erf(const Form& a) {
  Piece& piece = a.piece();
  if (!Algebra::has_terms_only(a) || !is_one(a.denominator_)) return Form::unknown(piece);
  if (const auto value = a.constant()) return Algebra::number(piece, std::erf(*value));
  const Term& only = a.numerator_.front();
  if (a.numerator_.size() != 1 || only.power != 1 || only.exponent != 0) {
    return Form::unknown(piece);
  }
  Generator wanted{GeneratorKind::kErf, {}};
  wanted.of[1] = std::abs(only.value);
  if (!Algebra::take_generator(piece, wanted)) return Form::unknown(piece);
  return Algebra::form(piece, {{0, 1, only.value > 0 ? 1.0 : -1.0, 1}});
}

namespace {

bool same_generator(const Generator& a, const Generator& b, double tolerance) {
  return a.kind == b.kind && std::ranges::equal(a.of, b.of, [&](double x, double y) {
           return algebra::near(x, y, tolerance);
         });
}

}  // namespace

bool same(const Form& a, const Form& b, double tolerance) {
  if (!Algebra::is_plain(a) || !Algebra::is_plain(b)) return false;
  const bool uses_generator =
      has_generator(a.numerator_) || has_generator(a.denominator_) || has_generator(a.log_of_);
  return is_same(a.numerator_, b.numerator_, tolerance) &&
         is_same(a.denominator_, b.denominator_, tolerance) &&
         algebra::near(a.log_factor_, b.log_factor_, tolerance) &&
         is_same(a.log_of_, b.log_of_, tolerance) &&
         (!uses_generator || same_generator(a.piece().generator, b.piece().generator, tolerance));
}

Form power(const Form& a, int exponent) {
  if (std::abs(exponent) > algebra::kMaxPower) return Form::unknown(a.piece());
  Form result(a.piece(), 1);
  for (int i = 0; i < std::abs(exponent); ++i) result = result * a;
  return exponent < 0 ? 1.0 / result : result;
}

Form max(const Form& a, const Form& b) { return compare(a, b) >= 0 ? a : b; }
Form min(const Form& a, const Form& b) { return compare(a, b) <= 0 ? a : b; }
Form abs(const Form& a) { return compare(a, Form(a.piece(), 0)) >= 0 ? a : -a; }
Form sign(const Form& a) { return {a.piece(), double(compare(a, Form(a.piece(), 0)))}; }

Form expm1(const Form& a) {
  const auto value = a.constant();
  return value ? Algebra::number(a.piece(), std::expm1(*value)) : exp(a) - 1;
}
Form log1p(const Form& a) {
  const auto value = a.constant();
  return value ? Algebra::number(a.piece(), std::log1p(*value)) : log(1 + a);
}
Form logistic(const Form& a) { return 1 / (1 + exp(-a)); }
Form tanh(const Form& a) {
  if (const auto value = a.constant()) return Algebra::number(a.piece(), std::tanh(*value));
  const Form square = exp(2 * a);
  return (square - 1) / (square + 1);
}

}  // namespace jaxport::raise

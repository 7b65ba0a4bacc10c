// SPDX-License-Identifier: Apache-2.0
#include "raise/algebra/algebra.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <tuple>
#include <utility>

namespace jaxport::raise::algebra {

bool near(double a, double b, double tolerance) {
  // Nothing is near infinity.
  const double distance = std::abs(a - b);
  return std::isfinite(distance) && distance <= tolerance * std::max(std::abs(a), std::abs(b));
}

namespace {

bool is_alike(const Term& a, const Term& b) {
  return a.power == b.power && near(a.exponent, b.exponent, kRounding);
}

// Adds up equal powers and leaves out what is zero; `cancels` becomes true when something was.
Terms collected(Terms terms, bool& cancels) {
  std::ranges::sort(terms, {},
                    [](const Term& term) { return std::tie(term.power, term.exponent); });
  Terms result;
  for (const Term& term : terms) {
    if (!result.empty() && is_alike(result.back(), term)) {
      result.back().value += term.value;
      result.back().size += term.size;
    } else {
      result.push_back(term);
    }
  }
  const auto is_zero = [](const Term& term) {
    return std::abs(term.value) <= term.size * kRounding;
  };
  const auto rest = std::remove_if(result.begin(), result.end(), is_zero);
  cancels = cancels || rest != result.end();
  result.erase(rest, result.end());
  return result;
}

double sum_of(double a, double b) {
  const double sum = a + b;
  return std::abs(sum) <= kRounding * (std::abs(a) + std::abs(b)) ? 0 : sum;
}

// Factors of this size would bring an overflow or an underflow, which are not seen here, into reach
// of usual numbers.
bool is_moderate(const Term& term) {
  const bool is_constant = term.power == 0 && term.exponent == 0;
  return is_constant || (std::abs(term.value) > 0x1p-40 && std::abs(term.value) < 0x1p40);
}

}  // namespace

Term product(const Term& a, const Term& b) {
  return {a.power + b.power, sum_of(a.exponent, b.exponent), a.value * b.value, a.size * b.size};
}

Terms product(const Terms& a, const Terms& b, bool& cancels) {
  Terms result;
  for (const Term& x : a) {
    for (const Term& y : b) result.push_back(product(x, y));
  }
  return collected(std::move(result), cancels);
}

Terms sum(Terms a, const Terms& b, bool& cancels) {
  a.insert(a.end(), b.begin(), b.end());
  return collected(std::move(a), cancels);
}

Term inverse(const Term& term) {
  const double value = 1 / term.value;
  return {-term.power, -term.exponent, value, std::abs(value) * term.size / std::abs(term.value)};
}

bool is_number(const Terms& terms) {
  return terms.empty() || (terms.size() == 1 && terms[0].power == 0 && terms[0].exponent == 0);
}

bool has_generator(const Terms& terms) {
  return std::ranges::any_of(terms, [](const Term& term) { return term.exponent != 0; });
}

bool is_linear(const Terms& terms) {
  return !has_generator(terms) && terms.back().power == 1 &&
         (terms.size() == 1 || (terms.size() == 2 && terms.front().power == 0));
}

bool loses_digits(const Term& term) {
  constexpr double kMost = 16;
  return term.size > kMost * std::abs(term.value);
}

bool is_one(const Terms& terms) {
  return terms.size() == 1 && terms[0].power == 0 && terms[0].exponent == 0 && terms[0].value == 1;
}

bool is_in_bounds(const Terms& terms) {
  return terms.size() <= kMaxTerms && std::ranges::all_of(terms, [](const Term& term) {
           return std::isfinite(term.value) && std::isfinite(term.size) &&
                  std::isfinite(term.exponent) && std::abs(term.power) <= kMaxPower &&
                  is_moderate(term);
         });
}

bool is_polynomial(const Terms& terms) {
  return std::ranges::all_of(terms, [](const Term& term) {
    return term.exponent == 0 && term.power >= 0 && term.power <= static_cast<int>(kMaxDegree);
  });
}

bool is_same(const Terms& a, const Terms& b, double tolerance) {
  return std::ranges::equal(a, b, [&](const Term& x, const Term& y) {
    const double roundings = kRounding * (x.size + y.size);
    return x.power == y.power && near(x.exponent, y.exponent, tolerance) &&
           std::abs(x.value - y.value) <= tolerance * std::abs(y.value) + roundings;
  });
}

}  // namespace jaxport::raise::algebra

// SPDX-License-Identifier: Apache-2.0
// Sums of terms value * x^power * g^exponent, see form.h.
#pragma once

#include <absl/container/inlined_vector.h>

#include <cstddef>

namespace jaxport::raise::algebra {

// A few dozen roundings of a double, relative to the sizes of terms.
inline constexpr double kRounding = 0x1p-46;
// Real spellings stay far below.
inline constexpr std::size_t kMaxTerms = 16;
inline constexpr int kMaxPower = 8;
inline constexpr std::size_t kMaxDegree = 4;  // of what exp is taken of

// `size` is the sum of what was added up to `value`, without signs: the roundings of this
// computation are a tiny part of it.
struct Term {
  int power;
  double exponent, value, size;
};
// Sorted by power and exponent; nothing that is zero.
using Terms = absl::InlinedVector<Term, 4>;

bool near(double a, double b, double tolerance);

// `cancels` becomes true when terms cancel.
Terms sum(Terms a, const Terms& b, bool& cancels);
Terms product(const Terms& a, const Terms& b, bool& cancels);
Term product(const Term& a, const Term& b);
Term inverse(const Term& term);
// Equal up to a relative tolerance of each number.
bool is_same(const Terms& a, const Terms& b, double tolerance);

bool is_number(const Terms& terms);
bool is_one(const Terms& terms);
bool has_generator(const Terms& terms);
bool is_linear(const Terms& terms);      // a + b * x, or b * x
bool is_polynomial(const Terms& terms);  // of at most kMaxDegree
bool is_in_bounds(const Terms& terms);   // finite, few and moderate
// What is left of a sum is small against what was added up.
bool loses_digits(const Term& term);

}  // namespace jaxport::raise::algebra

// SPDX-License-Identifier: Apache-2.0
// Division of dimensions: exact quotients, floordiv and mod.
#include <algorithm>
#include <numeric>

#include "dim/scope.h"

namespace jaxport {
namespace dim {
namespace {

int power_of(const DimAtom* atom, const DimTerm& term) {
  const auto found = std::ranges::find(term.factors, atom, &DimFactor::atom);
  return found == term.factors.end() ? 0 : found->power;
}

// Total degree first, then the powers of the atoms in order of their names. Unlike the printing
// order it is kept by multiplication, which long division relies on.
bool divides_before(const DimTerm& lhs, const DimTerm& rhs) {
  int degree = 0;
  for (const DimFactor& factor : lhs.factors) degree += factor.power;
  for (const DimFactor& factor : rhs.factors) degree -= factor.power;
  if (degree != 0) return degree > 0;
  const DimAtom* first = nullptr;  // the atom of smallest name whose powers differ
  int difference = 0;
  const auto consider = [&](const DimFactor& factor, const DimTerm& other, int sign) {
    const int power = factor.power - power_of(factor.atom, other);
    if (power == 0 || (first != nullptr && first->text <= factor.atom->text)) return;
    first = factor.atom;
    difference = sign * power;
  };
  for (const DimFactor& factor : lhs.factors) consider(factor, rhs, 1);
  for (const DimFactor& factor : rhs.factors) consider(factor, lhs, -1);
  return difference > 0;
}

const DimTerm& leading(const Terms& terms) {
  const DimTerm* best = &terms[0];
  for (const DimTerm& term : terms) {
    if (divides_before(term, *best)) best = &term;
  }
  return *best;
}

// term / divisor where a constraint such as "T % 8 == 0" supplies what the coefficient lacks.
std::optional<Terms> constrained_quotient(DimScope::Impl& scope, const DimTerm& term,
                                          std::int64_t divisor) {
  if (divisor == 0) return std::nullopt;
  const std::int64_t missing = divisor / std::gcd(term.coefficient, divisor);
  for (const DimFactor& factor : term.factors) {
    if (scope.known_divisor(factor.atom) % missing != 0) continue;
    const Dim whole = scope.make({DimTerm{1, {{factor.atom, 1}}}});
    const Dim part = scope.atom(DimAtom::Op::kFloordiv, whole, missing);
    const DimTerm rest = *quotient(term, {divisor / missing, {{factor.atom, 1}}});
    return product(Terms{rest}, terms_of(part));
  }
  return std::nullopt;
}

std::optional<Terms> term_quotient(DimScope::Impl& scope, const DimTerm& term,
                                   const DimTerm& divisor) {
  if (std::optional<DimTerm> exact = quotient(term, divisor)) return Terms{*exact};
  if (!divisor.factors.empty() || scope.divisibilities.empty()) return std::nullopt;
  return constrained_quotient(scope, term, divisor.coefficient);
}

// Long division; nullopt as soon as a leading term does not divide.
std::optional<Terms> polynomial_quotient(Terms dividend, const Terms& divisor) {
  const DimTerm& divisor_lead = leading(divisor);
  Terms result;
  while (!dividend.empty()) {
    const std::optional<DimTerm> part = quotient(leading(dividend), divisor_lead);
    if (!part) return std::nullopt;
    result = sum(result, {*part});
    dividend = sum(dividend, negated(product({*part}, divisor)));
  }
  return result;
}

// a = whole * b + rest.
struct Split {
  Terms whole, rest;
};

// Takes out the terms that a divisor of one term divides.
Split take_multiples(DimScope::Impl& scope, const Terms& a, const Terms& b) {
  if (b.size() != 1) return {{}, a};
  Split result;
  for (const DimTerm& term : a) {
    if (const std::optional<Terms> part = term_quotient(scope, term, b[0])) {
      result.whole = sum(result.whole, *part);
    } else {
      result.rest.push_back(term);
    }
  }
  return result;
}

// Brings coefficients into 0 … b - 1: one spelling for floordiv(T - 1, 2) + 1 and
// floordiv(T + 1, 2).
Split reduce_coefficients(const Terms& a, std::int64_t b) {
  Split result;
  for (const DimTerm& term : a) {
    const std::int64_t whole = floor_div(term.coefficient, b);
    const std::int64_t rest = floor_mod(term.coefficient, b);
    if (whole != 0) result.whole.push_back({whole, term.factors});
    if (rest != 0) result.rest.push_back({rest, term.factors});
  }
  return result;
}

// The largest monomial with a positive coefficient that divides all terms of both.
DimTerm common_factor(const Terms& a, const Terms& b) {
  DimTerm common{0, a[0].factors};
  for (const Terms* terms : {&a, &b}) {
    for (const DimTerm& term : *terms) {
      common.coefficient = std::gcd(common.coefficient, term.coefficient);
      for (DimFactor& kept : common.factors) {
        kept.power = std::min(kept.power, power_of(kept.atom, term));
      }
      std::erase_if(common.factors, [](const DimFactor& kept) { return kept.power == 0; });
    }
  }
  return common;
}

bool is_unit(const DimTerm& term) { return term.coefficient == 1 && term.factors.empty(); }

Terms divided_by(const Terms& terms, const DimTerm& common) {
  Terms result;
  for (const DimTerm& term : terms) result.push_back(*quotient(term, common));
  return canonical(std::move(result));
}

bool is_within(DimScope::Impl& scope, const Dim& rest, const Dim& divisor) {
  return less_equal(0, rest) == Truth::kYes &&
         less_equal(rest, scope.make(sum(terms_of(divisor), {DimTerm{-1, {}}}))) == Truth::kYes;
}

bool is_multiple_by_constraint(const DimScope::Impl& scope, const Dim& rest, const Dim& divisor) {
  if (rest.is_static() || !divisor.is_static()) return false;
  for (const Divisibility& fact : scope.divisibilities) {
    if (fact.multiple == rest && floor_mod(fact.divisor, divisor.value()) == 0) return true;
  }
  return false;
}

// floordiv(rest, b) where no term of `rest` is a multiple of b.
Dim floordiv_of_rest(DimScope::Impl& scope, const Dim& rest, const Dim& b) {
  if (rest.is_zero()) return 0;
  if (b.is_static()) {
    if (rest.is_static()) return floor_div(rest.value(), b.value());
    // One spelling for both forms of rounding up: -floordiv(-T, 2) = floordiv(T + 1, 2).
    if (terms_of(rest)[0].coefficient < 0) return 0 - floordiv(b - 1 - rest, b);
    const Split parts = reduce_coefficients(terms_of(rest), b.value());
    if (!parts.whole.empty()) return scope.make(parts.whole) + floordiv(scope.make(parts.rest), b);
  }
  if (is_within(scope, rest, b)) return 0;
  const DimTerm common = common_factor(terms_of(rest), terms_of(b));
  if (is_unit(common)) return scope.atom(DimAtom::Op::kFloordiv, rest, b);
  return floordiv(scope.make(divided_by(terms_of(rest), common)),
                  scope.make(divided_by(terms_of(b), common)));
}

Dim symbolic_floordiv(DimScope::Impl& scope, const Dim& a, const Dim& b) {
  if (const std::optional<Dim> exact = exact_div(a, b)) return *exact;
  if (b.is_static() && b.value() < 0) return floordiv(0 - a, 0 - b);
  const Split parts = take_multiples(scope, terms_of(a), terms_of(b));
  return scope.make(parts.whole) + floordiv_of_rest(scope, scope.make(parts.rest), b);
}

// mod(rest, b) where no term of `rest` is a multiple of b, and a static b has reduced them.
Dim mod_of_rest(DimScope::Impl& scope, const Dim& rest, const Dim& b) {
  if (rest.is_zero()) return 0;
  if (rest.is_static() && b.is_static()) return floor_mod(rest.value(), b.value());
  if (is_multiple_by_constraint(scope, rest, b)) return 0;
  if (is_within(scope, rest, b)) return rest;
  const DimTerm common = common_factor(terms_of(rest), terms_of(b));
  if (is_unit(common)) return scope.atom(DimAtom::Op::kMod, rest, b);
  return scope.make({common}) * mod(scope.make(divided_by(terms_of(rest), common)),
                                    scope.make(divided_by(terms_of(b), common)));
}

Dim symbolic_mod(DimScope::Impl& scope, const Dim& a, const Dim& b) {
  if (exact_div(a, b)) return 0;
  if (b.is_static() && b.value() < 0) return 0 - mod(0 - a, 0 - b);
  Terms rest = take_multiples(scope, terms_of(a), terms_of(b)).rest;
  if (b.is_static()) rest = reduce_coefficients(rest, b.value()).rest;
  return mod_of_rest(scope, scope.make(rest), b);
}

std::optional<Terms> any_quotient(DimScope::Impl& scope, const Terms& a, const Terms& b) {
  if (b.size() != 1) return polynomial_quotient(a, b);
  Split parts = take_multiples(scope, a, b);
  if (!parts.rest.empty()) return std::nullopt;
  return std::move(parts.whole);
}

std::optional<Dim> symbolic_exact_div(DimScope::Impl& scope, const Dim& a, const Dim& b) {
  if (const auto result = any_quotient(scope, terms_of(a), terms_of(b))) return scope.make(*result);
  if (is_multiple_by_constraint(scope, a, b)) return scope.atom(DimAtom::Op::kFloordiv, a, b);
  return std::nullopt;
}

}  // namespace
}  // namespace dim

Dim floordiv(const Dim& a, const Dim& b) {
  if (b.is_static() && (a.is_static() || b.value() == 0)) {
    return dim::floor_div(a.is_static() ? a.value() : 1, b.value());
  }
  DimScope::Impl& scope = dim::scope_of(a, b);
  return dim::memoised(scope.quotients, a, b, [&] { return dim::symbolic_floordiv(scope, a, b); });
}

Dim mod(const Dim& a, const Dim& b) {
  if (b.is_static() && (a.is_static() || b.value() == 0)) {
    return dim::floor_mod(a.is_static() ? a.value() : 1, b.value());
  }
  DimScope::Impl& scope = dim::scope_of(a, b);
  return dim::memoised(scope.remainders, a, b, [&] { return dim::symbolic_mod(scope, a, b); });
}

std::optional<Dim> exact_div(const Dim& a, const Dim& b) {
  if (b.is_zero()) return std::nullopt;
  if (b.is_one() || a.is_zero()) return a;
  if (a == b) return Dim(1);
  if (a.is_static() && b.is_static()) {
    if (dim::floor_mod(a.value(), b.value()) != 0) return std::nullopt;
    return dim::floor_div(a.value(), b.value());
  }
  DimScope::Impl& scope = dim::scope_of(a, b);
  return dim::memoised(scope.exact_quotients, a, b,
                       [&] { return dim::symbolic_exact_div(scope, a, b); });
}

}  // namespace jaxport

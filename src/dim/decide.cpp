// SPDX-License-Identifier: Apache-2.0
// What holds for every value of the symbols: bounds, order, equality.
#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "dim/scope.h"
#include "jaxport/error.h"

namespace jaxport::dim {
namespace {

using Scope = DimScope::Impl;

// Arithmetic on bounds: an end that is not known, or leaves int64, stays "none known".
std::int64_t clamp_lo(__int128 value) {
  if (value <= INT64_MIN) return Interval::kNoLower;
  return static_cast<std::int64_t>(std::min<__int128>(value, INT64_MAX - 1));
}
std::int64_t clamp_hi(__int128 value) {
  if (value >= INT64_MAX) return Interval::kNoUpper;
  return static_cast<std::int64_t>(std::max<__int128>(value, INT64_MIN + 1));
}

// A bound as a number so large that products with it stay recognisable as "none known".
__int128 extended(std::int64_t end) {
  constexpr __int128 kHuge = __int128{1} << 63;
  if (end == Interval::kNoLower) return -kHuge;
  if (end == Interval::kNoUpper) return kHuge;
  return end;
}

Interval times(const Interval& a, const Interval& b) {
  const __int128 ends[4] = {extended(a.lo) * extended(b.lo), extended(a.lo) * extended(b.hi),
                            extended(a.hi) * extended(b.lo), extended(a.hi) * extended(b.hi)};
  return {clamp_lo(*std::ranges::min_element(ends)), clamp_hi(*std::ranges::max_element(ends))};
}

Interval intersection(const Interval& a, const Interval& b) {
  return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)};
}

Interval floordiv_bounds(const Interval& x, const Interval& y) {
  if (y.lo < 1) return {};
  Interval result;
  if (x.lo >= 0) {
    result.lo = y.has_hi() ? x.lo / y.hi : 0;
  } else if (x.has_lo()) {
    result.lo = floor_div(x.lo, y.lo);
  }
  if (x.hi < 0) {
    result.hi = y.has_hi() ? floor_div(x.hi, y.hi) : -1;
  } else if (x.has_hi()) {
    result.hi = x.hi / y.lo;
  }
  return result;
}

Interval mod_bounds(const Interval& x, const Interval& y) {
  if (y.lo < 1) return {};
  Interval result{0, y.has_hi() ? y.hi - 1 : y.hi};
  if (x.lo >= 0) result.hi = std::min(result.hi, x.hi);
  return result;
}

Interval structural_bounds(Scope& scope, const DimAtom& atom) {
  if (atom.op == DimAtom::Op::kSymbol) return {scope.least_symbol, Interval::kNoUpper};
  const Interval x = bounds(scope, atom.lhs), y = bounds(scope, atom.rhs);
  switch (atom.op) {
    case DimAtom::Op::kFloordiv:
      return floordiv_bounds(x, y);
    case DimAtom::Op::kMod:
      return mod_bounds(x, y);
    case DimAtom::Op::kMax:
      return {std::max(x.lo, y.lo), std::max(x.hi, y.hi)};
    default:
      return {std::min(x.lo, y.lo), std::min(x.hi, y.hi)};
  }
}

// "k * atom + c >= 0" bounds the atom from one side.
Interval constrained_bounds(const Scope& scope, const DimAtom* atom) {
  Interval result;
  for (const Dim& constraint : scope.non_negative) {
    const Terms& terms = constraint.expr()->terms;
    if (terms[0].factors != std::vector<DimFactor>{{atom, 1}} || terms.size() > 2) continue;
    if (terms.size() == 2 && !terms[1].factors.empty()) continue;
    const std::int64_t slope = terms[0].coefficient;
    const std::int64_t offset = terms.size() == 2 ? terms[1].coefficient : 0;
    if (slope > 0) {
      result.lo = std::max(result.lo, -floor_div(offset, slope));
    } else {
      result.hi = std::min(result.hi, floor_div(offset, -slope));
    }
  }
  return result;
}

// Multiples of `divisor` start at the next and end at the last one inside the interval.
Interval multiples_in(const Interval& range, std::int64_t divisor) {
  Interval result = range;
  if (range.has_lo()) result.lo = clamp_lo(-__int128{floor_div(-range.lo, divisor)} * divisor);
  if (range.has_hi()) result.hi = clamp_hi(__int128{floor_div(range.hi, divisor)} * divisor);
  return result;
}

const Interval& atom_bounds(Scope& scope, const DimAtom* atom) {
  if (const auto known = scope.atom_bounds.find(atom); known != scope.atom_bounds.end()) {
    return known->second;
  }
  Interval result = intersection(structural_bounds(scope, *atom), constrained_bounds(scope, atom));
  result = multiples_in(result, scope.known_divisor(atom));
  return scope.atom_bounds.emplace(atom, result).first->second;
}

// The same polynomial in atom' = atom - lowest value, so that every bounded atom starts at 0:
// B*T - B becomes B'*T' + T', which is plainly not negative.
Terms shifted(Scope& scope, const Terms& terms) {
  Terms result;
  for (const DimTerm& term : terms) {
    Terms expanded{DimTerm{term.coefficient, {}}};
    for (const DimFactor& factor : term.factors) {
      Terms base{DimTerm{1, {{factor.atom, 1}}}};
      const Interval& range = atom_bounds(scope, factor.atom);
      if (range.has_lo() && range.lo != 0) base.push_back({range.lo, {}});
      for (int i = 0; i < factor.power; ++i) expanded = product(expanded, base);
    }
    result = sum(result, expanded);
  }
  return result;
}

// The range of an atom after the shift.
Interval shifted_bounds(Scope& scope, const DimAtom* atom) {
  const Interval& range = atom_bounds(scope, atom);
  if (!range.has_lo()) return range;
  if (!range.has_hi()) return {0, Interval::kNoUpper};
  return {0, clamp_hi(__int128{range.hi} - range.lo)};
}

std::int64_t sum_of_lower_bounds(Scope& scope, const Terms& terms) {
  __int128 total = 0;
  for (const DimTerm& term : terms) {
    Interval range{term.coefficient, term.coefficient};
    for (const DimFactor& factor : term.factors) {
      for (int i = 0; i < factor.power; ++i) {
        range = times(range, shifted_bounds(scope, factor.atom));
      }
    }
    if (!range.has_lo()) return Interval::kNoLower;
    total += range.lo;
  }
  return clamp_lo(total);
}

// Facts that follow from the meaning of an atom, each as an expression >= 0.
void add_implied(Scope& scope, const DimAtom* atom, std::vector<Terms>& facts) {
  if (atom->op == DimAtom::Op::kSymbol) return;
  const Terms self{DimTerm{1, {{atom, 1}}}}, minus_one{DimTerm{-1, {}}};
  const Terms x = terms_of(atom->lhs), y = terms_of(atom->rhs);
  const auto at_least = [&facts](const Terms& a, const Terms& b) {
    facts.push_back(sum(a, negated(b)));
  };
  switch (atom->op) {
    case DimAtom::Op::kFloordiv:  // y*f <= x <= y*f + y - 1
      if (bounds(scope, atom->rhs).lo < 1) return;
      at_least(x, product(y, self));
      at_least(sum(product(y, self), sum(y, minus_one)), x);
      return;
    case DimAtom::Op::kMod:  // m <= y - 1, and m <= x for x >= 0
      if (bounds(scope, atom->rhs).lo < 1) return;
      at_least(sum(y, minus_one), self);
      if (bounds(scope, atom->lhs).lo >= 0) at_least(x, self);
      return;
    case DimAtom::Op::kMax:
      at_least(self, x);
      at_least(self, y);
      return;
    default:
      at_least(x, self);
      at_least(y, self);
  }
}

std::vector<Terms> facts_about(Scope& scope, const Terms& terms) {
  std::vector<Terms> facts;
  for (const Dim& constraint : scope.non_negative) facts.push_back(terms_of(constraint));
  for (const DimTerm& term : terms) {
    for (const DimFactor& factor : term.factors) add_implied(scope, factor.atom, facts);
  }
  return facts;
}

// Shows that an expression is >= 0, within limits that hostile text cannot stretch.
class Proof {
 public:
  explicit Proof(Scope& scope) : scope_(scope) {}

  // By bounds, or by taking away a fact that cancels a term:
  // |f|*terms - |t|*fact >= 0 and fact >= 0 give terms >= 0.
  bool non_negative(const Terms& terms, int max_facts) {
    if (terms.size() > kMaxTermsInProof || steps_left_-- <= 0) return false;
    if (lower_bound(scope_, terms) >= 0) return true;
    if (max_facts == 0) return false;
    for (const Terms& fact : facts_about(scope_, terms)) {
      for (const DimTerm& term : terms) {
        const auto same = std::ranges::find(fact, term.factors, &DimTerm::factors);
        if (term.factors.empty() || same == fact.end()) continue;
        if ((same->coefficient > 0) != (term.coefficient > 0)) continue;
        const Terms scaled = product(terms, {DimTerm{std::abs(same->coefficient), {}}});
        const Terms taken = product(fact, {DimTerm{-std::abs(term.coefficient), {}}});
        if (non_negative(sum(scaled, taken), max_facts - 1)) return true;
      }
    }
    return false;
  }

 private:
  static constexpr std::size_t kMaxTermsInProof = 64;
  Scope& scope_;
  int steps_left_ = 500;
};

bool is_non_negative(Scope& scope, const Terms& terms) {
  constexpr int kMaxFacts = 2;
  return Proof(scope).non_negative(terms, kMaxFacts);
}

// 2*T and 2*B + 1 never meet: the common divisor of the symbolic terms does not divide the rest.
bool differ_by_parity(const Terms& difference) {
  if (!difference.back().factors.empty()) return false;
  std::int64_t common = 0;
  for (const DimTerm& term : difference) {
    if (!term.factors.empty()) common = std::gcd(common, term.coefficient);
  }
  return common != 0 && difference.back().coefficient % common != 0;
}

// A proof that overflows is no proof; the answer is then "unknown".
template <class Decide>
Truth unless_too_large(Decide decide) {
  try {
    return decide();
  } catch (const Error& error) {
    if (error.code() != "E022") throw;
    return Truth::kUnknown;
  }
}

Truth decide_less_equal(Scope& scope, const Dim& a, const Dim& b) {
  return unless_too_large([&] {
    const Terms difference = sum(terms_of(b), negated(terms_of(a)));
    if (is_non_negative(scope, difference)) return Truth::kYes;
    const Terms a_above_b = sum(negated(difference), {DimTerm{-1, {}}});
    return is_non_negative(scope, a_above_b) ? Truth::kNo : Truth::kUnknown;
  });
}

}  // namespace

std::int64_t lower_bound(Scope& scope, const Terms& terms) {
  return sum_of_lower_bounds(scope, shifted(scope, terms));
}

Interval bounds(Scope& scope, const Dim& dim) {
  if (dim.is_static()) return {dim.value(), dim.value()};
  const Terms terms = terms_of(dim);
  const std::int64_t negated_hi = lower_bound(scope, negated(terms));
  return {lower_bound(scope, terms),
          negated_hi == Interval::kNoLower ? Interval::kNoUpper : -negated_hi};
}

}  // namespace jaxport::dim

namespace jaxport {

Truth less_equal(const Dim& a, const Dim& b) {
  if (a == b) return Truth::kYes;
  if (a.is_static() && b.is_static()) return a.value() < b.value() ? Truth::kYes : Truth::kNo;
  DimScope::Impl& scope = dim::scope_of(a, b);
  return dim::memoised(scope.order_facts, a, b,
                       [&] { return dim::decide_less_equal(scope, a, b); });
}

Truth equal(const Dim& a, const Dim& b) {
  if (a == b) return Truth::kYes;
  if (a.is_static() && b.is_static()) return Truth::kNo;
  const Truth below = less_equal(a, b), above = less_equal(b, a);
  if (below == Truth::kYes && above == Truth::kYes) return Truth::kYes;
  if (below == Truth::kNo || above == Truth::kNo) return Truth::kNo;
  return dim::unless_too_large([&] {
    const dim::Terms difference = dim::sum(dim::terms_of(a), dim::negated(dim::terms_of(b)));
    return dim::differ_by_parity(difference) ? Truth::kNo : Truth::kUnknown;
  });
}

}  // namespace jaxport

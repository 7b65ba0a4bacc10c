// SPDX-License-Identifier: Apache-2.0
// Inside of the dimension algebra: polynomials as sorted terms, and the tables of a scope.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dim/dim.h"

namespace jaxport::dim {

// Largest term first, the constant last, no zero coefficients; empty is 0.
using Terms = std::vector<DimTerm>;

Terms terms_of(const Dim& dim);
Terms negated(const Terms& terms);
Terms sum(const Terms& lhs, const Terms& rhs);
Terms product(const Terms& lhs, const Terms& rhs);
DimTerm product(const DimTerm& lhs, const DimTerm& rhs);
// lhs / rhs when rhs divides lhs as a monomial with an integer coefficient.
std::optional<DimTerm> quotient(const DimTerm& lhs, const DimTerm& rhs);
// Sorts and merges terms in any order.
Terms canonical(Terms unsorted);
// Orders monomials as JAX prints them; coefficients do not count.
int compare_monomials(const DimTerm& lhs, const DimTerm& rhs);

[[noreturn]] void too_large(std::string_view what);  // Error E022
std::int64_t checked_add(std::int64_t a, std::int64_t b);
std::int64_t checked_mul(std::int64_t a, std::int64_t b);
std::int64_t floor_div(std::int64_t a, std::int64_t b);  // Error E022 for b = 0
std::int64_t floor_mod(std::int64_t a, std::int64_t b);

// Bounds of an expression over all values of its symbols; the ends mean "none known".
struct Interval {
  static constexpr std::int64_t kNoLower = INT64_MIN, kNoUpper = INT64_MAX;
  std::int64_t lo = kNoLower, hi = kNoUpper;
  bool has_lo() const { return lo != kNoLower; }
  bool has_hi() const { return hi != kNoUpper; }
};

// Operands of a memoised operation. Addresses are only looked up, never enumerated.
struct DimPair {
  Dim lhs, rhs;
  friend bool operator==(const DimPair&, const DimPair&) = default;
};
struct DimPairHash {
  std::size_t operator()(const DimPair& pair) const;
};
template <class Result>
using Memo = std::unordered_map<DimPair, Result, DimPairHash>;

// A fact "multiple % divisor == 0" of a constraint.
struct Divisibility {
  Dim multiple;
  std::int64_t divisor;
};

}  // namespace jaxport::dim

namespace jaxport {

struct DimScope::Impl {
  explicit Impl(DimScope& self) : owner(self) {}

  Dim make(dim::Terms terms);
  Dim atom(DimAtom::Op op, const Dim& lhs, const Dim& rhs);
  const DimAtom* intern(DimAtom atom);
  // A divisor that the constraints grant to `factor`: 8 for T after "T % 8 == 0", else 1.
  std::int64_t known_divisor(const DimAtom* factor) const;
  void forget_results();  // what was memoised under fewer constraints

  DimScope& owner;
  std::vector<std::string> symbols;  // in order of first use
  std::unordered_map<std::string, const DimAtom*> symbol_atoms;
  std::unordered_multimap<std::uint64_t, std::unique_ptr<DimAtom>> atoms;
  std::unordered_multimap<std::uint64_t, std::unique_ptr<DimExpr>> exprs;

  std::int64_t least_symbol = 1;
  std::vector<std::string> constraints;
  std::vector<Dim> non_negative;  // each is >= 0 by some constraint
  std::vector<dim::Divisibility> divisibilities;

  dim::Memo<Dim> sums, differences, products, quotients, remainders, maxima, minima;
  dim::Memo<std::optional<Dim>> exact_quotients;
  dim::Memo<Truth> order_facts;
  std::unordered_map<const DimAtom*, dim::Interval> atom_bounds;

 private:
  Dim intern(dim::Terms terms);
  dim::Terms with_exact_quotients(dim::Terms terms);
};

namespace dim {

// The scope both operands live in. At least one is symbolic; JXP-BUG when they differ.
DimScope::Impl& scope_of(const Dim& a, const Dim& b);

// A bound from below that holds for every value of the symbols; Interval::kNoLower if none is
// known.
std::int64_t lower_bound(DimScope::Impl& scope, const Terms& terms);
Interval bounds(DimScope::Impl& scope, const Dim& dim);

template <class Result, class Compute>
Result memoised(Memo<Result>& memo, const Dim& lhs, const Dim& rhs, Compute compute) {
  const DimPair key{lhs, rhs};
  if (const auto found = memo.find(key); found != memo.end()) return found->second;
  Result result = compute();
  memo.emplace(key, result);
  return result;
}

}  // namespace dim
}  // namespace jaxport

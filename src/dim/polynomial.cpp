// SPDX-License-Identifier: Apache-2.0
// Polynomials over atoms: canonical order, arithmetic, interning, text.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "dim/scope.h"
#include "jaxport/error.h"
#include "support/hash.h"

namespace jaxport::dim {
namespace {

// Far beyond real shapes; hostile text must not make expressions explode.
constexpr std::size_t kMaxTerms = 1024;
constexpr std::size_t kMaxTextBytes = 1 << 16;
constexpr int kMaxPower = 64;

std::uint64_t weight_of(const DimTerm& term) {
  std::uint64_t weight = 0;
  for (const DimFactor& factor : term.factors) weight += 1 + factor.power * factor.atom->weight;
  return weight;
}

std::uint64_t magnitude(std::int64_t value) {
  return value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
}

std::uint64_t weight_of(const Dim& dim) {
  if (dim.is_static()) return 1;
  std::uint64_t weight = 0;
  for (const DimTerm& term : dim.expr()->terms) {
    weight += 1 + magnitude(term.coefficient) * weight_of(term);
  }
  return weight;
}

int compare_atoms(const DimAtom* lhs, const DimAtom* rhs) {
  if (lhs == rhs) return 0;
  if (lhs->weight != rhs->weight) return lhs->weight < rhs->weight ? -1 : 1;
  return lhs->text.compare(rhs->text);
}

void append(std::string& text, std::string_view more) {
  if (text.size() + more.size() > kMaxTextBytes) too_large("its text");
  text += more;
}

std::string text_of(const Terms& terms) {
  std::string text;
  for (const DimTerm& term : terms) {
    if (!text.empty()) append(text, " ");
    if (term.coefficient < 0) append(text, "- ");
    if (term.coefficient > 0 && !text.empty()) append(text, "+ ");
    const std::uint64_t count = magnitude(term.coefficient);
    if (count != 1 || term.factors.empty()) append(text, fmt::format("{}", count));
    bool first = count == 1;
    for (const DimFactor& factor : term.factors) {
      if (!first) append(text, "*");
      append(text, factor.atom->text);
      if (factor.power != 1) append(text, fmt::format("^{}", factor.power));
      first = false;
    }
  }
  return text;
}

std::string_view op_name(DimAtom::Op op) {
  switch (op) {
    case DimAtom::Op::kFloordiv:
      return "floordiv";
    case DimAtom::Op::kMod:
      return "mod";
    case DimAtom::Op::kMax:
      return "max";
    case DimAtom::Op::kMin:
      return "min";
    case DimAtom::Op::kSymbol:
      break;
  }
  return "";
}

std::uint64_t hash_of(const Terms& terms) {
  std::uint64_t hash = 0;
  for (const DimTerm& term : terms) {
    hash = mix(hash, static_cast<std::uint64_t>(term.coefficient));
    for (const DimFactor& factor : term.factors) {
      hash = mix(mix(hash, factor.atom->hash), static_cast<std::uint64_t>(factor.power));
    }
  }
  return hash;
}

}  // namespace

void too_large(std::string_view what) {
  throw Error("E022", fmt::format("a dimension is too large to compute with: {}", what))
      .help("use smaller sizes or fewer symbols in one dimension");
}

// Every result can be negated, so INT64_MIN counts as overflow too.
std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t result;
  if (__builtin_add_overflow(a, b, &result) || result == INT64_MIN) {
    too_large(fmt::format("{} + {}", a, b));
  }
  return result;
}

std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t result;
  if (__builtin_mul_overflow(a, b, &result) || result == INT64_MIN) {
    too_large(fmt::format("{} * {}", a, b));
  }
  return result;
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  if (b == 0) throw Error("E022", fmt::format("dimension {} is divided by zero", a));
  if (b == -1) return checked_mul(a, -1);
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
  if (b == 0) throw Error("E022", fmt::format("dimension {} is taken modulo zero", a));
  if (b == -1) return 0;
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

std::size_t DimPairHash::operator()(const DimPair& pair) const {
  return mix(pair.lhs.hash(), pair.rhs.hash());
}

Terms terms_of(const Dim& dim) {
  if (!dim.is_static()) return dim.expr()->terms;
  if (dim.value() == 0) return {};
  return {DimTerm{checked_add(dim.value(), 0), {}}};
}

int compare_monomials(const DimTerm& lhs, const DimTerm& rhs) {
  const std::uint64_t lhs_weight = weight_of(lhs), rhs_weight = weight_of(rhs);
  if (lhs_weight != rhs_weight) return lhs_weight < rhs_weight ? -1 : 1;
  // Factors rise, and the largest decide.
  auto l = lhs.factors.rbegin();
  auto r = rhs.factors.rbegin();
  for (; l != lhs.factors.rend() && r != rhs.factors.rend(); ++l, ++r) {
    if (const int order = compare_atoms(l->atom, r->atom)) return order;
    if (l->power != r->power) return l->power < r->power ? -1 : 1;
  }
  return (l != lhs.factors.rend()) - (r != rhs.factors.rend());
}

Terms negated(const Terms& terms) {
  Terms result = terms;
  for (DimTerm& term : result) term.coefficient = checked_mul(term.coefficient, -1);
  return result;
}

Terms sum(const Terms& lhs, const Terms& rhs) {
  Terms result;
  result.reserve(lhs.size() + rhs.size());
  auto l = lhs.begin();
  auto r = rhs.begin();
  while (l != lhs.end() || r != rhs.end()) {
    const int order = l == lhs.end() ? -1 : r == rhs.end() ? 1 : compare_monomials(*l, *r);
    if (order > 0) {
      result.push_back(*l++);
    } else if (order < 0) {
      result.push_back(*r++);
    } else {
      const std::int64_t coefficient = checked_add(l->coefficient, r->coefficient);
      if (coefficient != 0) result.push_back({coefficient, l->factors});
      ++l, ++r;
    }
  }
  if (result.size() > kMaxTerms) too_large("a sum of too many terms");
  return result;
}

DimTerm product(const DimTerm& lhs, const DimTerm& rhs) {
  DimTerm result{checked_mul(lhs.coefficient, rhs.coefficient), {}};
  auto l = lhs.factors.begin();
  auto r = rhs.factors.begin();
  while (l != lhs.factors.end() || r != rhs.factors.end()) {
    const int order = l == lhs.factors.end()   ? 1
                      : r == rhs.factors.end() ? -1
                                               : compare_atoms(l->atom, r->atom);
    if (order < 0) {
      result.factors.push_back(*l++);
    } else if (order > 0) {
      result.factors.push_back(*r++);
    } else {
      result.factors.push_back({l->atom, l->power + r->power});
      if (result.factors.back().power > kMaxPower) too_large("a power of " + l->atom->text);
      ++l, ++r;
    }
  }
  return result;
}

Terms canonical(Terms unsorted) {
  std::ranges::sort(unsorted,
                    [](const DimTerm& a, const DimTerm& b) { return compare_monomials(a, b) > 0; });
  Terms result;
  for (DimTerm& term : unsorted) {
    if (!result.empty() && result.back().factors == term.factors) {
      result.back().coefficient = checked_add(result.back().coefficient, term.coefficient);
    } else {
      result.push_back(std::move(term));
    }
  }
  std::erase_if(result, [](const DimTerm& term) { return term.coefficient == 0; });
  return result;
}

Terms product(const Terms& lhs, const Terms& rhs) {
  if (lhs.size() * rhs.size() > kMaxTerms) too_large("a product of too many terms");
  Terms unsorted;
  unsorted.reserve(lhs.size() * rhs.size());
  for (const DimTerm& l : lhs) {
    for (const DimTerm& r : rhs) unsorted.push_back(product(l, r));
  }
  return canonical(std::move(unsorted));
}

std::optional<DimTerm> quotient(const DimTerm& lhs, const DimTerm& rhs) {
  if (floor_mod(lhs.coefficient, rhs.coefficient) != 0) return std::nullopt;
  DimTerm result{floor_div(lhs.coefficient, rhs.coefficient), {}};
  auto r = rhs.factors.begin();
  for (const DimFactor& factor : lhs.factors) {
    int power = factor.power;
    if (r != rhs.factors.end() && r->atom == factor.atom) power -= (r++)->power;
    if (power < 0) return std::nullopt;
    if (power > 0) result.factors.push_back({factor.atom, power});
  }
  if (r != rhs.factors.end()) return std::nullopt;
  return result;
}

}  // namespace jaxport::dim

namespace jaxport {

using dim::Terms;

const DimAtom* DimScope::Impl::intern(DimAtom atom) {
  const bool is_symbol = atom.op == DimAtom::Op::kSymbol;
  atom.hash = mix(mix(hash_text(atom.symbol), static_cast<std::uint64_t>(atom.op)),
                  mix(atom.lhs.hash(), atom.rhs.hash()));
  for (auto [it, end] = atoms.equal_range(atom.hash); it != end; ++it) {
    const DimAtom& known = *it->second;
    if (known.op == atom.op && known.symbol == atom.symbol && known.lhs == atom.lhs &&
        known.rhs == atom.rhs) {
      return &known;
    }
  }
  atom.weight = is_symbol ? 1 : 1 + dim::weight_of(atom.lhs) + dim::weight_of(atom.rhs);
  atom.text =
      is_symbol ? atom.symbol
                : fmt::format("{}({}, {})", dim::op_name(atom.op), atom.lhs.str(), atom.rhs.str());
  const std::uint64_t hash = atom.hash;
  return atoms.emplace(hash, std::make_unique<DimAtom>(std::move(atom)))->second.get();
}

Dim DimScope::Impl::intern(Terms terms) {
  if (terms.empty()) return 0;
  if (terms[0].factors.empty()) return terms[0].coefficient;
  const std::uint64_t hash = dim::hash_of(terms);
  for (auto [it, end] = exprs.equal_range(hash); it != end; ++it) {
    if (it->second->terms == terms) return Dim(*it->second);
  }
  std::string text = dim::text_of(terms);
  auto expr = std::make_unique<DimExpr>(DimExpr{&owner, std::move(terms), hash, std::move(text)});
  return Dim(*exprs.emplace(hash, std::move(expr))->second);
}

Dim DimScope::Impl::atom(DimAtom::Op op, const Dim& lhs, const Dim& rhs) {
  const DimAtom* interned =
      intern(DimAtom{.op = op, .symbol = {}, .lhs = lhs, .rhs = rhs, .text = {}});
  return make({DimTerm{1, {{interned, 1}}}});
}

Dim DimScope::Impl::make(Terms terms) {
  if (!divisibilities.empty()) terms = with_exact_quotients(std::move(terms));
  return intern(std::move(terms));
}

std::int64_t DimScope::Impl::known_divisor(const DimAtom* factor) const {
  std::int64_t divisor = 1;
  for (const dim::Divisibility& fact : divisibilities) {
    const Terms& terms = fact.multiple.expr()->terms;
    if (terms.size() != 1 || terms[0].coefficient != 1) continue;
    if (terms[0].factors != std::vector<DimFactor>{{factor, 1}}) continue;
    // The least common multiple, unless it overflows: then one of the facts is enough.
    const std::int64_t step = fact.divisor / std::gcd(divisor, fact.divisor);
    if (step <= INT64_MAX / divisor) divisor *= step;
  }
  return divisor;
}

// 4 * floordiv(T, 8) = floordiv(T, 2) and 8 * floordiv(T, 8) = T once 8 divides T.
Terms DimScope::Impl::with_exact_quotients(Terms terms) {
  for (DimTerm& term : terms) {
    for (const DimFactor& factor : term.factors) {
      const DimAtom& atom = *factor.atom;
      if (atom.op != DimAtom::Op::kFloordiv || !atom.rhs.is_static()) continue;
      const std::int64_t common = std::gcd(term.coefficient, atom.rhs.value());
      if (common == 1 || !mod(atom.lhs, atom.rhs).is_zero()) continue;
      const DimTerm rest = *dim::quotient(term, {common, {{factor.atom, 1}}});
      const Dim coarser = floordiv(atom.lhs, atom.rhs.value() / common);
      term.coefficient = 0;
      const Terms replaced = dim::product(Terms{rest}, dim::terms_of(coarser));
      std::erase_if(terms, [](const DimTerm& t) { return t.coefficient == 0; });
      return with_exact_quotients(dim::sum(terms, replaced));
    }
  }
  return terms;
}

void DimScope::Impl::forget_results() {
  for (dim::Memo<Dim>* memo :
       {&sums, &differences, &products, &quotients, &remainders, &maxima, &minima}) {
    memo->clear();
  }
  exact_quotients.clear();
  order_facts.clear();
  atom_bounds.clear();
}

}  // namespace jaxport

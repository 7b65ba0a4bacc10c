// SPDX-License-Identifier: Apache-2.0
#include "dim/dim.h"

#include <fmt/format.h>

#include <algorithm>

#include "dim/scope.h"
#include "jaxport/error.h"
#include "support/hash.h"

namespace jaxport {
namespace dim {

DimScope::Impl& scope_of(const Dim& a, const Dim& b) {
  DimScope* scope = a.is_static() ? b.expr()->scope : a.expr()->scope;
  if (!b.is_static() && b.expr()->scope != scope) {
    throw Error("BUG", fmt::format("dimensions '{}' and '{}' belong to different scopes", a.str(),
                                   b.str()));
  }
  return scope->impl();
}

Dim add(const Dim& a, const Dim& b) {
  if (a.is_static() && b.is_static()) return checked_add(a.value(), b.value());
  if (a.is_zero()) return b;
  if (b.is_zero()) return a;
  DimScope::Impl& scope = scope_of(a, b);
  return memoised(scope.sums, a, b, [&] { return scope.make(sum(terms_of(a), terms_of(b))); });
}

Dim subtract(const Dim& a, const Dim& b) {
  if (a == b) return 0;
  if (b.is_static()) return add(a, checked_mul(b.value(), -1));
  DimScope::Impl& scope = scope_of(a, b);
  return memoised(scope.differences, a, b,
                  [&] { return scope.make(sum(terms_of(a), negated(terms_of(b)))); });
}

Dim multiply(const Dim& a, const Dim& b) {
  if (a.is_static() && b.is_static()) return checked_mul(a.value(), b.value());
  if (a.is_one() || b.is_zero()) return b;
  if (b.is_one() || a.is_zero()) return a;
  DimScope::Impl& scope = scope_of(a, b);
  return memoised(scope.products, a, b,
                  [&] { return scope.make(product(terms_of(a), terms_of(b))); });
}

namespace {

// max and min do not depend on the order of their operands: constants last, long ones first.
bool stands_before(const Dim& a, const Dim& b) {
  if (a.is_static() || b.is_static()) return b.is_static();
  const DimTerm& lead_a = a.expr()->terms[0];
  const DimTerm& lead_b = b.expr()->terms[0];
  if (lead_a.factors.size() != lead_b.factors.size()) {
    return lead_a.factors.size() > lead_b.factors.size();
  }
  return a.expr()->text < b.expr()->text;
}

Dim select(DimAtom::Op op, Memo<Dim> DimScope::Impl::*memo, const Dim& a, const Dim& b) {
  DimScope::Impl& scope = scope_of(a, b);
  return memoised(scope.*memo, a, b, [&]() -> Dim {
    const Dim& smaller_wins = op == DimAtom::Op::kMin ? a : b;
    const Dim& larger_wins = op == DimAtom::Op::kMin ? b : a;
    if (less_equal(a, b) == Truth::kYes) return smaller_wins;
    if (less_equal(b, a) == Truth::kYes) return larger_wins;
    return stands_before(a, b) ? scope.atom(op, a, b) : scope.atom(op, b, a);
  });
}

std::int64_t evaluate_atom(const DimAtom& atom, const DimBindings& bindings) {
  if (atom.op == DimAtom::Op::kSymbol) {
    const auto found = bindings.find(atom.symbol);
    if (found != bindings.end()) return found->second;
    throw Error("E021", fmt::format("symbolic dimension '{}' has no value", atom.symbol))
        .help("every symbol must appear alone as a dimension of some input");
  }
  const std::int64_t lhs = evaluate(atom.lhs, bindings), rhs = evaluate(atom.rhs, bindings);
  switch (atom.op) {
    case DimAtom::Op::kFloordiv:
      return floor_div(lhs, rhs);
    case DimAtom::Op::kMod:
      return floor_mod(lhs, rhs);
    case DimAtom::Op::kMax:
      return std::max(lhs, rhs);
    default:
      return std::min(lhs, rhs);
  }
}

}  // namespace
}  // namespace dim

std::int64_t Dim::value() const {
  if (is_static()) return value_;
  throw Error("BUG", fmt::format("dimension '{}' has no fixed value", str()));
}

std::string Dim::str() const { return is_static() ? fmt::format("{}", value_) : expr_->text; }

std::uint64_t Dim::hash() const {
  return is_static() ? mix(1, static_cast<std::uint64_t>(value_)) : expr_->hash;
}

Dim max(const Dim& a, const Dim& b) {
  if (a.is_static() && b.is_static()) return std::max(a.value(), b.value());
  return dim::select(DimAtom::Op::kMax, &DimScope::Impl::maxima, a, b);
}

Dim min(const Dim& a, const Dim& b) {
  if (a.is_static() && b.is_static()) return std::min(a.value(), b.value());
  return dim::select(DimAtom::Op::kMin, &DimScope::Impl::minima, a, b);
}

Dim product(const Dims& dims) {
  Dim result = 1;
  for (const Dim& size : dims) result = result * size;
  return result;
}

std::int64_t evaluate(const Dim& size, const DimBindings& bindings) {
  if (size.is_static()) return size.value();
  std::int64_t total = 0;
  for (const DimTerm& term : size.expr()->terms) {
    std::int64_t value = term.coefficient;
    for (const DimFactor& factor : term.factors) {
      const std::int64_t base = dim::evaluate_atom(*factor.atom, bindings);
      for (int i = 0; i < factor.power; ++i) value = dim::checked_mul(value, base);
    }
    total = dim::checked_add(total, value);
  }
  return total;
}

void collect_symbols(const Dim& size, std::vector<std::string>& into) {
  if (size.is_static()) return;
  for (const DimTerm& term : size.expr()->terms) {
    for (const DimFactor& factor : term.factors) {
      const DimAtom& atom = *factor.atom;
      if (atom.op != DimAtom::Op::kSymbol) {
        collect_symbols(atom.lhs, into);
        collect_symbols(atom.rhs, into);
      } else if (std::ranges::find(into, atom.symbol) == into.end()) {
        into.push_back(atom.symbol);
      }
    }
  }
}

DimScope::DimScope() : impl_(std::make_unique<Impl>(*this)) {}
DimScope::~DimScope() = default;

void DimScope::let_symbols_be_zero() {
  impl_->least_symbol = 0;
  impl_->forget_results();
}

Dim DimScope::symbol(std::string_view name) {
  const DimAtom*& atom = impl_->symbol_atoms[std::string(name)];
  if (atom == nullptr) {
    impl_->symbols.emplace_back(name);
    atom = impl_->intern(DimAtom{
        .op = DimAtom::Op::kSymbol, .symbol = std::string(name), .lhs = {}, .rhs = {}, .text = {}});
  }
  return impl_->make({DimTerm{1, {{atom, 1}}}});
}

std::vector<std::string> DimScope::symbols() const { return impl_->symbols; }
const std::vector<std::string>& DimScope::constraints() const { return impl_->constraints; }

}  // namespace jaxport

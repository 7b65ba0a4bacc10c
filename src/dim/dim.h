// SPDX-License-Identifier: Apache-2.0
// Symbolic dimensions: integers and polynomials over named symbols with floordiv, mod, max, min.
#pragma once

#include <absl/container/inlined_vector.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace jaxport {

class DimScope;
struct DimExpr;  // an interned polynomial, owned by its scope

// A size: an integer, or an expression interned in a DimScope. Equal expressions are the same
// object, so == and hashing are cheap. Symbols stand for sizes of at least 1, as in jax.export,
// unless their scope says otherwise.
class Dim {
 public:
  Dim(std::int64_t value = 0) : value_(value) {}  // NOLINT: sizes are written as plain integers
  bool is_static() const { return expr_ == nullptr; }
  std::int64_t value() const;  // static dims only; JXP-BUG otherwise
  const DimExpr* expr() const { return expr_; }
  std::string str() const;     // canonical: "2*T + 1", "floordiv(T, 2)", "12"
  std::uint64_t hash() const;  // stable across runs
  friend bool operator==(const Dim& a, const Dim& b) {
    return a.expr_ == b.expr_ && a.value_ == b.value_;
  }
  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  bool is_one() const { return is_static() && value_ == 1; }
  bool is_zero() const { return is_static() && value_ == 0; }

 private:
  friend class DimScope;
  explicit Dim(const DimExpr& expr) : expr_(&expr) {}
  std::int64_t value_ = 0;
  const DimExpr* expr_ = nullptr;
};

// Most shapes fit in place: copying one allocates nothing.
using Dims = absl::InlinedVector<Dim, 4>;
inline Dims to_dims(std::span<const std::int64_t> sizes) { return {sizes.begin(), sizes.end()}; }

// Arithmetic. Throws Error E022 when a coefficient or value leaves int64, an expression grows
// beyond all use, or a divisor is zero; JXP-BUG when two scopes meet.
namespace dim {
Dim add(const Dim& a, const Dim& b);
Dim subtract(const Dim& a, const Dim& b);
Dim multiply(const Dim& a, const Dim& b);
}  // namespace dim

inline Dim operator+(const Dim& a, const Dim& b) {
  std::int64_t sum;
  if (a.is_static() && b.is_static() && !__builtin_add_overflow(a.value_, b.value_, &sum)) {
    return sum;
  }
  return dim::add(a, b);
}
inline Dim operator-(const Dim& a, const Dim& b) {
  std::int64_t difference;
  if (a.is_static() && b.is_static() && !__builtin_sub_overflow(a.value_, b.value_, &difference)) {
    return difference;
  }
  return dim::subtract(a, b);
}
inline Dim operator*(const Dim& a, const Dim& b) {
  std::int64_t result;
  if (a.is_static() && b.is_static() && !__builtin_mul_overflow(a.value_, b.value_, &result)) {
    return result;
  }
  return dim::multiply(a, b);
}
Dim floordiv(const Dim& a, const Dim& b);
Dim mod(const Dim& a, const Dim& b);  // sign of the divisor, as in Python
Dim max(const Dim& a, const Dim& b);
Dim min(const Dim& a, const Dim& b);
Dim product(const Dims& dims);

// a / b when b divides a for every value of the symbols (memoised in the scope); else nullopt.
std::optional<Dim> exact_div(const Dim& a, const Dim& b);

// What can be decided for every value of the symbols under the scope's constraints.
enum class Truth : std::uint8_t { kNo, kYes, kUnknown };
Truth equal(const Dim& a, const Dim& b);
Truth less_equal(const Dim& a, const Dim& b);

// What cannot be taken apart: a symbol or an operation. Interned: equal atoms are one object.
struct DimAtom {
  enum class Op : std::uint8_t { kSymbol, kFloordiv, kMod, kMax, kMin };
  Op op;
  std::string symbol;        // kSymbol
  Dim lhs, rhs;              // the others
  std::string text;          // as it prints
  std::uint64_t weight = 0;  // how large it is, for the order of terms
  std::uint64_t hash = 0;
};
// One factor of a summand: an atom to a power of at least 1.
struct DimFactor {
  const DimAtom* atom;
  int power;
  friend bool operator==(const DimFactor&, const DimFactor&) = default;
};
// One summand: coefficient * product of factors; a constant has no factors.
struct DimTerm {
  std::int64_t coefficient;
  std::vector<DimFactor> factors;
  friend bool operator==(const DimTerm&, const DimTerm&) = default;
};
struct DimExpr {
  DimScope* scope;
  std::vector<DimTerm> terms;  // canonical order, at least one non-constant
  std::uint64_t hash;
  std::string text;
};

// Owns symbols and expressions of one program. Not shared between threads.
class DimScope {
 public:
  DimScope();
  ~DimScope();
  DimScope(const DimScope&) = delete;
  DimScope& operator=(const DimScope&) = delete;

  // Symbols stand for sizes of at least 0 from here on, as in a model that says nothing of them.
  void let_symbols_be_zero();

  Dim symbol(std::string_view name);         // any text; parse() reads back Python identifiers
  std::vector<std::string> symbols() const;  // in order of first use

  // Reads what str() and JAX print ("B^2 - T", "mod(B*T, 3)") and what people write ("2*T+1",
  // "T//2", "H*W"). Throws Error E020 with the position of the first bad character.
  Dim parse(std::string_view text);

  // "T % 8 == 0" or "T >= 4", as jax.export takes them. Throws Error E020.
  void add_constraint(std::string_view text);
  const std::vector<std::string>& constraints() const;

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

using DimBindings = std::map<std::string, std::int64_t, std::less<>>;
// The value for concrete symbols. Throws Error E021 for an unbound symbol, E022 beyond int64.
std::int64_t evaluate(const Dim& size, const DimBindings& bindings);
// Appends the symbols of `size` in order of appearance, each once.
void collect_symbols(const Dim& size, std::vector<std::string>& into);

}  // namespace jaxport

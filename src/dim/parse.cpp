// SPDX-License-Identifier: Apache-2.0
// Text of dimensions and constraints, as JAX prints them and as people write them.
#include <fmt/format.h>

#include <charconv>

#include "dim/scope.h"
#include "jaxport/error.h"
#include "support/text.h"

namespace jaxport {
namespace {

constexpr int kMaxDepth = 100;
constexpr std::int64_t kMaxExponent = 64;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
// Bytes beyond ASCII are letters: symbol names may be any Python identifier.
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}

// sum     = product {("+" | "-") product}
// product = signed {("*" | "//" | "%") signed}
// signed  = {"+" | "-"} power
// power   = primary [("^" | "**") number]
// primary = number | symbol | "(" sum ")" | function "(" sum "," sum ")"
// function = "floordiv" | "mod" | "max" | "min"
class Parser {
 public:
  Parser(DimScope& scope, std::string_view text) : scope_(scope), text_(text) { skip_space(); }

  Dim whole() {
    Dim result = sum();
    if (at_ < text_.size()) expected("an operator");
    return result;
  }

  Dim sum() {
    Dim result = product();
    for (;;) {
      if (take("+")) {
        result = result + product();
      } else if (take("-")) {
        result = result - product();
      } else {
        return result;
      }
    }
  }

  bool take(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    skip_space();
    return true;
  }

  [[noreturn]] void expected(std::string_view what) const {
    const std::string found = at_ < text_.size() ? "'" + excerpt(text_.substr(at_, 1)) + "'"
                                                 : std::string("the end of the text");
    fail(at_, fmt::format("expected {} instead of {}", what, found));
  }

  [[noreturn]] void fail(std::size_t position, std::string_view what) const {
    throw Error("E020", fmt::format("cannot read dimension '{}': {} at column {}", excerpt(text_),
                                    what, position + 1))
        .help("write sizes such as 4, \"B\", \"2*T + 1\", \"H//2\" or \"max(B, T)\"");
  }

 private:
  Dim product() {
    Dim result = signed_power();
    for (;;) {
      if (take("*")) {
        result = result * signed_power();
      } else if (take("//")) {
        result = floordiv(result, divisor());
      } else if (take("%")) {
        result = mod(result, divisor());
      } else {
        return result;
      }
    }
  }

  Dim divisor() {
    const std::size_t start = at_;
    const Dim result = signed_power();
    if (result.is_zero()) fail(start, "a divisor is zero");
    return result;
  }

  Dim signed_power() {
    bool negative = false;
    for (;;) {
      if (take("-")) {
        negative = !negative;
      } else if (!take("+")) {
        break;
      }
    }
    const Dim result = power();
    return negative ? 0 - result : result;
  }

  Dim power() {
    const Dim base = primary();
    if (!take("^") && !take("**")) return base;
    const std::size_t start = at_;
    const std::int64_t exponent = number();
    if (exponent > kMaxExponent) fail(start, "an exponent is too large");
    Dim result = 1;
    for (std::int64_t i = 0; i < exponent; ++i) result = result * base;
    return result;
  }

  Dim primary() {
    if (at_ < text_.size() && is_digit(text_[at_])) return number();
    if (at_ < text_.size() && is_letter(text_[at_])) return named();
    if (take("(")) return nested([this] { return sum(); });
    expected("a number, a symbol or '('");
  }

  Dim named() {
    const std::size_t start = at_;
    const std::string_view name = word();
    if (!take("(")) return scope_.symbol(name);
    return nested([this, start, name] {
      const Dim lhs = sum();
      if (!take(",")) expected("','");
      if (name == "floordiv") return floordiv(lhs, nonzero_sum());
      if (name == "mod") return mod(lhs, nonzero_sum());
      const Dim rhs = sum();
      if (name == "max") return max(lhs, rhs);
      if (name == "min") return min(lhs, rhs);
      fail(start, fmt::format("function '{}' is not known", excerpt(name)));
    });
  }

  Dim nonzero_sum() {
    const std::size_t start = at_;
    const Dim result = sum();
    if (result.is_zero()) fail(start, "a divisor is zero");
    return result;
  }

  // What stands between parentheses; the opening one is already taken.
  template <class Inside>
  Dim nested(Inside inside) {
    if (++depth_ > kMaxDepth) fail(at_, "too many nested parentheses");
    const Dim result = inside();
    if (!take(")")) expected("')'");
    --depth_;
    return result;
  }

  std::int64_t number() {
    std::int64_t value = 0;
    const char* first = text_.data() + at_;
    const auto [end, failure] = std::from_chars(first, text_.data() + text_.size(), value);
    if (failure == std::errc::result_out_of_range) fail(at_, "a number beyond 64 bits");
    if (failure != std::errc() || value < 0) expected("a number");
    at_ += static_cast<std::size_t>(end - first);
    if (at_ < text_.size() && (is_letter(text_[at_]) || text_[at_] == '.')) {
      expected("an operator");
    }
    skip_space();
    return value;
  }

  std::string_view word() {
    const std::size_t start = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    const std::string_view result = text_.substr(start, at_ - start);
    skip_space();
    return result;
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }

  DimScope& scope_;
  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

// mod(x, k) with k > 1, standing alone.
const DimAtom* lone_mod(const Dim& dim) {
  if (dim.is_static() || dim.expr()->terms.size() != 1) return nullptr;
  const DimTerm& term = dim.expr()->terms[0];
  if (term.coefficient != 1 || term.factors.size() != 1 || term.factors[0].power != 1) {
    return nullptr;
  }
  const DimAtom* atom = term.factors[0].atom;
  const bool fits = atom->op == DimAtom::Op::kMod && atom->rhs.is_static() && atom->rhs.value() > 1;
  return fits ? atom : nullptr;
}

void require_non_negative(DimScope::Impl& impl, const Dim& difference, std::string_view text) {
  if (!difference.is_static()) {
    impl.non_negative.push_back(difference);
  } else if (difference.value() < 0) {
    throw Error("E020", fmt::format("constraint '{}' never holds", excerpt(text)));
  }
}

}  // namespace

Dim DimScope::parse(std::string_view text) { return Parser(*this, text).whole(); }

void DimScope::add_constraint(std::string_view text) {
  Parser parser(*this, text);
  const Dim lhs = parser.sum();
  const bool at_least = parser.take(">="), at_most = !at_least && parser.take("<=");
  if (!at_least && !at_most && !parser.take("==")) {
    parser.expected("'>=', '<=' or '=='");
  }
  const Dim rhs = parser.whole();
  const DimAtom* remainder = lone_mod(lhs);
  if (!at_least && !at_most && remainder != nullptr && rhs.is_zero()) {
    impl_->divisibilities.push_back({remainder->lhs, remainder->rhs.value()});
  } else {
    if (!at_most) require_non_negative(*impl_, lhs - rhs, text);
    if (!at_least) require_non_negative(*impl_, rhs - lhs, text);
  }
  impl_->constraints.emplace_back(text);
  impl_->forget_results();
}

}  // namespace jaxport

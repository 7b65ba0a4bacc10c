// SPDX-License-Identifier: Apache-2.0
#include "raise/algebra/cone.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "raise/algebra/views.h"
#include "raise/rules/activation.h"
#include "support/tensor.h"

namespace jaxport::raise {
namespace {

using axis::Kind;
using axis::Node;
using axis::Use;

constexpr std::size_t kMaxExpanded = 24;
constexpr std::size_t kMaxOperands = 3;

std::int64_t exponent_of(const Node& node) {
  const front::Attr* y = node.attr("y");
  const auto* exponent = y ? y->get_if<std::int64_t>() : nullptr;
  return exponent ? *exponent : std::numeric_limits<std::int64_t>::max();
}

// --- what operations are on pieces, where conditions are constants: 0 and 1

Form truth(const Form& like, bool value) { return {like.piece(), value ? 1.0 : 0.0}; }

// Operands that are equal everywhere: the program tests for NaN, which an overflow on the way may
// have caused.
Form equality(const Form* v, bool wanted) {
  const bool is_equal = compare(v[0], v[1]) == 0;
  const bool may_overflow = !v[0].is_finite() || !v[1].is_finite();
  if (is_equal && may_overflow && !v[0].piece().is_point()) return Form::unknown(v[0].piece());
  return truth(v[0], is_equal == wanted);
}

Form converted(const Form* v, const Node& node) {
  return node.dtype == DType::kBool ? truth(v[0], compare(v[0], Form(v[0].piece(), 0)) != 0) : v[0];
}

Form selected(const Form* v, const Node&) {
  const auto which = v[0].constant();
  Piece& piece = v[0].piece();
  if (!which && !piece.is_over()) piece.is_undecided = true;
  return which && *which != 0 ? v[2] : v[1];
}

Form raised_to(const Form& base, double exponent) {
  const bool is_small = std::abs(exponent) < 100 && exponent == std::round(exponent);
  return is_small ? power(base, static_cast<int>(exponent)) : Form::unknown(base.piece());
}

double sign(double x) { return std::isnan(x) ? x : double((x > 0) - (x < 0)); }
double erfc(double x) { return std::erfc(x); }
Form erfc(const Form& x) { return 1 - erf(x); }
double exp2(double x) { return std::exp2(x); }
Form exp2(const Form& x) { return exp(x * std::numbers::ln2); }
using std::abs, std::erf, std::exp, std::expm1, std::log, std::log1p, std::tanh;

// One formula for numbers and for forms.
template <auto Formula>
constexpr Cone::Operation row(std::string_view name, bool curved = true) {
  return {name, [](const double* v, const Node&) -> double { return Formula(v); },
          [](const Form* v, const Node&) -> Form { return Formula(v); }, curved};
}

template <auto Test>
constexpr Cone::Operation comparison(std::string_view name) {
  return {name, [](const double* v, const Node&) { return double(Test(v[0], v[1])); },
          [](const Form* v, const Node&) { return truth(v[0], Test(compare(v[0], v[1]), 0)); }};
}

constexpr Cone::Operation kOperations[] = {
    row<[](const auto* v) { return abs(v[0]); }>("abs"),
    row<[](const auto* v) { return v[0] + v[1]; }>("add", false),
    row<[](const auto* v) { return v[0] * v[1]; }>("and"),
    row<[](const auto* v) { return min(max(v[1], v[0]), v[2]); }>("clamp"),
    {"convert_element_type",
     [](const double* v, const Node& node) {
       return node.dtype == DType::kBool ? double(v[0] != 0) : v[0];
     },
     converted, false},
    row<[](const auto* v) { return v[0]; }>("copy", false),
    row<[](const auto* v) { return v[0] / v[1]; }>("div", false),
    {"eq", [](const double* v, const Node&) { return double(v[0] == v[1]); },
     [](const Form* v, const Node&) { return equality(v, true); }},
    row<[](const auto* v) { return erf(v[0]); }>("erf"),
    row<[](const auto* v) { return erfc(v[0]); }>("erfc"),
    row<[](const auto* v) { return exp(v[0]); }>("exp"),
    row<[](const auto* v) { return exp2(v[0]); }>("exp2"),
    row<[](const auto* v) { return expm1(v[0]); }>("expm1"),
    comparison<std::greater_equal<>{}>("ge"),
    comparison<std::greater<>{}>("gt"),
    {"integer_pow",
     [](const double* v, const Node& node) {
       return std::pow(v[0], static_cast<double>(exponent_of(node)));
     },
     [](const Form* v, const Node& node) {
       return raised_to(v[0], static_cast<double>(exponent_of(node)));
     },
     false},
    {"is_finite", [](const double* v, const Node&) { return double(std::isfinite(v[0])); },
     [](const Form* v, const Node&) {
       return v[0].is_finite() ? truth(v[0], true) : Form::unknown(v[0].piece());
     }},
    comparison<std::less_equal<>{}>("le"),
    row<[](const auto* v) { return log(v[0]); }>("log"),
    row<[](const auto* v) { return log1p(v[0]); }>("log1p"),
    row<[](const auto* v) { return logistic(v[0]); }>("logistic"),
    comparison<std::less<>{}>("lt"),
    row<[](const auto* v) { return max(v[0], v[1]); }>("max"),
    row<[](const auto* v) { return min(v[0], v[1]); }>("min"),
    row<[](const auto* v) { return v[0] * v[1]; }>("mul", false),
    {"ne", [](const double* v, const Node&) { return double(v[0] != v[1]); },
     [](const Form* v, const Node&) { return equality(v, false); }},
    row<[](const auto* v) { return -v[0]; }>("neg", false),
    row<[](const auto* v) { return 1 - v[0]; }>("not"),
    row<[](const auto* v) { return max(v[0], v[1]); }>("or"),
    {"pow", [](const double* v, const Node&) { return std::pow(v[0], v[1]); },
     [](const Form* v, const Node&) {
       const auto exponent = v[1].constant();
       return exponent ? raised_to(v[0], *exponent) : Form::unknown(v[0].piece());
     }},
    {"select_n", [](const double* v, const Node&) { return v[0] != 0 ? v[2] : v[1]; }, selected},
    row<[](const auto* v) { return sign(v[0]); }>("sign"),
    row<[](const auto* v) { return v[0] - v[1]; }>("sub", false),
    row<[](const auto* v) { return tanh(v[0]); }>("tanh"),
};
static_assert(std::ranges::is_sorted(kOperations, {}, &Cone::Operation::name));

constexpr Cone::Operation kActivation{
    "activation",
    [](const double* v, const Node& node) {
      return find_activation(node.name)->value(v[0], alpha_of(node));
    },
    [](const Form* v, const Node& node) {
      return find_activation(node.name)->form(v[0], alpha_of(node));
    }};

// Every value of `root` survives in `dtype`: a narrower step on the way rounds, which at() would
// not see.
bool is_as_wide(DType dtype, DType root) {
  return !is_float(dtype) || dtype == root || byte_width(dtype) > byte_width(root);
}

const Cone::Operation* find_operation(const Node& node) {
  if (node.kind != Kind::kPointwise || node.edges.size() > kMaxOperands) return nullptr;
  if (!is_float(node.dtype) && node.dtype != DType::kBool) return nullptr;
  const auto* found = std::ranges::lower_bound(kOperations, node.name, {}, &Cone::Operation::name);
  if (found != std::end(kOperations) && found->name == node.name) return found;
  return find_activation(node.name) ? &kActivation : nullptr;
}

constexpr double kFamous[] = {
    0.044715,
    1.0 / 6,
    std::numbers::sqrt2,
    std::numbers::sqrt2 / 2,
    std::numbers::sqrt2* std::numbers::inv_sqrtpi,             // sqrt(2 / pi)
    std::numbers::sqrt2* std::numbers::inv_sqrtpi * 0.044715,  // gelu, multiplied out
    1.0507009873554805,                                        // selu
    1.6732632423543772,
    1.0507009873554805 * 1.6732632423543772,
};

double unrounded(double value, DType dtype) {
  if (dtype != DType::kBF16 && dtype != DType::kF16) return value;
  for (double famous : kFamous) {
    if (std::abs(value) == rounded_to(dtype, famous)) return std::copysign(famous, value);
  }
  return value;
}

}  // namespace

Cone::Cone(axis::Graph& graph, const Use& root) : graph_(graph) {
  slots_.push_back({.use = root});
  frontier_.push_back(0);
}

bool Cone::next() {
  do {
    if (frontier_.empty() || expanded_.size() == kMaxExpanded) return false;
    if (!expand(take_newest())) return false;
  } while (frontier_.size() != 1);
  base_ = frontier_.front();
  return true;
}

// The newest node cannot be an operand of the others, so all its users are expanded already.
std::size_t Cone::take_newest() {
  const auto newest = std::ranges::max_element(
      frontier_, {}, [&](std::size_t slot) { return slots_[slot].use.node->id; });
  const std::size_t slot = *newest;
  frontier_.erase(newest);
  return slot;
}

bool Cone::expand(std::size_t slot) {
  const Node& node = *slots_[slot].use.node;
  const Operation* operation = find_operation(node);
  if (!operation || !is_as_wide(node.dtype, slots_[0].use.node->dtype)) return false;
  slots_[slot].operation = operation;
  curved_ |= operation->curved;
  has_raised_ |= operation == &kActivation;
  for (const Use& child : graph_.children(slots_[slot].use)) {
    const std::size_t operand = slot_of(child);
    slots_[slot].operands.push_back(operand);
  }
  expanded_.push_back(slot);
  return true;
}

std::size_t Cone::slot_of(const Use& use) {
  const auto known = std::ranges::find(slots_, use, &Slot::use);
  if (known != slots_.end()) return static_cast<std::size_t>(known - slots_.begin());
  Slot slot{.use = use};
  if (auto value = graph_.scalar_value(use)) {
    slot.is_literal = true;
    slot.literal = *value;
    slot.factor = unrounded(*value, use.node->dtype);
  } else {
    frontier_.push_back(slots_.size());
  }
  slots_.push_back(std::move(slot));
  return slots_.size() - 1;
}

bool Cone::picks_shared_value(const axis::UseCounts& uses) const {
  constexpr std::string_view kPicks[] = {"clamp", "max", "min", "relu", "select_n"};
  const auto uses_inside = [&](std::size_t operand) {
    std::ptrdiff_t count = 0;
    for (std::size_t slot : expanded_) count += std::ranges::count(slots_[slot].operands, operand);
    return count;
  };
  std::vector<std::size_t> picked{0};
  for (std::size_t k = 0; k < picked.size(); ++k) {  // grows meanwhile
    const Slot& slot = slots_[picked[k]];
    if (std::ranges::find(kPicks, slot.use.node->name) == std::end(kPicks)) continue;
    for (std::size_t operand : slot.operands) {
      const Slot& value = slots_[operand];
      if (operand == base_ || value.is_literal || value.use.node->dtype == DType::kBool) continue;
      if (uses[value.use.node] > uses_inside(operand)) return true;
      picked.push_back(operand);
    }
  }
  return false;
}

double Cone::literal(std::size_t user, std::size_t operand) const {
  const std::string_view name = slots_[user].operation->name;
  return name == "mul" || name == "div" ? slots_[operand].factor : slots_[operand].literal;
}

double Cone::at(double x) const {
  std::array<double, 1 + kMaxExpanded * kMaxOperands> values;
  values[base_] = x;
  for (std::size_t k = expanded_.size(); k-- > 0;) {
    const Slot& slot = slots_[expanded_[k]];
    std::array<double, kMaxOperands> operands{};
    for (std::size_t i = 0; i < slot.operands.size(); ++i) {
      const std::size_t from = slot.operands[i];
      operands[i] = slots_[from].is_literal ? literal(expanded_[k], from) : values[from];
    }
    values[expanded_[k]] = slot.operation->value(operands.data(), *slot.use.node);
  }
  return values[0];
}

Form Cone::on(const Form& x) const {
  std::vector<Form> values(slots_.size(), x);
  for (std::size_t k = expanded_.size(); k-- > 0;) {
    const Slot& slot = slots_[expanded_[k]];
    std::vector<Form> operands;
    for (std::size_t from : slot.operands) {
      operands.push_back(slots_[from].is_literal ? Form(x.piece(), literal(expanded_[k], from))
                                                 : values[from]);
    }
    values[expanded_[k]] = slot.operation->form(operands.data(), *slot.use.node);
    if (x.piece().is_over()) return x;
  }
  return values[0];
}

}  // namespace jaxport::raise

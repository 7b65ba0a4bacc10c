// SPDX-License-Identifier: Apache-2.0
#include "raise/cone.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "raise/activation.h"
#include "raise/views.h"

namespace jaxport::raise {
namespace {

using axis::Kind;
using axis::Node;
using axis::Use;

constexpr std::size_t kMaxExpanded = 24;
constexpr std::size_t kMaxOperands = 3;

double nan_min(double a, double b) { return -nan_max(-a, -b); }

double integer_power(const double* v, const Node& node) {
  const front::Attr* y = node.attr("y");
  const auto* exponent = y ? y->get_if<std::int64_t>() : nullptr;
  return exponent ? std::pow(v[0], static_cast<double>(*exponent)) : std::nan("");
}

// Booleans are 0 and 1.
constexpr Cone::Operation kOperations[] = {
    {"abs", [](const double* v, const Node&) { return std::abs(v[0]); }, true},
    {"add", [](const double* v, const Node&) { return v[0] + v[1]; }, false},
    {"and", [](const double* v, const Node&) { return v[0] * v[1]; }, true},
    {"clamp", [](const double* v, const Node&) { return nan_min(nan_max(v[1], v[0]), v[2]); },
     true},
    {"convert_element_type", [](const double* v, const Node&) { return v[0]; }, false},
    {"copy", [](const double* v, const Node&) { return v[0]; }, false},
    {"div", [](const double* v, const Node&) { return v[0] / v[1]; }, false},
    {"eq", [](const double* v, const Node&) { return double(v[0] == v[1]); }, true},
    {"erf", [](const double* v, const Node&) { return std::erf(v[0]); }, true},
    {"erfc", [](const double* v, const Node&) { return std::erfc(v[0]); }, true},
    {"exp", [](const double* v, const Node&) { return std::exp(v[0]); }, true},
    {"exp2", [](const double* v, const Node&) { return std::exp2(v[0]); }, true},
    {"expm1", [](const double* v, const Node&) { return std::expm1(v[0]); }, true},
    {"ge", [](const double* v, const Node&) { return double(v[0] >= v[1]); }, true},
    {"gt", [](const double* v, const Node&) { return double(v[0] > v[1]); }, true},
    {"integer_pow", integer_power, false},
    {"is_finite", [](const double* v, const Node&) { return double(std::isfinite(v[0])); }, true},
    {"le", [](const double* v, const Node&) { return double(v[0] <= v[1]); }, true},
    {"log", [](const double* v, const Node&) { return std::log(v[0]); }, true},
    {"log1p", [](const double* v, const Node&) { return std::log1p(v[0]); }, true},
    {"logistic", [](const double* v, const Node&) { return 1 / (1 + std::exp(-v[0])); }, true},
    {"lt", [](const double* v, const Node&) { return double(v[0] < v[1]); }, true},
    {"max", [](const double* v, const Node&) { return nan_max(v[0], v[1]); }, true},
    {"min", [](const double* v, const Node&) { return nan_min(v[0], v[1]); }, true},
    {"mul", [](const double* v, const Node&) { return v[0] * v[1]; }, false},
    {"ne", [](const double* v, const Node&) { return double(v[0] != v[1]); }, true},
    {"neg", [](const double* v, const Node&) { return -v[0]; }, false},
    {"not", [](const double* v, const Node&) { return 1 - v[0]; }, true},
    {"or", [](const double* v, const Node&) { return std::max(v[0], v[1]); }, true},
    {"pow", [](const double* v, const Node&) { return std::pow(v[0], v[1]); }, true},
    {"rsqrt", [](const double* v, const Node&) { return 1 / std::sqrt(v[0]); }, true},
    {"select_n", [](const double* v, const Node&) { return v[0] != 0 ? v[2] : v[1]; }, true},
    {"sqrt", [](const double* v, const Node&) { return std::sqrt(v[0]); }, true},
    {"sub", [](const double* v, const Node&) { return v[0] - v[1]; }, false},
    {"tanh", [](const double* v, const Node&) { return std::tanh(v[0]); }, true},
};
static_assert(std::ranges::is_sorted(kOperations, {}, &Cone::Operation::name));

constexpr Cone::Operation kActivation{"activation",
                                      [](const double* v, const Node& node) {
                                        return find_activation(node.name)->value(
                                            v[0], number(node, "alpha"));
                                      },
                                      true};

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

double rounded(double value, DType dtype) {
  const auto narrow = static_cast<float>(value);
  if (dtype == DType::kBF16) return bf16_to_float(float_to_bf16(narrow));
  return f16_to_float(float_to_f16(narrow));
}

double unrounded(double value, DType dtype) {
  if (dtype != DType::kBF16 && dtype != DType::kF16) return value;
  for (double famous : kFamous) {
    if (std::abs(value) == rounded(famous, dtype)) return std::copysign(famous, value);
  }
  return value;
}

}  // namespace

Cone::Cone(axis::Graph& graph, const Use& root) : graph_(graph) {
  slots_.push_back({root, 0, nullptr, {}});
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
  Slot slot{use, 0, nullptr, {}};
  if (auto value = graph_.scalar_value(use)) {
    slot.literal = unrounded(*value, use.node->dtype);
    literals_.push_back(slot.literal);
  } else {
    frontier_.push_back(slots_.size());
  }
  slots_.push_back(std::move(slot));
  return slots_.size() - 1;
}

double Cone::at(double x) const {
  std::array<double, 1 + kMaxExpanded * kMaxOperands> values;
  for (std::size_t i = 0; i < slots_.size(); ++i) values[i] = slots_[i].literal;
  values[base_] = x;
  for (std::size_t k = expanded_.size(); k-- > 0;) {
    const Slot& slot = slots_[expanded_[k]];
    std::array<double, kMaxOperands> operands{};
    for (std::size_t i = 0; i < slot.operands.size(); ++i) operands[i] = values[slot.operands[i]];
    values[expanded_[k]] = slot.operation->value(operands.data(), *slot.use.node);
  }
  return values[0];
}

}  // namespace jaxport::raise

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "inspect/path_search.h"

namespace jaxport::inspect {
namespace {

// As numpy.allclose: an absolute and a relative part.
bool is_close(double actual, double expected) {
  constexpr double kAbsolute = 1e-8, kRelative = 1e-5;
  if (actual == expected) return true;
  return std::abs(actual - expected) <= kAbsolute + kRelative * std::abs(expected) &&
         std::isfinite(expected);
}

std::string text(const Numbers& numbers) {
  if (numbers.values.size() == 1) return fmt::to_string(numbers.values[0]);
  return fmt::format("an array of [{}]", fmt::join(numbers.shape, ","));
}

std::string broken_value(const Numbers& actual, const Numbers& expected) {
  const bool is_one = actual.values.size() == 1 && expected.values.size() == 1;
  const bool as_bools = actual.is_bool || expected.is_bool;
  const auto equal = [&](double a, double e) {
    return as_bools ? (a != 0) == (e != 0) : is_close(a, e);
  };
  if ((actual.shape == expected.shape || is_one) &&
      std::ranges::equal(actual.values, expected.values, equal)) {
    return "";
  }
  return fmt::format("is {}, not {}", text(actual), text(expected));
}

std::string broken(const GraphView& view, onnx::ValueId id, const InputRule& rule) {
  if (rule.initializer_name && view.name_of(id) != *rule.initializer_name) {
    return fmt::format("is '{}', not '{}'", view.name_of(id), *rule.initializer_name);
  }
  if (!rule.value && !rule.truth) return "";
  const auto largest = rule.value ? static_cast<std::int64_t>(rule.value->values.size()) : 1;
  const std::optional<Numbers> actual = view.constant(id, std::max<std::int64_t>(largest, 1));
  if (!actual) return "is no constant of that size";
  if (rule.truth && (actual->values.size() != 1 || (actual->values[0] != 0) != *rule.truth)) {
    return fmt::format("is not {}", *rule.truth);
  }
  return rule.value ? broken_value(*actual, *rule.value) : "";
}

}  // namespace

std::string broken_rule(const GraphView& view, std::size_t node,
                        const std::map<std::size_t, InputRule>& rules) {
  const std::vector<onnx::ValueId>& in = view.node(node).in;
  for (const auto& [index, rule] : rules) {
    const bool is_there = index < in.size() && in[index] != onnx::kAbsent;
    if (rule.absent) {
      if (is_there) return fmt::format("input {} is not absent", index);
      continue;
    }
    if (index >= in.size()) return fmt::format("it has {} inputs, no input {}", in.size(), index);
    if (std::string why = broken(view, in[index], rule); !why.empty()) {
      return fmt::format("input {} {}", index, why);
    }
  }
  return "";
}

}  // namespace jaxport::inspect

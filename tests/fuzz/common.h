// SPDX-License-Identifier: Apache-2.0
// What many files of the search need.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <string_view>

namespace jaxport::fuzz {

constexpr double kInf = std::numeric_limits<double>::infinity();

inline bool is_among(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace jaxport::fuzz

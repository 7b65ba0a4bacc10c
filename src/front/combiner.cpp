// SPDX-License-Identifier: Apache-2.0
#include "front/combiner.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace jaxport::front {
namespace {

constexpr std::array<std::string_view, 7> kMonoids{"add", "and", "max", "min", "mul", "or", "xor"};

bool is_pair(const Eqn& eqn, ValueId first, ValueId second) {
  const bool forward = eqn.in == std::vector{first, second};
  return forward || eqn.in == std::vector{second, first};
}

}  // namespace

std::vector<std::string> combiners(const Function& body) {
  const std::size_t count = body.results.size();
  if (body.params.size() != 2 * count || body.eqns.size() != count) return {};
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    const auto eqn = std::ranges::find_if(
        body.eqns, [&](const Eqn& e) { return e.out == std::vector{body.results[i]}; });
    if (eqn == body.eqns.end() || !is_pair(*eqn, body.params[i], body.params[count + i])) return {};
    if (std::ranges::find(kMonoids, eqn->primitive) == kMonoids.end()) return {};
    names.push_back(eqn->primitive);
  }
  return names;
}

}  // namespace jaxport::front

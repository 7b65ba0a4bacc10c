// SPDX-License-Identifier: Apache-2.0
#include "front/combiner.h"

#include <algorithm>

namespace jaxport::front {
namespace {

constexpr Combiner kCombiners[] = {
    {"add", "reduce_sum", 0},         {"and", "reduce_and", -1}, {"max", "reduce_max", -kInfinity},
    {"min", "reduce_min", kInfinity}, {"mul", "reduce_prod", 1}, {"or", "reduce_or", 0},
    {"xor", "reduce_xor", 0},
};

bool is_pair(const Eqn& eqn, ValueId first, ValueId second) {
  const bool forward = eqn.in == std::vector{first, second};
  return forward || eqn.in == std::vector{second, first};
}

}  // namespace

std::vector<Combiner> combiners(const Function& body) {
  const std::size_t count = body.results.size();
  if (body.params.size() != 2 * count || body.eqns.size() != count) return {};
  std::vector<Combiner> found;
  for (std::size_t i = 0; i < count; ++i) {
    const auto eqn = std::ranges::find_if(
        body.eqns, [&](const Eqn& e) { return e.out == std::vector{body.results[i]}; });
    if (eqn == body.eqns.end() || !is_pair(*eqn, body.params[i], body.params[count + i])) return {};
    const auto* row = std::ranges::find(kCombiners, eqn->primitive, &Combiner::primitive);
    if (row == std::end(kCombiners)) return {};
    found.push_back(*row);
  }
  return found;
}

}  // namespace jaxport::front

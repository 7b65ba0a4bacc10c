// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <limits>
#include <utility>
#include <vector>

namespace jaxport::lower {

constexpr double kNever = std::numeric_limits<double>::infinity();

// The candidate with the lowest price, which may be a member of it (&Product::price); the first of
// equals. An empty candidate when there is none.
template <class Candidate, class Price>
Candidate cheapest_of(std::vector<Candidate> candidates, const Price& price) {
  std::size_t best = 0;
  double lowest = kNever;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const double cost = std::invoke(price, candidates[i]);
    if (cost < lowest) lowest = cost, best = i;
  }
  return candidates.empty() ? Candidate{} : std::move(candidates[best]);
}

}  // namespace jaxport::lower

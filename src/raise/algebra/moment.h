// SPDX-License-Identifier: Apache-2.0
// What stands under the root of a norm: a mean square or a variance, plus eps.
#pragma once

#include <optional>
#include <string>

#include "raise/algebra/views.h"

namespace jaxport::raise {

struct Moment {
  bool center = false;  // the mean square of x - mean(x), not of x
  double ratio = 1;     // what stands there is ratio * (mean square + eps): n for a sum of squares
  Reduction x;
  double eps = 0;
  std::string problem;  // why it is not quite one; empty when it is
};

// mean_a x^2 + eps, mean_a (x - mean_a x)^2 + eps or mean_a x^2 - (mean_a x)^2 + eps; and the same
// with a sum in place of the outer mean. It may be clamped at zero, together with a part of eps
// that is not negative: a clamp around a negative part is not idle.
std::optional<Moment> moment_of(axis::Graph& graph, const axis::Use& use);

}  // namespace jaxport::raise

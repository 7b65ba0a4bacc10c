// SPDX-License-Identifier: Apache-2.0
// Constants: what is computed at compile time, and the canonical form of integer arrays.
#pragma once

#include <cstdint>
#include <optional>

#include "axis/graph/graph.h"

namespace jaxport::axis {

// The value of a node whose operands are all constants, when it is small; large weights are never
// copied. nullopt when the node stays.
std::optional<Tensor> fold(const Node& node);

// Small integer and bool arrays with equal elements: a scalar that is broadcast. Floats are left
// alone: a weight that happens to be uniform stays a weight.
bool is_uniform(const Tensor& tensor);
Tensor first_element(const Tensor& tensor);

// start + step * iota, for small integer arrays with one axis.
struct Progression {
  std::int64_t start, step;
};
std::optional<Progression> progression(const Tensor& tensor);

}  // namespace jaxport::axis

// SPDX-License-Identifier: Apache-2.0
// Canonical forms of what programs do with the bits of numbers (pointwise.cpp has the others).
#pragma once

#include "axis/graph/pointwise.h"

namespace jaxport::axis {

// Random bits as numbers in [1, 2).
Use float_of_random_bits(const Call& call);
// Whether the highest bit of a signed integer is set: x < 0.
Use sign_bit(const Call& call);
// The total order of floats whose zeros and NaNs have lost their signs, by plain comparisons.
Use in_plain_order(const Call& call);

}  // namespace jaxport::axis

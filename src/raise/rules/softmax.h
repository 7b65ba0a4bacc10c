// SPDX-License-Identifier: Apache-2.0
// The parts of a softmax, for rules that meet the sum or the quotient before it is one node.
#pragma once

#include <optional>

#include "raise/algebra/views.h"

namespace jaxport::raise {

// exp(y) or exp2(y) as it is; exp(y) times a mask, or zero where a mask is false, as the
// exponential of -inf there. Empty for others.
axis::Use as_exp(axis::Graph& graph, const axis::Use& use);

// sum_s e -> e, s for what as_exp knows.
std::optional<Reduction> sum_of_exp(axis::Graph& graph, const axis::Use& use);

// The softmax along s whose numerator is e.
axis::Use softmax_of_exp(axis::Graph& graph, const axis::Use& e, const axis::Labels& s);

}  // namespace jaxport::raise

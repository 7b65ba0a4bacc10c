// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "front/ir.h"

namespace jaxport::front {

// A primitive that combines two values, and the reduction that combines many.
struct Combiner {
  std::string_view primitive, reduction;
  double neutral;  // of every dtype, as scalar() makes it
};

// The function of a reduction over n operands takes n accumulated values, then n elements. When it
// combines each pair with one primitive such as add, these primitives; empty otherwise.
std::vector<Combiner> combiners(const Function& body);

}  // namespace jaxport::front

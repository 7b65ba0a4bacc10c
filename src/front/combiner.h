// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "front/ir.h"

namespace jaxport::front {

// The function of a reduction over n operands takes n accumulated values, then n elements. When it
// combines each pair with one primitive such as add, these primitives; empty otherwise.
std::vector<std::string> combiners(const Function& body);

}  // namespace jaxport::front

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "front/ir.h"

namespace jaxport::reduce {

// Equation `i` becomes the equations of one of its bodies, which runs once: a call, a branch, a
// step of a loop. Error E030 when operands and results of the body have other types.
void inline_body(front::Function& function, std::size_t i, std::size_t which);

}  // namespace jaxport::reduce

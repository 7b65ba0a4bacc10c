// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "front/ir.h"

namespace jaxport::front {

// The same program with what it repeats as marked calls (FunctionMark) that share a function:
//
//   calls whose bodies are equal but for their constants, and
//   stretches of equations that follow one another and are equal but for their operands, such as
//   the layers of a transformer. A stretch is cut where the fewest values cross.
//
// Constants that are no scalars become operands. Bodies of less than eight equations stay.
Function with_repeats_marked(Function function);

}  // namespace jaxport::front

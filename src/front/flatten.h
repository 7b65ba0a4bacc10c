// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "front/ir.h"

namespace jaxport::front {

// The same program with calls replaced by what they call, and a location of its own for each
// equation, those of regions included. An equation without a line gets that of the one around it.
// Calls that are to become functions (FunctionMark) stay, and share their regions as before.
Module flattened(const Module& module);

}  // namespace jaxport::front

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "front/ir.h"

namespace jaxport::fuzz {

// The samples and near misses of every rule, the programs of tests/golden that can be evaluated,
// and what tests/fuzz/seeds adds: all in one module, so that sizes can meet.
front::Module seeds();

}  // namespace jaxport::fuzz

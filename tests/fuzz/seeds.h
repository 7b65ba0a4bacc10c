// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "front/ir.h"

namespace jaxport::fuzz {

// The samples of every rule; `with_golden` their near misses and the programs of tests/golden that
// can be evaluated, too. All in one module, so that sizes can meet.
front::Module seeds(bool with_golden);

}  // namespace jaxport::fuzz

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "axis/translate/translate.h"

namespace jaxport::axis {

// A while loop whose condition compares a counter with a bound, where both and the step are known,
// as the scan of as many steps: i = 0; while i < 30: i += 1. nullopt for all others.
Views as_scan(Translation& t, const front::WhileParams& loop);

}  // namespace jaxport::axis

// SPDX-License-Identifier: Apache-2.0
// Scans that become their steps, one after the other.
#pragma once

#include <vector>

#include "axis/translate/translate.h"
#include "front/params.h"

namespace jaxport::axis {

// Whether the loop is short and its body small enough for the target (see Preferences).
bool is_short(const Translation& t, const front::ScanParams& scan);

// Whether the steps are layers: scanned over are large constants, and little else.
bool is_layers(const Translation& t, const front::ScanParams& scan);

// The body once for each step.
std::vector<View> unrolled(Translation& t, const front::ScanParams& scan);

}  // namespace jaxport::axis

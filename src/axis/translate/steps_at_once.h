// SPDX-License-Identifier: Apache-2.0
// Steps of a scan that do not wait for each other are computed at once: a label more, and no loop.
#pragma once

#include <optional>
#include <vector>

#include "axis/translate/translate.h"
#include "front/params.h"

namespace jaxport::axis {

// All results of a scan without a carry, lax.map for one. nullopt when a step needs the one before,
// when an equation of the body is not known to work along a label more, or when the values of all
// steps together are too large.
Views without_carry(Translation& t, const front::ScanParams& scan);

// The results of a scan that computes in its body what the carry does not need: that is done for
// all steps behind it. nullopt when there is nothing of the kind, or for the same reasons.
Views behind_carry(Translation& t, const front::ScanParams& scan);

}  // namespace jaxport::axis

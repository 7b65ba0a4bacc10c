// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "lower/rows/ctx.h"

namespace jaxport::lower {

// One dim of lax.pad: elements added (or, if negative, removed) at both ends and between
// neighbours.
struct PadDim {
  std::int64_t low = 0, high = 0, interior = 0;
};
using PadConfig = std::vector<PadDim>;

PadConfig static_config(const front::Paddings& paddings);  // of static amounts

// lax.pad of x with a scalar: interior first, then the ends.
Value padded(Ctx& c, Value x, Value fill, const PadConfig& config);

}  // namespace jaxport::lower

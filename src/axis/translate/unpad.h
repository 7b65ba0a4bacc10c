// SPDX-License-Identifier: Apache-2.0
// The value under a pad, for windows that can pad it themselves.
#pragma once

#include <optional>

#include "axis/translate/translate.h"

namespace jaxport::axis {

struct Unpadded {
  View view;
  Dims shape;
  Ints low, high;  // what was added, by dim; not negative
  double fill;
};

// The first operand of an equation before a pad of static amounts, whose dims it still has.
std::optional<Unpadded> unpadded(Translation& t);

}  // namespace jaxport::axis

// SPDX-License-Identifier: Apache-2.0
// The value under a pad, for windows that can pad it themselves and for sums of pads.
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

// add or or of two arrays with zeros between and around their elements, each of which has a number
// where the other has none: their elements in turn. lax.associative_scan puts its halves together
// so.
Views interleaved(Translation& t);

}  // namespace jaxport::axis

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "axis/graph/graph.h"

namespace jaxport::lower {

class Facts;

// Closes the splits of a program. A consumer that takes an axis apart, as windowed attention does
// with the rows of an image, may want the parts in another order. A node can only deliver them so
// when its labels know the parts. One backward sweep therefore cuts labels where consumers cut
// axes, through every node that does not care, up to positional borders.
//
// Returns, by Facts::index, a copy of each node that is cut; nullptr for the others. The axes of
// values stay what they are: an axis of a cut node runs over a product of labels.
std::vector<std::unique_ptr<const axis::Node>> close_splits(const Facts& facts);

}  // namespace jaxport::lower

// SPDX-License-Identifier: Apache-2.0
// What raising found in a program.
#pragma once

#include <string>
#include <vector>

#include "axis/graph/graph.h"

namespace jaxport::raise {

// A macro node or raised function, by the name a user knows: "attention", "layer_norm", "silu".
struct Raised {
  std::string name;
  front::LocationId location;
};
// In program order, those of regions last.
std::vector<Raised> raised_nodes(const axis::Program& program);

}  // namespace jaxport::raise

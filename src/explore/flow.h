// SPDX-License-Identifier: Apache-2.0
// Which equations of a flattened program stand for others, and which layer each belongs to.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "front/ir.h"

namespace jaxport::explore {

// What is known of the equation with a location, by LocationId.
struct Equation {
  std::string primitive, layer;
  front::LocationId around = front::kNoLocation;  // whose region it is in
  std::vector<front::LocationId> before, after;   // equations that it reads, that read it
};

std::vector<Equation> equations_of(const front::Module& flattened);

// For each equation those whose nodes stand for it. An equation that has nodes stands for itself.
// Others, such as a transpose that became a part of an edge, are in the nearest ones that read
// their results; at the end of a program, in the nearest ones that they read.
std::vector<std::vector<front::LocationId>> standing_for(const std::vector<Equation>& equations,
                                                         const std::set<front::LocationId>& alive);

}  // namespace jaxport::explore

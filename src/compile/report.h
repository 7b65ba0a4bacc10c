// SPDX-License-Identifier: Apache-2.0
// What the compiler reports about a conversion.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "axis/graph/graph.h"
#include "raise/engine/raise.h"

namespace jaxport::compile {

// Something that was raised, or the reason why it nearly was.
struct Finding {
  std::string rule, reason;  // no reason: it was raised
  std::string source;        // "model.py:42 in Block.__call__"; may be empty
};
std::string to_string(const Finding& finding);  // one line

struct StageTime {
  std::string stage;
  double seconds;
};
struct Report {
  std::vector<Finding> findings;
  std::vector<StageTime> times;
};

// What the program has of macro nodes, then the remarks.
std::vector<Finding> findings(const axis::Program& program, std::span<const raise::Remark> remarks);

}  // namespace jaxport::compile

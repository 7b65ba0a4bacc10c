// SPDX-License-Identifier: Apache-2.0
// What the compiler reports about a conversion.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "axis/graph/graph.h"
#include "pass/pass.h"
#include "raise/engine/raise.h"
#include "target/precision.h"

namespace jaxport::compile {

// Something that was raised, or the reason why it nearly was.
struct Finding {
  std::string rule, reason;  // no reason: it was raised
  std::string source;        // "model.py:42 in Block.__call__"; may be empty
};
std::string to_string(const Finding& finding);  // one line

// Equations that no stage can express: alike, and of one line of the user.
struct Unsupported {
  std::string primitive, reason, help;
  std::string source, library;  // the user's line; the line of the library that it went through
  std::size_t uses = 1;
};
std::string to_string(const Unsupported& unsupported);  // one line

struct StageTime {
  std::string stage;
  double seconds;
};
struct Report {
  std::vector<Finding> findings;
  std::vector<StageTime> times;
  pass::PassCounts passes;            // all runs of the pipeline together
  target::PrecisionCounts precision;  // of a model in half precision
  // What became nodes of lower::kCustomDomain, or, after an error, what the program has to do
  // without; in the order of the program.
  std::vector<Unsupported> unsupported;
};

// What the program has of macro nodes, then the remarks.
std::vector<Finding> findings(const axis::Program& program, std::span<const raise::Remark> remarks);

}  // namespace jaxport::compile

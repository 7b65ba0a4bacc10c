// SPDX-License-Identifier: Apache-2.0
// A program as emission takes it, with the plans of its regions.
#pragma once

#include <map>
#include <memory>

#include "axis/graph.h"
#include "lower/facts.h"
#include "lower/hints.h"
#include "lower/user.h"

namespace jaxport::lower {

struct Plan {
  Plan(const axis::Program& program, int opset, const UserLowerings& user);

  Facts facts;
  Hints wishes;
  const UserLowerings& lowerings;
  std::map<const axis::Program*, std::unique_ptr<Plan>> regions;  // looked up, never walked
};

}  // namespace jaxport::lower

// SPDX-License-Identifier: Apache-2.0
// A program as emission takes it, with the plans of its regions.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "axis/graph/graph.h"
#include "lower/layout/conversions.h"
#include "lower/layout/facts.h"
#include "lower/layout/layout.h"
#include "lower/layout/wishes.h"
#include "lower/rows/user.h"

namespace jaxport::lower {

// What layout assignment decides: emission follows it where that is cheap.
struct Choice {
  struct Ready {
    const axis::Node* value;
    Layout layout;
  };
  Wishes wishes;
  std::vector<Ready> ready;  // conversions to make where the value is produced: all users see them
};

// A conversion that emission had to make; no consumer: for an output.
struct Paid {
  const axis::Node* value;
  const axis::Node* consumer;
  Layout from, to;
};

struct Plan {
  Plan(const axis::Program& program, int opset, const UserLowerings& user);

  Facts facts;
  Choice choice;  // what consumers wish, until the search finds better (assign.h)
  const UserLowerings& lowerings;
  mutable Conversions conversions;                                // those that were found so far
  std::map<const axis::Program*, std::unique_ptr<Plan>> regions;  // looked up, never walked
};

}  // namespace jaxport::lower

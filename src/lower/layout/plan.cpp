// SPDX-License-Identifier: Apache-2.0
#include "lower/layout/plan.h"

namespace jaxport::lower {

Plan::Plan(const axis::Program& program, int opset, const UserLowerings& user)
    : facts(program), choice{collect_wishes(facts, opset), {}}, lowerings(user) {
  for (const axis::Program* region : axis::regions(program)) {
    regions.emplace(region, std::make_unique<Plan>(*region, opset, user));
  }
}

}  // namespace jaxport::lower

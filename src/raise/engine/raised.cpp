// SPDX-License-Identifier: Apache-2.0
#include "raise/engine/raised.h"

#include <algorithm>
#include <iterator>

#include "raise/engine/op.h"

namespace jaxport::raise {

std::vector<Raised> raised_nodes(const axis::Program& program) {
  std::vector<Raised> found;
  for (const axis::Node* node : axis::topological(program)) {
    const OpRow* op = find_op(*node);
    if (!op) continue;
    found.push_back({std::string(op->user_name ? op->user_name(*node) : op->name), node->location});
  }
  for (const axis::Program* region : axis::regions(program)) {
    std::ranges::move(raised_nodes(*region), std::back_inserter(found));
  }
  return found;
}

}  // namespace jaxport::raise

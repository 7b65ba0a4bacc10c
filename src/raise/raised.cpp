// SPDX-License-Identifier: Apache-2.0
#include "raise/raised.h"

#include <algorithm>
#include <iterator>

#include "raise/raise.h"
#include "raise/views.h"

namespace jaxport::raise {
namespace {

// One macro stands for all norms that compute mean and variance alike.
std::string user_name(const axis::Node& node) {
  if (!node.is(axis::Kind::kMacro, "norm")) return std::string(node.name);
  return flag(node, "center") ? "layer_norm" : "rms_norm";
}

}  // namespace

std::vector<Raised> raised_nodes(const axis::Program& program) {
  std::vector<Raised> found;
  for (const axis::Node* node : axis::topological(program)) {
    if (is_raised(*node)) found.push_back({user_name(*node), node->location});
  }
  for (const axis::Program* region : axis::regions(program)) {
    std::ranges::move(raised_nodes(*region), std::back_inserter(found));
  }
  return found;
}

}  // namespace jaxport::raise

// SPDX-License-Identifier: Apache-2.0
#include "compile/report.h"

#include <fmt/format.h>

#include "raise/engine/raised.h"

namespace jaxport::compile {

std::string to_string(const Finding& finding) {
  const std::string where = finding.source.empty() ? "" : "  at " + finding.source;
  if (finding.reason.empty()) return fmt::format("{}: raised{}", finding.rule, where);
  return fmt::format("{}: not raised: {}{}", finding.rule, finding.reason, where);
}

std::string to_string(const Unsupported& unsupported) {
  const std::string where = unsupported.source.empty() ? "" : "  at " + unsupported.source;
  return fmt::format("{}: left to you ({} use{}): {}{}", unsupported.primitive, unsupported.uses,
                     unsupported.uses == 1 ? "" : "s", unsupported.reason, where);
}

std::vector<Finding> findings(const axis::Program& program,
                              std::span<const raise::Remark> remarks) {
  const auto source = [&](front::LocationId id) { return front::to_string(program.location(id)); };
  std::vector<Finding> found;
  for (const raise::Raised& raised : raise::raised_nodes(program)) {
    found.push_back({raised.name, "", source(raised.location)});
  }
  for (const raise::Remark& remark : remarks) {
    found.push_back({remark.rule, remark.reason, source(remark.location)});
  }
  return found;
}

}  // namespace jaxport::compile

// SPDX-License-Identifier: Apache-2.0
#include "lower/rows/user.h"

#include <fmt/format.h>

#include "jaxport/error.h"

namespace jaxport::lower {
namespace {

constexpr std::string_view kPrefix = "user.";

[[noreturn]] void misfit(const Ctx& c, std::string_view why) {
  throw Error("E014", fmt::format("the lowering of primitive '{}' {}",
                                  without_user_name(c.eqn().primitive), why))
      .help("see jaxport.register_lowering");
}

bool fits(const front::Type& have, const front::Type& want) {
  if (have.dtype != want.dtype || have.shape.size() != want.shape.size()) return false;
  for (std::size_t i = 0; i < want.shape.size(); ++i) {
    if (equal(have.shape[i], want.shape[i]) == Truth::kNo) return false;
  }
  return true;
}

void check_results(const Ctx& c, const Values& results) {
  if (results.size() != c.result_count()) {
    misfit(c, fmt::format("gives {} results instead of {}", results.size(), c.result_count()));
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i]) misfit(c, "gives an absent result");
    const front::Type have{results[i].dtype(), results[i].shape()};
    if (!fits(have, c.out_type(i))) {
      misfit(c, fmt::format("gives {} instead of {}", front::to_string(have),
                            front::to_string(c.out_type(i))));
    }
  }
}

}  // namespace

std::string user_name(std::string_view primitive) {
  return fmt::format("{}{}", kPrefix, primitive);
}

std::string_view without_user_name(std::string_view name) {
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}

Values run_user_lowering(const UserLowering& lowering, Ctx& c) {
  try {
    Values results = lowering(c);
    check_results(c, results);
    return results;
  } catch (const Error& error) {
    // What is our fault in a lowering of ours is the user's in theirs.
    if (error.code() == "BUG") misfit(c, fmt::format("fails: {}", error.message()));
    throw;
  }
}

}  // namespace jaxport::lower

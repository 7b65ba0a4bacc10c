// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "inspect/graph_view.h"
#include "inspect/spec.h"

namespace jaxport::inspect {

// How far a path got in a graph: the nodes of its first steps, and why it did not go on.
struct Attempt {
  std::vector<std::size_t> nodes;
  std::optional<std::size_t> wrong;  // a node of the right op that does not fit the next step
  std::string why;                   // "" when the whole path was found
};

// Looks for a path: nodes of the given ops, each using a result of the one before it, directly or
// through ops that may be left out. All ways are tried, so that a path is found if there is one.
class PathSearch {
 public:
  PathSearch(const GraphView& view, const PathSpec& spec,
             const std::set<std::string, std::less<>>& passthrough)
      : view_(view), spec_(spec), passthrough_(passthrough) {}

  // The whole path, or the attempt that got furthest.
  Attempt run();

 private:
  bool visit(std::size_t step, std::size_t node, Symbols symbols);
  std::vector<std::size_t> reachable(std::size_t node, const std::string& op) const;
  std::string what_follows(std::size_t node) const;
  void keep(std::optional<std::size_t> wrong, std::string why);

  const GraphView& view_;
  const PathSpec& spec_;
  const std::set<std::string, std::less<>>& passthrough_;
  std::vector<std::size_t> nodes_;  // of the steps so far
  Attempt best_;
  bool has_attempt_ = false;
  std::set<std::tuple<std::size_t, std::size_t, Symbols>> failed_;
};

// Whether sizes fit those expected, binding symbols; else why not.
std::string mismatch(const Sizes& expected, const std::optional<Sizes>& actual, Symbols& symbols);

// Why the inputs of a node do not follow the rules; "" when they do.
std::string broken_rule(const GraphView& view, std::size_t node,
                        const std::map<std::size_t, InputRule>& rules);

}  // namespace jaxport::inspect

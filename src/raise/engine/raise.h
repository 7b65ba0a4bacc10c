// SPDX-License-Identifier: Apache-2.0
// Raising: rules that recognise mathematics on the axis graph and give it one macro node.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "axis/graph/graph.h"

namespace jaxport::raise {

// Why a rule that nearly fired did not: "softmax: not raised: the sum runs over other axes".
struct Remark {
  std::string rule, reason;
  const axis::Node* node;  // as the rule saw it; a later pass may have rebuilt it
  front::LocationId location;
};

struct Rule;
using Rules = std::span<const Rule>;

// What a rule's match gets to see besides the node.
class Matcher {
 public:
  Matcher(axis::Graph& g, const axis::UseCounts& counts, const Preferences& of_target,
          Rules enabled, std::string_view running, std::vector<Remark>& remarks);
  axis::Graph& graph;
  const axis::UseCounts& uses;
  const Preferences& preferences;  // of the target
  // False when the user left the rule out. For rules that share one match function.
  bool allows(std::string_view rule) const;
  // A near miss: returns an empty Use and keeps the reason. Rules that share one match function say
  // which of them it was.
  axis::Use miss(const axis::Use& at, std::string reason) const;
  axis::Use miss(std::string_view rule, const axis::Use& at, std::string reason) const;

 private:
  Rules enabled_;
  std::string_view running_;
  std::vector<Remark>& remarks_;
};

// A rule is data. `match` is tried at nodes whose name is in `roots` and returns the macro node
// (same labels as the root), an empty Use, or a miss. It looks at a bounded number of nodes.
// Rules of one pass may share a match function: it is called once for each node. What a rule must
// raise and what it must leave is in tests/golden/raise/rules/<name>.jir.
struct Rule {
  std::string_view name;
  std::vector<std::string_view> roots;
  axis::Use (*match)(const Matcher&, const axis::Use&);
};

// The passes in order: each is a set of rules applied bottom-up until nothing changes (at most 3
// rounds).
std::span<const Rules> passes();
Rules all_rules();

struct Options {
  bool enabled = true;
  bool norms = true;                 // false: normalisations stay arithmetic
  std::vector<std::string> without;  // rules to leave out, by name; E060 for an unknown one
  std::function<void(const axis::Program&)> after = {};  // hears of each pass over a program
};
// Raises the program and its regions. Returns the remarks in program order, those of regions last.
// Throws Error E060.
std::vector<Remark> raise(axis::Program& program, const Options& options = {});
// The same with other passes: tests add rules that are wrong on purpose.
std::vector<Remark> raise(axis::Program& program, const Options& options,
                          std::span<const Rules> passes);

// The decomposition of a node that a rule made, over the same labels. Empty for every other node.
axis::Use expand(axis::Graph& graph, const axis::Use& use);
bool is_raised(const axis::Node& node);

}  // namespace jaxport::raise

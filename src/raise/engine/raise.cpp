// SPDX-License-Identifier: Apache-2.0
// The engine: tries the rules of each pass at every node, operands first.
#include "raise/engine/raise.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "jaxport/error.h"
#include "raise/engine/rules.h"
#include "support/watch.h"

namespace jaxport::raise {
namespace {

using axis::Use;

constexpr int kMaxRounds = 3;

std::vector<Rule> joined(std::span<const Rules> groups) {
  std::vector<Rule> rules;
  for (Rules group : groups) rules.insert(rules.end(), group.begin(), group.end());
  return rules;
}

bool has(Rules rules, std::string_view name) {
  return std::ranges::find(rules, name, &Rule::name) != rules.end();
}

// What to try at a node of a given name: of rules that share a match function the first.
class Roots {
 public:
  explicit Roots(Rules rules) {
    for (const Rule& rule : rules) {
      for (std::string_view root : rule.roots) add(root, rule);
    }
  }
  const std::vector<const Rule*>* find(std::string_view name) const {
    const auto found = rules_.find(name);
    return found == rules_.end() ? nullptr : &found->second;
  }

 private:
  void add(std::string_view root, const Rule& rule) {
    std::vector<const Rule*>& rules = rules_[root];
    if (std::ranges::find(rules, rule.match, &Rule::match) == rules.end()) rules.push_back(&rule);
  }
  std::unordered_map<std::string_view, std::vector<const Rule*>> rules_;
};

void check_names(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (has(all_rules(), name)) continue;
    std::vector<std::string_view> known;
    for (const Rule& rule : all_rules()) known.push_back(rule.name);
    throw Error("E060", fmt::format("unknown raise rule '{}'", name))
        .help(fmt::format("the rules are {}", fmt::join(known, ", ")));
  }
}

bool is_norm(const Rule& rule) {
  return has(norm_rules(), rule.name) || has(norm_affine_rules(), rule.name);
}

std::vector<Rule> enabled_rules(Rules pass, const Options& options) {
  std::vector<Rule> enabled;
  std::ranges::copy_if(pass, std::back_inserter(enabled), [&](const Rule& rule) {
    const auto& without = options.without;
    return std::ranges::find(without, rule.name) == without.end() &&
           (options.norms || !is_norm(rule));
  });
  return enabled;
}

// Returns the near misses of the last round: earlier ones may concern nodes that a rule has since
// replaced.
std::vector<Remark> run_pass(axis::Program& program, Rules rules) {
  std::vector<Remark> remarks;
  if (rules.empty()) return remarks;
  const Roots roots(rules);
  const auto rewrite = [&](axis::Graph& graph, const Use& use, const axis::UseCounts& uses) {
    const std::vector<const Rule*>* tried = roots.find(use.node->name);
    if (!tried) return Use{};
    for (const Rule* rule : *tried) {
      const Matcher matcher(graph, uses, *program.preferences, rules, rule->name, remarks);
      if (Use raised = rule->match(matcher, use)) return raised;
    }
    return Use{};
  };
  for (int round = 0; round < kMaxRounds; ++round) {
    remarks.clear();
    if (!axis::rebuild(program, rewrite)) break;
  }
  return remarks;
}

}  // namespace

Matcher::Matcher(axis::Graph& g, const axis::UseCounts& counts, const Preferences& of_target,
                 Rules enabled, std::string_view running, std::vector<Remark>& remarks)
    : graph(g),
      uses(counts),
      preferences(of_target),
      enabled_(enabled),
      running_(running),
      remarks_(remarks) {}

bool Matcher::allows(std::string_view rule) const { return has(enabled_, rule); }

Use Matcher::miss(const Use& at, std::string reason) const {
  return miss(running_, at, std::move(reason));
}

Use Matcher::miss(std::string_view rule, const Use& at, std::string reason) const {
  remarks_.push_back({std::string(rule), std::move(reason), at.node, at.node->location});
  return {};
}

std::span<const Rules> passes() {
  static const std::vector<Rule> kExact = joined(exact_rules());
  static const Rules kPasses[] = {kExact, activation_rules()};
  return kPasses;
}

Rules all_rules() {
  static const std::vector<Rule> kRules = joined(passes());
  return kRules;
}

namespace {

// Regions come first: rules for loops read raised bodies.
std::vector<Remark> raise_all(axis::Program& program, const Options& options,
                              std::span<const Rules> passes) {
  std::vector<Remark> remarks, inside;
  for (axis::Program* region : axis::regions(program)) {
    std::ranges::move(raise_all(*region, options, passes), std::back_inserter(inside));
  }
  for (Rules pass : passes) {
    std::vector<Remark> found = run_pass(program, enabled_rules(pass, options));
    if (options.after) options.after(program);
    std::ranges::move(found, std::back_inserter(remarks));
  }
  std::ranges::stable_sort(remarks, {}, [](const Remark& remark) { return remark.node->id; });
  std::ranges::move(inside, std::back_inserter(remarks));
  return remarks;
}

}  // namespace

std::vector<Remark> raise(axis::Program& program, const Options& options) {
  return raise(program, options, passes());
}

std::vector<Remark> raise(axis::Program& program, const Options& options,
                          std::span<const Rules> passes) {
  watch().enter("raise");
  check_names(options.without);
  return options.enabled ? raise_all(program, options, passes) : std::vector<Remark>{};
}

}  // namespace jaxport::raise

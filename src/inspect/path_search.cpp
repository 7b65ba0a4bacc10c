// SPDX-License-Identifier: Apache-2.0
#include "inspect/path_search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <unordered_set>

namespace jaxport::inspect {
namespace {

constexpr std::size_t kLongestList = 6;

std::string listed(std::vector<std::string> items) {
  const bool is_long = items.size() > kLongestList;
  if (is_long) items.resize(kLongestList);
  return fmt::format("{}{}", fmt::join(items, ", "), is_long ? ", …" : "");
}

std::string ops_of(const GraphView& view) {
  std::set<std::string> ops;
  for (const onnx::Node& node : view.graph().nodes) ops.insert(node.op);
  if (ops.empty()) return "the graph has no nodes";
  return "the graph has " + listed({ops.begin(), ops.end()});
}

}  // namespace

std::string mismatch(const Sizes& expected, const std::optional<Sizes>& actual, Symbols& symbols) {
  const auto is_any = [](const Size& size) { return std::holds_alternative<std::monostate>(size); };
  if (!actual) return std::ranges::all_of(expected, is_any) ? "" : "its shape is not known";
  if (expected.size() != actual->size()) {
    return fmt::format("it has {} dims, not {}", actual->size(), expected.size());
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Size &want = expected[i], &have = (*actual)[i];
    if (is_any(want)) continue;
    if (is_any(have)) return fmt::format("the size of dim {} is not known", i);
    if (const auto* symbol = std::get_if<std::string>(&want)) {
      Size& bound = symbols[*symbol];
      if (is_any(bound)) bound = have;
      if (bound == have) continue;
      return fmt::format("dim {} is {}, but {} is {}", i, to_string(have), *symbol,
                         to_string(bound));
    }
    if (want != have) return fmt::format("dim {} is {}", i, to_string(have));
  }
  return "";
}

Attempt PathSearch::run() {
  const std::string& first = spec_.steps[0].op;
  for (std::size_t i = 0; i < view_.graph().nodes.size(); ++i) {
    if (same_op(first, view_.node(i).op) && visit(0, i, spec_.symbols)) return {nodes_, {}, ""};
  }
  if (!has_attempt_) keep(std::nullopt, ops_of(view_));
  return best_;
}

bool PathSearch::visit(std::size_t step, std::size_t node, Symbols symbols) {
  if (failed_.contains({step, node, symbols})) return false;
  const Symbols before = symbols;
  const std::optional<Sizes>& shape = spec_.steps[step].shape;
  if (shape) {
    if (std::string why = mismatch(*shape, view_.shape_after(node), symbols); !why.empty()) {
      keep(node, std::move(why));
      return false;
    }
  }
  const bool is_last = step + 1 == spec_.steps.size();
  if (is_last) {
    if (std::string why = broken_rule(view_, node, spec_.inputs); !why.empty()) {
      keep(node, std::move(why));
      return false;
    }
  }
  nodes_.push_back(node);
  if (is_last) return true;
  const std::vector<std::size_t> next = reachable(node, spec_.steps[step + 1].op);
  if (next.empty()) keep(std::nullopt, what_follows(node));
  for (std::size_t candidate : next) {
    if (visit(step + 1, candidate, symbols)) return true;
  }
  nodes_.pop_back();
  failed_.insert({step, node, before});
  return false;
}

// Direct users first, then those behind ops that may be left out, nearest first.
std::vector<std::size_t> PathSearch::reachable(std::size_t node, const std::string& op) const {
  std::vector<std::size_t> found;
  std::unordered_set<std::size_t> seen{node};
  std::deque<std::size_t> open{node};
  while (!open.empty()) {
    const std::size_t from = open.front();
    open.pop_front();
    for (std::size_t user : view_.consumers(from)) {
      if (!seen.insert(user).second) continue;
      if (same_op(op, view_.node(user).op)) found.push_back(user);
      if (passthrough_.contains(view_.node(user).op)) open.push_back(user);
    }
  }
  return found;
}

std::string PathSearch::what_follows(std::size_t node) const {
  std::vector<std::string> users;
  for (std::size_t user : view_.consumers(node)) users.push_back(to_string(view_.step(user)));
  if (users.empty()) {
    return view_.is_output(node) ? "it is an output of the graph" : "nothing uses it";
  }
  return "then comes " + listed(std::move(users));
}

// The attempt with the most steps is the most useful; an op with another shape counts as half.
void PathSearch::keep(std::optional<std::size_t> wrong, std::string why) {
  const auto length = [](const auto& nodes, const auto& at) {
    return 2 * nodes.size() + (at ? 1 : 0);
  };
  if (has_attempt_ && length(nodes_, wrong) <= length(best_.nodes, best_.wrong)) return;
  has_attempt_ = true;
  best_ = {nodes_, wrong, std::move(why)};
}

}  // namespace jaxport::inspect

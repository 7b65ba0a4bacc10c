// SPDX-License-Identifier: Apache-2.0
#include "pass/dead_results.h"

#include <algorithm>
#include <unordered_set>

#include "onnx/walk.h"

namespace jaxport::pass {
namespace {

using onnx::Attribute;
using onnx::Graph;
using onnx::kAbsent;
using onnx::Node;
using onnx::ValueId;

template <class T>
T* attr(Node& node, std::string_view name) {
  auto found = std::ranges::find(node.attrs, name, &Attribute::name);
  return found == node.attrs.end() ? nullptr : std::get_if<T>(&found->value);
}

Graph* subgraph(Node& node, std::string_view name) {
  auto* graph = attr<std::shared_ptr<Graph>>(node, name);
  return graph ? graph->get() : nullptr;
}

// Keeps the entries from `first` on whose flag is set.
template <class T>
void keep(std::vector<T>& entries, std::size_t first, const std::vector<bool>& is_kept) {
  std::size_t to = first;
  for (std::size_t i = 0; i < is_kept.size(); ++i) {
    if (is_kept[i]) entries[to++] = std::move(entries[first + i]);
  }
  entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(to),
                entries.begin() + static_cast<std::ptrdiff_t>(first + is_kept.size()));
}

std::size_t count_dead(const std::vector<bool>& is_kept) {
  return static_cast<std::size_t>(std::ranges::count(is_kept, false));
}

std::vector<bool> needed_results(const Node& node, const std::vector<bool>& is_needed) {
  std::vector<bool> needed;
  for (ValueId id : node.out) needed.push_back(id != kAbsent && is_needed[id]);
  return needed;
}

// --- If

std::size_t shrink_if(Node& node, const std::vector<bool>& is_needed) {
  Graph *taken = subgraph(node, "then_branch"), *other = subgraph(node, "else_branch");
  const std::size_t count = node.out.size();
  if (!taken || !other || taken->outputs.size() != count || other->outputs.size() != count)
    return 0;
  const std::vector<bool> needed = needed_results(node, is_needed);
  for (std::vector<ValueId>* values : {&node.out, &taken->outputs, &other->outputs}) {
    keep(*values, 0, needed);
  }
  return count_dead(needed);
}

// --- loops

// Where the carries and collected values stand in a Loop or a Scan.
struct LoopParts {
  Graph* body;
  std::size_t carries;
  std::size_t first_in;           // the first carry among the node's inputs
  std::size_t body_in, body_out;  // and among the body's inputs and outputs

  bool fits(const Node& node) const {
    return body && node.in.size() >= first_in + carries && node.out.size() >= carries &&
           body->inputs.size() >= body_in + carries &&
           body->outputs.size() == body_out + node.out.size();
  }
};

void add_needs(const Node& node, std::unordered_set<ValueId>& needed) {
  needed.insert(node.in.begin(), node.in.end());
  onnx::for_each_subgraph(node, [&](const Graph& inner) {
    needed.insert(inner.outputs.begin(), inner.outputs.end());
    for (const Node& part : inner.nodes) add_needs(part, needed);
  });
}

// What these outputs of the graph are computed from.
std::unordered_set<ValueId> needs_of(const Graph& graph, std::unordered_set<ValueId> needed) {
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    const bool is_needed =
        std::ranges::any_of(node.out, [&](ValueId id) { return needed.contains(id); });
    if (is_needed) add_needs(node, needed);
  }
  return needed;
}

// A carry lives when its result is needed, or when the next value of a living one needs it.
void revive_carries(const LoopParts& loop, std::vector<bool>& lives) {
  for (bool changed = true; changed;) {
    std::unordered_set<ValueId> roots(
        loop.body->outputs.begin(),
        loop.body->outputs.begin() + static_cast<std::ptrdiff_t>(loop.body_out));
    for (std::size_t i = 0; i < lives.size(); ++i) {
      if (lives[i]) roots.insert(loop.body->outputs[loop.body_out + i]);
    }
    const auto needed = needs_of(*loop.body, std::move(roots));
    changed = false;
    for (std::size_t i = 0; i < loop.carries; ++i) {
      if (lives[i] || !needed.contains(loop.body->inputs[loop.body_in + i])) continue;
      lives[i] = changed = true;
    }
  }
}

std::size_t shrink_loop(Node& node, const LoopParts& loop, const std::vector<bool>& is_needed) {
  if (!loop.fits(node)) return 0;
  std::vector<bool> lives = needed_results(node, is_needed);
  if (count_dead(lives) == 0) return 0;
  revive_carries(loop, lives);
  const std::vector<bool> carries(lives.begin(),
                                  lives.begin() + static_cast<std::ptrdiff_t>(loop.carries));
  const std::vector<bool> collected(lives.begin() + static_cast<std::ptrdiff_t>(loop.carries),
                                    lives.end());
  keep(node.in, loop.first_in, carries);
  keep(loop.body->inputs, loop.body_in, carries);
  keep(loop.body->outputs, loop.body_out, lives);
  keep(node.out, 0, lives);
  for (std::string_view name : {"scan_output_axes", "scan_output_directions"}) {
    auto* entries = attr<std::vector<std::int64_t>>(node, name);
    if (entries && entries->size() == collected.size()) keep(*entries, 0, collected);
  }
  return count_dead(lives);
}

}  // namespace

std::size_t drop_dead_operands(Node& node, const std::vector<bool>& is_needed) {
  Graph* body = onnx::open_body(node);
  if (body == nullptr) return 0;
  std::vector<bool> needed;
  for (ValueId id : body->inputs) needed.push_back(is_needed[id]);
  keep(node.in, 0, needed);
  keep(body->inputs, 0, needed);
  return count_dead(needed);
}

std::size_t drop_dead_results(Node& node, const std::vector<bool>& is_needed) {
  if (!node.domain.empty()) return 0;
  if (node.op == "If") return shrink_if(node, is_needed);
  if (node.op == "Loop" && node.in.size() >= 2) {
    return shrink_loop(node, {subgraph(node, "body"), node.in.size() - 2, 2, 2, 1}, is_needed);
  }
  const auto* scanned = node.op == "Scan" ? attr<std::int64_t>(node, "num_scan_inputs") : nullptr;
  if (!scanned || *scanned < 0 || *scanned > std::ssize(node.in)) return 0;
  const std::size_t carries = node.in.size() - static_cast<std::size_t>(*scanned);
  return shrink_loop(node, {subgraph(node, "body"), carries, 0, 0, 0}, is_needed);
}

}  // namespace jaxport::pass

// SPDX-License-Identifier: Apache-2.0
#include "axis/graph/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace jaxport::axis {
namespace {

constexpr std::string_view kAlong = "p", kFrom = "i", kTo = "o";
constexpr std::string_view kIndex = "k", kStart = "start", kLimit = "limit", kStride = "stride";

std::string piece_name(std::size_t operand) { return fmt::format("{}{}", kFrom, operand); }

// Labels of the node as those of the context of a use.
void see(const Pattern& context, Labels& of_node) {
  for (const Labels labels = std::exchange(of_node, {}); Label label : labels) {
    of_node.insert(of_node.end(), context[label].begin(), context[label].end());
  }
}

}  // namespace

Pick Pick::of(const Node& node) { return {node.role(kAlong), node.get<std::int64_t>(kIndex)}; }
Pick Pick::of(Graph& graph, const Use& use) {
  Pick pick = of(*use.node);
  see(graph.context(use), pick.along);
  return pick;
}

Slice Slice::of(const Node& node) {
  return {node.role(kFrom), node.role(kTo), node.get<Dim>(kStart), node.get<Dim>(kLimit),
          node.get<std::int64_t>(kStride)};
}
Slice Slice::of(Graph& graph, const Use& use) {
  Slice slice = of(*use.node);
  const Pattern context = graph.context(use);
  for (Labels* labels : {&slice.from, &slice.to}) see(context, *labels);
  return slice;
}

Stack Stack::of(const Node& node) { return {node.role(kAlong)}; }
Stack Stack::of(Graph& graph, const Use& use) { return {graph.role(use, kAlong)}; }

const Labels& Concat::target(const Node& node) { return node.role(kTo); }
const Labels& Concat::piece(const Node& node, std::size_t j) { return node.role(piece_name(j)); }

Concat Concat::of(const Node& node) {
  Concat concat{std::vector<Labels>(node.edges.size()), target(node)};
  for (const auto& [name, labels] : node.roles) {
    if (name.starts_with(kFrom)) concat.pieces[std::stoul(name.substr(kFrom.size()))] = labels;
  }
  return concat;
}
Concat Concat::of(Graph& graph, const Use& use) {
  Concat concat = of(*use.node);
  const Pattern context = graph.context(use);
  see(context, concat.to);
  for (Labels& piece : concat.pieces) see(context, piece);
  return concat;
}

std::vector<std::optional<Label>> Concat::piece_labels() const {
  std::vector<std::optional<Label>> labels;
  for (const Labels& piece : pieces) {
    labels.push_back(piece.empty() ? std::nullopt : std::optional(piece[0]));
  }
  return labels;
}

Stored stored(const Pick& pick) {
  return {{{std::string(kAlong), pick.along}}, {{std::string(kIndex), pick.index}}};
}

Stored stored(const Slice& slice) {
  Roles roles{{std::string(kFrom), slice.from}};
  if (!slice.to.empty()) roles.push_back({std::string(kTo), slice.to});
  return {std::move(roles),
          {{std::string(kLimit), slice.limit},
           {std::string(kStart), slice.start},
           {std::string(kStride), slice.stride}}};
}

Stored stored(const Stack& stack) { return {{{std::string(kAlong), stack.along}}, {}}; }

Stored stored(const Concat& concat) {
  Roles roles{{std::string(kTo), concat.to}};
  for (std::size_t j = 0; j < concat.pieces.size(); ++j) {
    if (!concat.pieces[j].empty()) roles.push_back({piece_name(j), concat.pieces[j]});
  }
  std::ranges::sort(roles);
  return {std::move(roles), {}};
}

namespace {

// pick_k(base) where base runs over (picked, run…)
std::optional<Part> picked_part(Graph& graph, const Use& use, const Labels& run) {
  const Pick pick = Pick::of(graph, use);
  Part part{graph.child(use, 0), pick.along[0], pick.index, pick.index + 1};
  if (run.empty()) return part;
  Labels all = pick.along;
  all.insert(all.end(), run.begin(), run.end());
  for (Labels& axis : part.base.labels) {
    const auto found = std::search(axis.begin(), axis.end(), all.begin(), all.end());
    if (found == axis.end()) continue;
    const Dim size = graph.size_of(run);
    part.whole = graph.label(graph.size_of(all));
    part.start = size * Dim(pick.index);
    part.limit = part.start + size;
    *axis.erase(found, found + std::ssize(all) - 1) = part.whole;
    return part;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Part> part_of(Graph& graph, const Use& use, const Labels& run) {
  if (use.node->kind == Kind::kPick) return picked_part(graph, use, run);
  if (use.node->kind != Kind::kSlice) return std::nullopt;
  const Slice slice = Slice::of(graph, use);
  if (slice.stride != 1 || slice.to != run) return std::nullopt;
  return Part{graph.child(use, 0), slice.from[0], slice.start, slice.limit};
}

Labels run_of(Graph& graph, const Use& use) {
  if (use.node->kind == Kind::kSlice) return Slice::of(graph, use).to;
  if (use.node->kind != Kind::kPick) return {};
  const Label picked = Pick::of(graph, use).along[0];
  for (const Labels& axis : graph.child(use, 0).labels) {
    const auto at = std::ranges::find(axis, picked);
    if (at != axis.end()) return {at + 1, axis.end()};
  }
  return {};
}

}  // namespace jaxport::axis

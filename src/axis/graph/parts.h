// SPDX-License-Identifier: Apache-2.0
// What the nodes that take values apart and join them hold, and the one place that knows under
// which names. The labels are those of the node, one each, or those of the context of a use, where
// one may be a product.
#pragma once

#include <optional>
#include <vector>

#include "axis/graph/graph.h"

namespace jaxport::axis {

// One place along a label.
struct Pick {
  Labels along;
  std::int64_t index;
  static Pick of(const Node& node);
  static Pick of(Graph& graph, const Use& use);
};

// Every `stride`-th place of [start, limit) along `from`; without `to` the result has size 1.
struct Slice {
  Labels from, to;
  Dim start, limit;
  std::int64_t stride;
  static Slice of(const Node& node);
  static Slice of(Graph& graph, const Use& use);
  std::optional<Label> target() const { return to.empty() ? std::nullopt : std::optional(to[0]); }
};

// Operand i is place i along a label.
struct Stack {
  Labels along;
  static Stack of(const Node& node);
  static Stack of(Graph& graph, const Use& use);
};

// Operand j runs over pieces[j], or has size 1 where that is empty; they follow each other in `to`.
struct Concat {
  std::vector<Labels> pieces;
  Labels to;
  static Concat of(const Node& node);
  static const Labels& target(const Node& node);  // one of these alone
  static const Labels& piece(const Node& node, std::size_t j);
  static Concat of(Graph& graph, const Use& use);
  // As Graph::concat takes them.
  std::vector<std::optional<Label>> piece_labels() const;
};

// What a node stores; Concat's pieces in the order of their names.
struct Stored {
  Roles roles;
  front::Attrs attrs;
};
Stored stored(const Pick& pick);
Stored stored(const Slice& slice);
Stored stored(const Stack& stack);
Stored stored(const Concat& concat);

// Places [start, limit) along the label `whole` of `base`.
struct Part {
  Use base;
  Label whole;
  Dim start, limit;
};
// `use` as a part of a larger value, along the labels `run` of one of its axes, which may be none.
// nullopt when it is no contiguous part.
std::optional<Part> part_of(Graph& graph, const Use& use, const Labels& run);
// The labels along which a pick or a slice goes on; empty when there are none.
Labels run_of(Graph& graph, const Use& use);

}  // namespace jaxport::axis

// SPDX-License-Identifier: Apache-2.0
// What a Graph owns: labels, names, and nodes made once for each content.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "axis/graph/graph.h"
#include "axis/graph/number.h"
#include "axis/graph/pointwise.h"
#include "support/hash_index.h"

namespace jaxport::axis {

// A node with the hash of its content.
struct StoredNode : Node {
  std::uint64_t hash = 0;
};

bool same_content(const StoredNode& a, const StoredNode& b);

// Operands of commutative nodes are sorted by this: constants last, then by falling rank, so that
// labels are numbered as in the largest operand, then by age.
inline std::tuple<bool, std::ptrdiff_t, std::uint32_t> canonical_rank(const Use& use) {
  return {use.node->kind == Kind::kConstant, -std::ssize(use.node->out), use.node->id};
}

struct Graph::Impl {
  Graph* graph;
  std::shared_ptr<DimScope> dims;
  LabelTable labels;
  std::unordered_set<std::string> names;           // stable addresses: Node::name points here
  std::deque<StoredNode> nodes;                    // by id
  HashIndex<const StoredNode*> known;              // those that may be shared
  std::unordered_map<Use, Labels, UseHash> inner;  // labels that child() invented, see inner_labels
  std::vector<Use> selves;                         // by id; empty until asked for
  std::vector<bool> picked;                        // by id
  std::vector<std::unique_ptr<Program>> regions;   // of all nodes
  front::LocationId location = front::kNoLocation;

  // The node for a draft, existing or new, or a constant when all operands are small constants.
  Use make(NodeDraft draft);
  // A constant with the axes of `data`, seen over `context`; always with all its axes.
  Use plain_constant(Tensor data, std::string path, Pattern context);
  // A node without operands, over fresh labels of the given sizes.
  Use leaf(Kind kind, std::string_view name, DType dtype, Dims sizes, front::Attrs attrs,
           std::string path);
  // The labels that child() invents for the labels of use.node that are not in its result, in order
  // of label.
  const Labels& inner_labels(const Use& use);
  void mark_picked(const Node* node);

 private:
  std::string_view intern(std::string_view name);
  const Node* find_or_add(StoredNode node);
  // Canonical labels, and for commutative nodes the canonical order of operands.
  Numbered number_operands(NodeDraft& draft);
  StoredNode to_node(NodeDraft& draft, Numbered& numbered);
};

}  // namespace jaxport::axis

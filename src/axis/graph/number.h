// SPDX-License-Identifier: Apache-2.0
// From a node over context labels to its canonical form over labels of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "axis/graph/graph.h"

namespace jaxport::axis {

// A node as a constructor asks for it: everything in context labels.
struct NodeDraft {
  Kind kind;
  std::string_view name;
  DType dtype;
  std::vector<Use> operands;
  Pattern out;           // the labels of each result axis
  bool ordered = false;  // the order of the result axes means something
  bool commutative = false;
  Roles roles = {};  // sorted by name
  front::Attrs attrs = {};
  Tensor data = {};
  std::shared_ptr<const PrimInfo> prim = nullptr;
  std::uint32_t result = 0;
  std::string path = {};
};

// Context labels: their sizes, and which of them child() invented.
struct LabelTable {
  std::vector<Dim> sizes;
  std::vector<bool> invented;
  std::vector<std::int32_t> scratch;  // all -1 between calls of number()

  Label add(Dim size, bool is_invented);
};

// The index space of the node: labels by first appearance over operands, result and roles. Labels
// that stand side by side wherever they occur are one label.
struct Numbered {
  Edges edges;
  Pattern out;
  Roles roles;
  Dims sizes;
  Pattern context;  // for each result axis its context labels
};
Numbered number(const NodeDraft& draft, LabelTable& table);

}  // namespace jaxport::axis

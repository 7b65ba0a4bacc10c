// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "onnx/ir.h"

namespace jaxport::target {

// The values that one graph defines, while it is rewritten.
class Defined {
 public:
  bool has(onnx::ValueId id) const { return id < values_.size() && values_[id]; }
  void add(onnx::ValueId id) {
    if (id == onnx::kAbsent) return;
    if (id >= values_.size()) values_.resize(id + 1);
    values_[id] = true;
  }

 private:
  std::vector<bool> values_;
};

// The graph that defines the value, from `scope` outwards: its Defined is `defined`, the next one
// is `outer`.
template <typename Scope>
Scope& owner_of(onnx::ValueId id, Scope& scope) {
  Scope* owner = &scope;
  while (owner->outer != nullptr && !owner->defined.has(id)) owner = owner->outer;
  return *owner;
}

}  // namespace jaxport::target

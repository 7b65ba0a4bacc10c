// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <unordered_map>
#include <utility>

#include "onnx/ir.h"

namespace jaxport::wire {

// The names of one graph while it is read. A name of an enclosing graph is seen from inside.
class Names {
 public:
  Names(onnx::Model& model, const Names* outer) : model_(model), outer_(outer) {}

  // The type that value_info gives to a name; taken over when the name is defined.
  void declare(std::string_view name, onnx::TensorType type) {
    declared_.insert_or_assign(name, std::move(type));
  }

  struct Lookup {
    onnx::ValueId id;
    bool was_defined;
  };
  // Marks the name as defined in this graph.
  Lookup define(std::string_view name) {
    const auto [entry, is_new] = entries_.try_emplace(name);
    if (is_new) entry->second.id = add_value(name);
    const bool was_defined = std::exchange(entry->second.defined, true);
    return {entry->second.id, was_defined};
  }
  // The value of this name in the innermost graph that has it; a fresh one when there is none.
  Lookup use(std::string_view name) {
    for (const Names* names = this; names != nullptr; names = names->outer_) {
      const auto found = names->entries_.find(name);
      if (found != names->entries_.end() && found->second.defined) return {found->second.id, true};
    }
    const auto [entry, is_new] = entries_.try_emplace(name);
    if (is_new) entry->second.id = add_value(name);
    return {entry->second.id, false};
  }

 private:
  struct Entry {
    onnx::ValueId id = onnx::kAbsent;
    bool defined = false;
  };
  onnx::ValueId add_value(std::string_view name) {
    onnx::ValueInfo& value = model_.values.emplace_back();
    value.name = name;
    if (const auto type = declared_.find(name); type != declared_.end()) value.type = type->second;
    return static_cast<onnx::ValueId>(model_.values.size() - 1);
  }

  onnx::Model& model_;
  const Names* outer_;
  std::unordered_map<std::string_view, Entry> entries_;
  std::unordered_map<std::string_view, onnx::TensorType> declared_;
};

}  // namespace jaxport::wire

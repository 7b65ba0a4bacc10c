// SPDX-License-Identifier: Apache-2.0
// What single versions of ONNX Runtime, in a browser too, are wrong about beyond the dtypes of
// their kernels. Models that jaxport makes avoid it (avoid_faults); of others it is said (fit.h).
#pragma once

#include <span>
#include <string_view>

#include "onnx/ir.h"

namespace jaxport::target {

// A node, its model, whose values may have types without shapes, and by value the node that makes
// it (nullptr: none).
struct NodeInModel {
  const onnx::Node& node;
  const onnx::Model& model;
  std::span<const onnx::Node* const> makers;
};

struct VersionFault {
  int first, last;  // versions, both included
  int first_opset, last_opset;
  bool (*is_met)(const NodeInModel&);
  std::string_view what;                  // "… is refused"
  std::string_view instead;               // "write …"
  bool loads;                             // the model loads and gives wrong numbers
  bool (*avoid)(onnx::Model&) = nullptr;  // of our own models, which may have such a node
};
std::span<const VersionFault> version_faults();

}  // namespace jaxport::target

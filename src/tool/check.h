// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "onnx/ir.h"
#include "target/target.h"

namespace jaxport::tool {

struct Findings {
  std::vector<std::string> problems;  // why a runtime may refuse the model
  std::vector<std::string> notes;     // what could not be checked
};

// Everything that is wrong with a model: names that are defined twice, never or too late, nodes
// that do not fit the schema of their op, ops newer than the opset, types that contradict each
// other. Read the model with ReadOptions::check_names = false to see all problems of names.
Findings check(const onnx::Model& model);

// Adds what keeps a version of the target from loading the model.
void check_target(const onnx::Model& model, const target::Target& target, Findings& findings);

}  // namespace jaxport::tool

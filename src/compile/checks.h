// SPDX-License-Identifier: Apache-2.0
// JAXPORT_CHECK=1: after every stage and pass, the verifier of its form looks at what it made.
#pragma once

#include <string_view>

#include "axis/graph/graph.h"
#include "front/ir.h"
#include "onnx/ir.h"
#include "onnx/schema.h"

namespace jaxport::compile {

// Each member does nothing unless checks are on, and throws JXP-BUG with the name of what came
// before where something is broken.
class Checks {
 public:
  Checks();  // as the environment says
  bool are_on() const { return are_on_; }
  void front(const front::Module& module) const;
  void axis(const axis::Program& program, std::string_view after) const;
  void onnx(const onnx::Model& model, std::string_view after,
            onnx::DTypeRule dtypes = onnx::DTypeRule::kSchema) const;

 private:
  bool are_on_;
};

}  // namespace jaxport::compile

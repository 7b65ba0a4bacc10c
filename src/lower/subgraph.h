// SPDX-License-Identifier: Apache-2.0
// Bodies of If, Loop and Scan.
#pragma once

#include <functional>
#include <memory>

#include "onnx/builder.h"

namespace jaxport::lower {

// A graph inside that of `outer`; `fill` builds it and returns its outputs.
inline std::shared_ptr<onnx::Graph> subgraph(
    onnx::Builder& outer, const std::function<onnx::Values(onnx::Builder&)>& fill) {
  auto graph = std::make_shared<onnx::Graph>();
  onnx::Builder op(outer, *graph);
  for (const onnx::Value& value : fill(op)) op.output(value, "");
  return graph;
}

}  // namespace jaxport::lower

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "onnx/builder.h"

namespace jaxport::target {

// What a node such as ReduceSum does, at any opset.
struct Reduction {
  onnx::Value x;
  Ints axes;  // from the front
  bool keeps_dims;
};

// nullopt when the axes are computed at run time.
std::optional<Reduction> reduction_of(onnx::Builder& op, const onnx::Node& node);

// The same reduction of other axes: the axes of all but ReduceSum are an attribute before opset 18.
onnx::Value reduced(onnx::Builder& op, std::string_view name, const onnx::Value& x,
                    const Ints& axes, bool keeps_dims);

}  // namespace jaxport::target

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "axis/graph/graph.h"
#include "lower/rows/user.h"
#include "onnx/ir.h"
#include "target/target.h"

namespace jaxport::lower {

struct Options {
  int opset = 23;
  std::string model_name = "jax_model";
  target::Target target = target::Target::kOnnxRuntime;
  bool native_norms = false;     // the op of a norm, also where the target runs others faster
  UserLowerings lowerings = {};  // go before the tables
  bool exact = false;            // signs of zeros count where JAX orders by them
  std::function<void(const axis::Program&)> after = {};  // hears of each rewrite of a program
  const Preferences& preferences() const { return target::preferences(target); }
};

// What an error says about a primitive that has no lowering, and what to do about it.
std::string missing(std::string_view primitive, int opset);
std::string help_for_missing(std::string_view primitive);

// Axis graph -> ONNX: assigns layouts, then emits nodes. Throws Error E012 for the first primitive
// without a lowering. Macros that the target has no op for are expanded first. Other ops are used
// in any dtype: target::legalise makes the model legal.
onnx::Model lower(axis::Program& program, const Options& options);

}  // namespace jaxport::lower

// SPDX-License-Identifier: Apache-2.0
// The pipeline: front IR -> axis graph -> raise -> lower -> legalise -> passes -> finished ONNX
// model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "compile/report.h"
#include "front/ir.h"
#include "lower/rows/user.h"
#include "onnx/ir.h"
#include "raise/engine/raise.h"
#include "target/target.h"

namespace jaxport::compile {

struct Options {
  int opset = 23;
  std::string model_name = "jax_model";
  raise::Options raise;
  target::Target target = target::Target::kOnnxRuntime;
  bool native_norms = false;  // see lower::Options
  lower::UserLowerings lowerings = {};
  bool auto_functions = false;  // what the program repeats becomes a function of the model
  std::optional<std::int64_t> most_unrolled_layers = {};  // see axis::Unrolling
};

// In the metadata of a model: what it needs to run, such as "onnxruntime>=1.23".
constexpr std::string_view kRequires = "jaxport.requires";

// "auto", "prefer_native" or "force_decomposed", checked by the caller.
void set_normalization_mode(Options& options, std::string_view mode);

// Compiles module.functions[0]. Error E011: opset out of range.
onnx::Model compile(const front::Module& module, const Options& options, Report* report = nullptr);

// Whether the compiler has a translation or, at some opset, a lowering for a primitive of JAX.
bool knows(std::string_view primitive);

}  // namespace jaxport::compile

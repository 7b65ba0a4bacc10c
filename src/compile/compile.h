// SPDX-License-Identifier: Apache-2.0
// The pipeline: front IR -> axis graph -> raise -> lower -> legalise -> passes -> finished ONNX
// model.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "compile/report.h"
#include "front/ir.h"
#include "lower/rows/user.h"
#include "onnx/ir.h"
#include "raise/engine/raise.h"
#include "target/precision.h"
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
  target::Precision precision = {};
  bool exact = false;  // JAX's numbers also where that costs: docs/exact.md
  // What no stage can express becomes a node of lower::kCustomDomain; otherwise it is an error.
  bool custom_ops = false;
};

// In the metadata of a model: what it needs to run, such as "onnxruntime>=1.23".
constexpr std::string_view kRequires = "jaxport.requires";

// In the metadata of a model that computes in half precision: "f16", "bf16".
constexpr std::string_view kPrecision = "jaxport.precision";

// Sees a program on its way through the compiler. It is flattened first, so that the location of a
// node says which equation it comes from.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_program(const front::Module& module) = 0;  // as it enters
  virtual void on_raised(const axis::Program& program, std::span<const raise::Remark> remarks) = 0;
  virtual void on_model(std::string_view stage, const onnx::Model& model) = 0;  // after each
};

// Compiles module.functions[0]. Error E011: opset out of range.
onnx::Model compile(const front::Module& module, const Options& options, Report* report = nullptr,
                    Observer* observer = nullptr);

// Whether the compiler has a translation or, at some opset, a lowering for a primitive of JAX.
bool knows(std::string_view primitive);

}  // namespace jaxport::compile

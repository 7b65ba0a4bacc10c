// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "front/ir.h"
#include "onnx/ir.h"
#include "raise/engine/raise.h"
#include "target/target.h"

namespace jaxport::tool {

struct StageOptions {
  int opset = 23;
  raise::Options raise;
  target::Target target = target::Target::kOnnxRuntime;
  bool remarks = false;
  bool auto_functions = false;
};

// The compiler up to one stage, and the result as text: all functions of the module, each under a
// line "func @name".
struct Stage {
  const char *flag, *help;
  std::string (*run)(const front::Module&, const StageOptions&);
};
std::span<const Stage> all_stages();  // in the order of the pipeline

// One pass, or one rewrite of the target, on a model, and the result as text.
std::vector<std::string> pass_names();
std::string run_pass(std::string_view name, onnx::Model model, const StageOptions& options);

}  // namespace jaxport::tool

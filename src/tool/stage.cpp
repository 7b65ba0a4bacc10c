// SPDX-License-Identifier: Apache-2.0
#include "tool/stage.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "axis/graph/graph.h"
#include "compile/compile.h"
#include "front/text.h"
#include "lower/lower.h"
#include "onnx/ir.h"

namespace jaxport::tool {
namespace {

template <class Run>
std::string for_each_function(const front::Module& module, Run run) {
  std::string text;
  for (const front::Function& function : module.functions) {
    text += fmt::format("func @{}\n{}\n", function.name, run(function));
  }
  return text;
}

axis::Program axis_program(const front::Module& module, const front::Function& function) {
  axis::Program program = axis::build(module, function);
  axis::verify(program);
  return program;
}

std::vector<raise::Remark> raise_program(axis::Program& program, const StageOptions& options) {
  std::vector<raise::Remark> remarks = raise::raise(program, options.raise);
  axis::verify(program);
  return remarks;
}

std::string parsed(const front::Module& module, const StageOptions&) {
  return front::print(module);
}

// The program is verified when it is read; nothing is left to do.
std::string verified(const front::Module& module, const StageOptions&) {
  return for_each_function(module, [](const front::Function&) { return "verified\n"; });
}

std::string as_axis_graph(const front::Module& module, const StageOptions&) {
  return for_each_function(module, [&](const front::Function& function) {
    return axis::print(axis_program(module, function));
  });
}

std::string raised(const front::Module& module, const StageOptions& options) {
  return for_each_function(module, [&](const front::Function& function) {
    axis::Program program = axis_program(module, function);
    const std::vector<raise::Remark> remarks = raise_program(program, options);
    std::string text = axis::print(program);
    if (!options.remarks) return text;
    for (const raise::Remark& remark : remarks) {
      text += fmt::format("// {}: not raised: {}\n", remark.rule, remark.reason);
    }
    return text;
  });
}

onnx::Model lower_function(const front::Module& module, const front::Function& function,
                           const StageOptions& options) {
  axis::Program program = axis_program(module, function);
  raise_program(program, options);
  return lower::lower(program, {options.opset, function.name, options.target});
}

std::string lowered(const front::Module& module, const StageOptions& options) {
  return for_each_function(module, [&](const front::Function& function) {
    onnx::Model model = lower_function(module, function, options);
    onnx::name_values(model);
    return onnx::print(model);
  });
}

std::string legalised(const front::Module& module, const StageOptions& options) {
  return for_each_function(module, [&](const front::Function& function) {
    onnx::Model model = lower_function(module, function, options);
    target::legalise(model, options.target);
    onnx::name_values(model);
    onnx::verify(model, "target");
    return onnx::print(model);
  });
}

std::string compiled(const front::Module& module, const StageOptions& options) {
  return for_each_function(module, [&](const front::Function& function) {
    front::Module single;
    single.dims = module.dims;
    single.locations = module.locations;
    single.functions = {function};
    return onnx::print(
        compile::compile(single, {options.opset, function.name, options.raise, options.target}));
  });
}

constexpr Stage kStages[] = {
    {"--parse", "print the program as it was read", parsed},
    {"--verify", "check the program", verified},
    {"--axis", "print the axis graph", as_axis_graph},
    {"--raise", "print the axis graph after raising", raised},
    {"--lower", "print the ONNX model as it is lowered, in any dtype", lowered},
    {"--legalise", "print the ONNX model in dtypes that the target runs", legalised},
    {"--passes", "print the finished ONNX model", compiled},
};

}  // namespace

std::span<const Stage> all_stages() { return kStages; }

}  // namespace jaxport::tool

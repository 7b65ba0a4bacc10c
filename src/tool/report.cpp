// SPDX-License-Identifier: Apache-2.0
// jaxport report and jaxport profile: the explorer page of a model.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>

#include "compile/choices.h"
#include "explore/explore.h"
#include "jaxport/error.h"
#include "tool/command.h"
#include "tool/options.h"
#include "tool/source.h"
#include "wire/file.h"
#include "wire/wire.h"

namespace jaxport::tool {
namespace {

bool has_extension(const std::string& path, const char* extension) {
  return std::filesystem::path(path).extension() == extension;
}

std::string data_of(const ReportArguments& arguments) {
  if (!arguments.inputs.empty() || !arguments.params.empty() || arguments.verify) {
    throw Error("E092", "--input, --params and --verify are for Python functions")
        .help("a .jir program and a model say themselves what their inputs are");
  }
  if (has_extension(arguments.program, ".jir"))
    return explore::data_of(read_program(arguments.program),
                            compile::compile_options(arguments.choices));
  return explore::data_of(wire::load(arguments.program, {.function_attributes = true}));
}

void write_text(const std::string& path, const std::string& text) {
  wire::OutputFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.close();
  file.publish();
  file.keep();
}

int report(const ReportArguments& arguments, const PythonSide& python) {
  const bool is_function = is_python_function(arguments.program);
  const std::string data = is_function ? "" : data_of(arguments);
  if (!is_function && has_extension(arguments.output, ".json")) {
    write_text(arguments.output, data);
    return kOk;
  }
  if (!python.report) {
    throw Error("E091", is_function ? "only Python can trace a function"
                                    : "the page is a part of the Python package")
        .help(
            fmt::format("{}; this program writes the data of a page: -o report.json", kUsePackage));
  }
  return python.report(arguments, data);
}

int profile(ProfileArguments& arguments, const PythonSide& python) {
  arguments.is_function = is_python_function(arguments.program);
  const bool has_more = !arguments.inputs.empty() || !arguments.params.empty() ||
                        arguments.choices != compile::Choices{};
  if (!arguments.is_function && has_more) {
    throw Error("E092", "only --report, --runs and --size are for a finished model")
        .help("the others say how to convert a Python function, package.module:function");
  }
  if (!python.profile) {
    throw Error("E091", "profile needs ONNX Runtime, which only Python has here").help(kUsePackage);
  }
  return python.profile(arguments);
}

}  // namespace

Run add_report(CLI::App& command, const PythonSide& python) {
  auto a = std::make_shared<ReportArguments>();
  command
      .add_option("program", a->program,
                  "an ONNX file, a .jir program, or a Python function, package.module:function")
      ->required();
  command.add_option("-o,--output", a->output, "the page to write, or its data (.json)")
      ->required();
  add_arguments(command, a->inputs, a->params);
  add_choices(command, a->choices);
  command.add_flag("--verify", a->verify, "run the model and the function, and show the errors");
  return [a, &python] { return report(*a, python); };
}

Run add_profile(CLI::App& command, const PythonSide& python) {
  auto a = std::make_shared<ProfileArguments>();
  command
      .add_option("program", a->program,
                  "an ONNX file, or a Python function, package.module:function: jax.jit runs "
                  "beside it")
      ->required();
  command.add_option("--report", a->report, "the page to write");
  command.add_option("--runs", a->runs, "how often the model is run")
      ->check(above_zero())
      ->capture_default_str();
  command.add_option("--size", a->sizes, "of a symbolic dim: B=8; 1 by default")
      ->allow_extra_args(false);
  add_arguments(command, a->inputs, a->params);
  add_choices(command, a->choices);
  return [a, &python] { return profile(*a, python); };
}

}  // namespace jaxport::tool

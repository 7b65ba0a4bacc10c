// SPDX-License-Identifier: Apache-2.0
// jaxport convert: a Python function or a .jir file to an ONNX model.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "compile/compile.h"
#include "front/text.h"
#include "inspect/table.h"
#include "jaxport/error.h"
#include "onnx/ir.h"
#include "support/text.h"
#include "tool/command.h"
#include "tool/source.h"
#include "wire/wire.h"

namespace jaxport::tool {
namespace {

class Stopwatch {
 public:
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(start_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// "package.module:function"; a file of this name is a program all the same.
bool is_python_function(const std::string& program) {
  return program.find(':') != std::string::npos && !std::filesystem::exists(program);
}

int convert_function(const ConvertArguments& arguments, const PythonSide& python) {
  if (!python.convert) {
    throw Error("E091", fmt::format("'{}' is a Python function; only Python can trace it",
                                    excerpt(arguments.program)))
        .help(kUsePackage);
  }
  return python.convert(arguments);
}

int convert_program(ConvertArguments arguments) {
  if (!arguments.inputs.empty() || !arguments.params.empty() || arguments.double_precision) {
    throw Error("E092", "--input, --params and --double are for Python functions")
        .help("a .jir program says itself what its inputs are");
  }
  arguments.compile.raise.enabled = !arguments.no_raise;
  compile::set_normalization_mode(arguments.compile, arguments.normalization_mode);
  arguments.compile.target = target::target_from_name(arguments.target);
  if (arguments.compile.opset == kAutoOpset)
    arguments.compile.opset = target::newest_opset(arguments.compile.target);
  arguments.write.origins = !arguments.no_source_locations;
  Stopwatch watch;
  const front::Module module = read_program(arguments.program);
  const double parse = watch.lap();
  compile::Report report;
  const onnx::Model model = compile::compile(module, arguments.compile, &report);
  const double compile = watch.lap();
  const std::uint64_t bytes = wire::save(model, arguments.output, arguments.write);
  const double write = watch.lap();
  fmt::print("{}  {} nodes  {} bytes  parse {:.3f} s  compile {:.3f} s  write {:.3f} s\n",
             arguments.output, inspect::with_separators(onnx::stats(model).nodes),
             inspect::with_separators(bytes), parse, compile, write);
  if (arguments.remarks) {
    for (const compile::Finding& finding : report.findings) {
      fmt::print("{}\n", compile::to_string(finding));
    }
  }
  return kOk;
}

}  // namespace

Run add_convert(CLI::App& command, const PythonSide& python) {
  auto a = std::make_shared<ConvertArguments>();
  command
      .add_option("program", a->program,
                  "a Python function, package.module:function, or a .jir file")
      ->required();
  command
      .add_option("--input", a->inputs,
                  "an argument of the function: x:Bx28x28x3, or x:Bx4:int32 with its dtype")
      ->allow_extra_args(false);
  command
      .add_option("--params", a->params, "keyword arguments of the function: deterministic=true")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_flag("--double", a->double_precision, "trace the function with 64-bit types");
  command.add_option("-o,--output", a->output, "the ONNX file to write")->required();
  command
      .add_option("--opset", a->compile.opset,
                  "version of the operator set; auto is the newest that the target runs")
      ->transform(CLI::Transformer(std::map<std::string, int>{{"auto", kAutoOpset}}))
      ->capture_default_str();
  command
      .add_option("--target", a->target,
                  "what must run the model: onnxruntime, onnxruntime>=1.28, onnxruntime==1.20, "
                  "onnxruntime-web, or onnx for the specification alone")
      ->capture_default_str();
  command.add_option("--name", a->compile.model_name, "name of the graph")->capture_default_str();
  command.add_flag("--no-raise", a->no_raise, "keep softmax, layer norm, … as arithmetic");
  command.add_option("--without", a->compile.raise.without, "raise rules to leave out")
      ->delimiter(',');
  command
      .add_option("--normalization-mode", a->normalization_mode,
                  "auto: the ops that run fastest; prefer_native: the op of each norm; "
                  "force_decomposed: arithmetic")
      ->check(CLI::IsMember({"auto", "prefer_native", "force_decomposed"}))
      ->capture_default_str();
  command.add_flag("--auto-functions", a->compile.auto_functions,
                   "what the program repeats becomes a function of the model");
  command.add_option("--unroll-layers", a->compile.most_unrolled_layers,
                     "most steps of a scan over large constants that are unrolled");
  command.add_flag("--remarks", a->remarks, "say what was raised, and what nearly was and why not");
  command
      .add_option("--external-threshold", a->write.external_threshold,
                  "tensors of at least so many bytes may go to a file of their own")
      ->capture_default_str();
  command
      .add_option("--inline-limit", a->write.inline_limit,
                  "they do when the model would have more bytes than this")
      ->capture_default_str();
  command.add_flag("--no-source-locations", a->no_source_locations,
                   "leave the lines of the Python source out of the model");
  return [a, &python] {
    return is_python_function(a->program) ? convert_function(*a, python) : convert_program(*a);
  };
}

}  // namespace jaxport::tool

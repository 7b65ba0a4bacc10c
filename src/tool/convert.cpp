// SPDX-License-Identifier: Apache-2.0
// jaxport convert: a Python function or a .jir file to an ONNX model.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <string>

#include "front/text.h"
#include "inspect/table.h"
#include "jaxport/error.h"
#include "onnx/ir.h"
#include "support/text.h"
#include "support/watch.h"
#include "tool/command.h"
#include "tool/session.h"
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
  if (arguments.output.ends_with(".ort")) {
    throw Error("E092", "a .jir program is written as an ONNX file")
        .help("jaxport ort makes a file in ORT format of that");
  }
  const ConvertOptions& options = arguments.options;
  Session session(settings_of_environment(options.limits));
  const Watching watching(session);
  Stopwatch watch;
  const front::Module module = read_program(arguments.program);
  const double parse = watch.lap();
  compile::Report report;
  const onnx::Model model = convert(session, module, options, {}, report);
  const double compile = watch.lap();
  const std::uint64_t bytes = wire::save(model, arguments.output, options.write);
  const double write = watch.lap();
  session.close();
  fmt::print("{}  {} nodes  {} bytes  parse {:.3f} s  compile {:.3f} s  write {:.3f} s\n",
             arguments.output, inspect::with_separators(onnx::stats(model).nodes),
             inspect::with_separators(bytes), parse, compile, write);
  for (const compile::Unsupported& equation : report.unsupported) {
    fmt::print("{}\n", compile::to_string(equation));
  }
  if (arguments.remarks) print_findings(report);
  return kOk;
}

}  // namespace

Run add_convert(CLI::App& command, const PythonSide& python) {
  auto a = std::make_shared<ConvertArguments>();
  command
      .add_option("program", a->program,
                  "a Python function, package.module:function, or a .jir file")
      ->required();
  add_arguments(command, a->inputs, a->params);
  command.add_flag("--double", a->double_precision, "trace the function with 64-bit types");
  command.add_option("-o,--output", a->output, "the ONNX file to write")->required();
  command.add_flag("--remarks", a->remarks, "say what was raised, and what nearly was and why not");
  add_options(command, a->options);
  return [a, &python] {
    return is_python_function(a->program) ? convert_function(*a, python) : convert_program(*a);
  };
}

}  // namespace jaxport::tool

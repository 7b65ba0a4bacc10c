// SPDX-License-Identifier: Apache-2.0
// jaxport ops: the operators that ONNX Runtime must be built with for some models.
#include "inspect/operators.h"

#include <fmt/format.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tool/command.h"
#include "wire/file.h"
#include "wire/wire.h"

namespace jaxport::tool {
namespace {

struct Arguments {
  std::vector<std::string> models;
  std::string output;
  bool with_types = false;
};

void write_file(const std::string& path, std::string_view text) {
  wire::OutputFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.close();
  file.publish();
  file.keep();
}

int write_operators(const Arguments& arguments) {
  inspect::Operators operators;
  std::string text = "# Of these models:\n";
  for (const std::string& path : arguments.models) {
    operators.add(wire::load(path));
    text += fmt::format("# - {}\n", path);
  }
  text += operators.config(arguments.with_types);
  if (arguments.output.empty()) {
    fmt::print("{}", text);
  } else {
    write_file(arguments.output, text);
  }
  return kOk;
}

}  // namespace

Run add_ops(CLI::App& command, const PythonSide&) {
  auto a = std::make_shared<Arguments>();
  command.add_option("models", a->models, "ONNX files")->required();
  command.add_option("-o,--output", a->output, "the file to write; otherwise it is printed");
  command.add_flag("--types", a->with_types, "also the dtypes that each operator is used with");
  return [a] { return write_operators(*a); };
}

}  // namespace jaxport::tool

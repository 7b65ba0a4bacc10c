// SPDX-License-Identifier: Apache-2.0
#include "tool/command.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "bind/inspect.h"

namespace jaxport::bind {
namespace {

namespace nb = nanobind;

// The arguments of jaxport.command.convert.
nb::dict as_keywords(const tool::ConvertArguments& a) {
  nb::dict keywords;
  keywords["function"] = a.program;
  keywords["inputs"] = a.inputs;
  keywords["params"] = a.params;
  keywords["output"] = a.output;
  keywords["remarks"] = a.remarks;
  nb::dict options;  // of to_onnx
  options["enable_double_precision"] = a.double_precision;
  if (a.compile.opset == tool::kAutoOpset) {
    options["opset"] = "auto";
  } else {
    options["opset"] = a.compile.opset;
  }
  options["model_name"] = a.compile.model_name;
  options["target"] = a.target;
  options["normalization_mode"] = a.normalization_mode;
  options["raise_"] = !a.no_raise;
  options["without_rules"] = a.compile.raise.without;
  options["external_data_threshold"] = a.write.external_threshold;
  options["inline_limit"] = a.write.inline_limit;
  options["source_locations"] = !a.no_source_locations;
  keywords["options"] = options;
  return keywords;
}

int run_command(const std::vector<std::string>& arguments, const nb::callable& convert,
                const nb::callable& diff_run, const nb::callable& check_certificate) {
  const auto of_two_files = [](const nb::callable& run) {
    return [&run](const std::string& first, const std::string& second) {
      return nb::cast<int>(run(first, second));
    };
  };
  const tool::PythonSide python{
      .convert =
          [&](const tool::ConvertArguments& a) { return nb::cast<int>(convert(**as_keywords(a))); },
      .diff_run = of_two_files(diff_run),
      .check_certificate = of_two_files(check_certificate)};
  std::vector<const char*> argv{"jaxport"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  return tool::run_jaxport(static_cast<int>(argv.size()), argv.data(), python);
}

}  // namespace

void define_command(nb::module_& m) {
  m.def("run_command", &run_command, nb::arg("arguments"), nb::arg("convert"), nb::arg("diff_run"),
        nb::arg("check_certificate"),
        "The program jaxport with what only Python can do; returns the exit code.");
}

}  // namespace jaxport::bind

// SPDX-License-Identifier: Apache-2.0
#include "tool/command.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "bind/inspect.h"
#include "compile/choices.h"

namespace jaxport::bind {
namespace {

namespace nb = nanobind;

nb::dict as_dict(const compile::Choices& choices) {
  nb::dict result;
  for (const compile::Choice& choice : compile::all_choices()) {
    std::visit([&](auto member) { result[choice.name.data()] = choices.*member; }, choice.member);
  }
  if (choices.opset == compile::kAutoOpset) result["opset"] = "auto";
  return result;
}

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
  options.update(as_dict(a.options.choices));
  options["external_data_threshold"] = a.options.write.external_threshold;
  options["inline_limit"] = a.options.write.inline_limit;
  options["source_locations"] = a.options.write.origins;
  keywords["options"] = options;
  nb::dict limits;  // of jaxport.Limits
  limits["nodes"] = a.options.limits.nodes;
  limits["bytes"] = a.options.limits.bytes;
  limits["depth"] = a.options.limits.depth;
  limits["seconds"] = a.options.limits.seconds;
  keywords["limits"] = limits;
  return keywords;
}

// The arguments of jaxport.command.report.
nb::dict as_keywords(const tool::ReportArguments& a, const std::string& data) {
  nb::dict keywords;
  keywords["program"] = a.program;
  keywords["output"] = a.output;
  keywords["data"] = data;
  keywords["inputs"] = a.inputs;
  keywords["params"] = a.params;
  nb::dict options = as_dict(a.choices);  // of to_onnx
  options["verify"] = a.verify;
  keywords["options"] = options;
  return keywords;
}

// The arguments of jaxport.command.profile.
nb::dict as_keywords(const tool::ProfileArguments& a) {
  nb::dict keywords;
  keywords["program"] = a.program;
  keywords["report"] = a.report;
  keywords["runs"] = a.runs;
  keywords["sizes"] = a.sizes;
  keywords["inputs"] = a.inputs;
  keywords["params"] = a.params;
  keywords["options"] = as_dict(a.choices);  // of to_onnx
  keywords["is_function"] = a.is_function;
  return keywords;
}

// The functions of jaxport.command by name; what is not there cannot be done.
tool::PythonSide python_side(const nb::dict& functions) {
  tool::PythonSide python;
  const auto set = [&](const char* name, auto& member, auto call) {
    if (!functions.contains(name)) return;
    nb::object function = functions[name];
    member = [function, call](const auto&... arguments) {
      return nb::cast<int>(call(function, arguments...));
    };
  };
  const auto on_arguments = [](const nb::object& function, const auto&... arguments) {
    return function(**as_keywords(arguments...));
  };
  const auto on_two_files = [](const nb::object& function, const std::string& first,
                               const std::string& second) { return function(first, second); };
  set("convert", python.convert, on_arguments);
  set("diff_run", python.diff_run, on_two_files);
  set("check_certificate", python.check_certificate, on_two_files);
  set("ort", python.ort, [](const nb::object& function, const tool::OrtArguments& a) {
    return function(a.model, a.output, a.operators, a.with_types);
  });
  set("report", python.report, on_arguments);
  set("profile", python.profile, on_arguments);
  return python;
}

int run_command(const std::vector<std::string>& arguments, const nb::dict& functions) {
  const tool::PythonSide python = python_side(functions);
  std::vector<const char*> argv{"jaxport"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  return tool::run_jaxport(static_cast<int>(argv.size()), argv.data(), python);
}

}  // namespace

void define_command(nb::module_& m) {
  m.def(
      "default_choices", [] { return as_dict({}); },
      "What a user chooses for a conversion, by the names of to_onnx, as it is by default.");
  m.def("run_command", &run_command, nb::arg("arguments"), nb::arg("functions"),
        "The program jaxport with what only Python can do; returns the exit code.");
}

}  // namespace jaxport::bind

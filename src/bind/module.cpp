// SPDX-License-Identifier: Apache-2.0
// The Python module jaxport._core: conversion of arguments, no logic.
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bind/errors.h"
#include "bind/importer.h"
#include "bind/inspect.h"
#include "bind/lowering.h"
#include "bind/session.h"
#include "compile/choices.h"
#include "compile/compile.h"
#include "explore/explore.h"
#include "front/parameters.h"
#include "front/params.h"
#include "front/text.h"
#include "jaxport/error.h"
#include "onnx/check.h"
#include "onnx/ir.h"
#include "target/kernels.h"
#include "tool/options.h"
#include "tool/session.h"
#include "wire/wire.h"

namespace jaxport::bind {
namespace {

namespace nb = nanobind;
using ReleaseLock = nb::call_guard<nb::gil_scoped_release>;

// A finished ONNX model and what the compiler reported about it.
struct CompiledModel {
  onnx::Model model;
  compile::Report report;
  std::string case_header;
};

// --- what a choice may be, for messages
[[maybe_unused]] constexpr const char* kind_of(int) { return "a whole number"; }
[[maybe_unused]] constexpr const char* kind_of(bool) { return "True or False"; }
[[maybe_unused]] constexpr const char* kind_of(std::string_view) { return "a text"; }
constexpr const char* kind_of(const std::vector<std::string>&) { return "a list of texts"; }
constexpr const char* kind_of(std::optional<std::int64_t>) { return "a whole number or None"; }

compile::Choices choices_from(const nb::dict& given) {
  compile::Choices choices;
  for (const auto& [name, value] : given) {
    const compile::Choice* choice = compile::find_choice(nb::cast<std::string>(name));
    if (!choice) throw nb::key_error(nb::cast<std::string>(name).c_str());
    std::visit(
        [&](auto member) {
          if (nb::try_cast(value, choices.*member)) return;
          throw Error("E075", fmt::format("{} {} is no choice", choice->name,
                                          nb::cast<std::string>(nb::repr(value))))
              .help(fmt::format("give {}", kind_of(choices.*member)));
        },
        choice->member);
  }
  return choices;
}

compile::Options options_from(const nb::dict& choices, const nb::dict& lowerings) {
  compile::Options options = compile::compile_options(choices_from(choices));
  options.lowerings = user_lowerings(lowerings);
  return options;
}

CompiledModel compile_module(tool::Session& session, const front::Module& module,
                             const nb::dict& choices, const nb::dict& lowerings) {
  tool::ConvertOptions options;
  options.choices = choices_from(choices);
  options.limits = session.limits();
  const lower::UserLowerings functions = user_lowerings(lowerings);
  CompiledModel result;
  result.case_header = tool::case_header(options);
  nb::gil_scoped_release release;
  result.model = tool::convert(session, module, options, functions, result.report);
  return result;
}

std::string explore_module(const front::Module& module, const nb::dict& choices,
                           const nb::dict& lowerings) {
  const compile::Options options = options_from(choices, lowerings);
  nb::gil_scoped_release release;
  return explore::data_of(module, options);
}

// (primitive, reason, source, uses) of each.
std::vector<std::tuple<std::string, std::string, std::string, std::size_t>> custom_ops_of(
    const CompiledModel& compiled) {
  std::vector<std::tuple<std::string, std::string, std::string, std::size_t>> result;
  for (const compile::Unsupported& equation : compiled.report.unsupported) {
    result.emplace_back(equation.primitive, equation.reason, equation.source, equation.uses);
  }
  return result;
}

wire::WriteOptions write_options(std::uint64_t external_threshold, std::uint64_t inline_limit,
                                 bool source_locations) {
  return {external_threshold, inline_limit, source_locations};
}

nb::bytes to_bytes(const CompiledModel& compiled, bool source_locations) {
  std::string bytes;
  {
    nb::gil_scoped_release release;
    wire::WriteOptions options;
    options.origins = source_locations;
    bytes = wire::to_bytes(compiled.model, options);
  }
  return nb::bytes(bytes.data(), bytes.size());
}

nb::typed<nb::dict, nb::str, nb::any> stats_of(const CompiledModel& compiled) {
  const onnx::Stats stats = onnx::stats(compiled.model);
  nb::dict ops;
  for (const auto& [op, count] : stats.ops) ops[op.c_str()] = count;
  nb::dict result;
  result["nodes"] = stats.nodes;
  result["ops"] = ops;
  result["parameters"] = stats.parameters;
  result["initializer_bytes"] = stats.initializer_bytes;
  nb::dict foreign;
  for (const auto& [op, count] : stats.foreign) foreign[op.c_str()] = count;
  result["custom_ops"] = foreign;
  return result;
}

nb::typed<nb::dict, nb::str, double> stage_times(const CompiledModel& compiled) {
  nb::dict result;
  for (const auto& [stage, seconds] : compiled.report.times) result[stage.c_str()] = seconds;
  return result;
}

std::vector<std::tuple<std::string, std::string, std::string>> findings_of(
    const CompiledModel& compiled) {
  std::vector<std::tuple<std::string, std::string, std::string>> result;
  for (const auto& [rule, reason, source] : compiled.report.findings) {
    result.emplace_back(rule, reason, source);
  }
  return result;
}

// Names and types of the inputs and of the outputs: "f32[B,4]".
nb::typed<nb::dict, nb::str, nb::any> interface_of(const CompiledModel& compiled) {
  const onnx::Model& model = compiled.model;
  const auto described = [&model](const std::vector<onnx::ValueId>& ids) {
    nb::list found;
    for (onnx::ValueId id : ids) {
      const onnx::ValueInfo& info = model.values[id];
      found.append(nb::make_tuple(info.name, info.type ? onnx::to_string(*info.type) : "?"));
    }
    return found;
  };
  nb::dict result;
  result["inputs"] = described(model.graph.inputs);
  result["outputs"] = described(model.graph.outputs);
  return result;
}

nb::typed<nb::dict, nb::str, std::size_t> precision_of(const CompiledModel& compiled) {
  const target::PrecisionCounts& counts = compiled.report.precision;
  nb::dict result;
  result["half_nodes"] = counts.half;
  result["full_nodes"] = counts.full;
  result["half_parameters"] = counts.stored;
  result["full_parameters"] = counts.kept;
  return result;
}

std::string requirement_of(const CompiledModel& compiled) {
  const auto& metadata = compiled.model.metadata;
  const auto found =
      std::ranges::find(metadata, compile::kRequires, &std::pair<std::string, std::string>::first);
  return found == metadata.end() ? "" : found->second;
}

int newest_opset(std::string_view target) {
  return target::newest_opset(target::target_from_name(target));
}

std::string render_error(std::string code, std::string message, std::string source,
                         std::string equation, const std::vector<std::string>& notes,
                         std::string help) {
  Error error(std::move(code), std::move(message));
  error.at(std::move(source)).equation(std::move(equation)).help(std::move(help));
  for (const std::string& note : notes) error.note(note);
  return error.what();
}

void define_module(nb::module_& m) {
  nb::class_<front::Module>(m, "Module", "A traced program: front IR.")
      .def(
          "text",
          [](const front::Module& module, bool locations, bool constants) {
            return front::print(module, {locations, constants});
          },
          nb::arg("locations") = true, nb::arg("constants") = true, ReleaseLock(),
          "The program as .jir text.")
      .def_prop_ro(
          "name", [](const front::Module& module) { return module.functions.at(0).name; },
          "The name of the function that was traced.");
  m.def(
      "import_jaxpr",
      [](tool::Session& session, nb::object jaxpr, nb::object reader, std::string name,
         std::vector<std::string> input_names, std::vector<std::string> output_names,
         nb::object path_of, std::vector<std::string> constraints) {
        const Watching watching(session);
        return import_jaxpr({std::move(jaxpr), std::move(reader), std::move(name),
                             std::move(input_names), std::move(output_names), std::move(path_of),
                             std::move(constraints)});
      },
      nb::arg("session"), nb::arg("jaxpr"), nb::arg("reader"), nb::arg("name"),
      nb::arg("input_names"), nb::arg("output_names"), nb::arg("path_of"), nb::arg("constraints"),
      "Reads what jax.make_jaxpr returns; constants stay views of JAX's buffers.");
}

void define_model(nb::module_& m) {
  nb::class_<CompiledModel>(m, "Model", "A finished ONNX model.")
      .def(
          "save",
          [](const CompiledModel& compiled, tool::Session& session,
             const std::filesystem::path& path, std::uint64_t external_threshold,
             std::uint64_t inline_limit, bool source_locations) {
            const Watching watching(session);
            return wire::save(compiled.model, path,
                              write_options(external_threshold, inline_limit, source_locations));
          },
          nb::arg("session"), nb::arg("path"), nb::arg("external_threshold"),
          nb::arg("inline_limit"), nb::arg("source_locations"), ReleaseLock(),
          "Writes the model; returns the number of bytes.")
      .def("to_bytes", &to_bytes, nb::arg("source_locations"), "The model as one protobuf message.")
      .def(
          "text", [](const CompiledModel& compiled) { return onnx::print(compiled.model); },
          ReleaseLock(), "The model in ONNX's text syntax.")
      .def("stats", &stats_of, "Counts of nodes, ops, parameters and bytes.")
      .def("interface", &interface_of, "Names and types of the \"inputs\" and \"outputs\".")
      .def_ro("case_header", &CompiledModel::case_header,
              "The first lines of a case: the options of the conversion.")
      .def_prop_ro("custom_ops", &custom_ops_of,
                   "What became nodes of the domain jaxport.custom: primitive, reason, source and "
                   "uses of each.")
      .def_prop_ro("requires", &requirement_of, "The oldest runtime that was kept in mind.")
      .def_prop_ro("precision", &precision_of,
                   "Counts of nodes and parameters of a model in half precision.")
      .def_prop_ro("stage_times", &stage_times, "Seconds spent in each stage of the compiler.")
      .def_prop_ro(
          "findings", &findings_of,
          "What was raised and what nearly was: rule, reason (empty: raised) and source of each.");
}

void define_compiler(nb::module_& m) {
  m.def("compile", &compile_module, nb::arg("session"), nb::arg("module"), nb::arg("choices"),
        nb::arg("lowerings"),
        "Compiles a program to ONNX with choices by the names of to_onnx; other Python threads run "
        "meanwhile.");
  m.def("explore", &explore_module, nb::arg("module"), nb::arg("choices"), nb::arg("lowerings"),
        "What the explorer page shows of such a conversion, as JSON.");
  m.def("newest_opset", &newest_opset, nb::arg("target"), "The newest opset that a target runs.");
  m.def("kernel_table", &target::table_version,
        "The version of ONNX Runtime whose kernels the compiler knows.");
  m.def("knows", &compile::knows, nb::arg("primitive"),
        "Whether the compiler has a translation or, at some opset, a lowering for a primitive.");
}

void define_primitives(nb::module_& m) {
  m.def(
      "calls",
      [] {
        std::vector<std::string_view> names;
        for (const front::CallRow& call : front::calls()) names.push_back(call.primitive);
        return names;
      },
      "The primitives that only call a nested jaxpr.");
  m.def(
      "parameters",
      [](std::string_view primitive) -> std::optional<std::string> {
        const front::Signature* found = front::find_signature(primitive);
        return found ? std::optional(std::string(found->parameters)) : std::nullopt;
      },
      nb::arg("primitive"),
      "The parameters that a primitive of JAX may have, separated by blanks; None for others.");
  m.def(
      "meaningless_parameters",
      [] {
        const auto names = front::meaningless_parameters();
        return std::vector<std::string_view>(names.begin(), names.end());
      },
      "Parameters of any primitive that cannot change the numbers of a result on one device.");
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "The compiler of jaxport.";
  // A model in a global variable lives until the process ends; a test asks for the warnings.
  nb::set_leak_warnings(std::getenv("JAXPORT_LEAK_WARNINGS") != nullptr);
  translate_errors();
  define_session(m);
  define_module(m);
  define_lowering(m);
  define_model(m);
  define_compiler(m);
  define_primitives(m);
  define_inspect(m);
  define_command(m);
  m.def("render_error", &render_error, nb::arg("code"), nb::arg("message"), nb::arg("source"),
        nb::arg("equation"), nb::arg("notes"), nb::arg("help"), "The text of an error.");
}

}  // namespace jaxport::bind

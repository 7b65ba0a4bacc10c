// SPDX-License-Identifier: Apache-2.0
// The Python module jaxport._core: conversion of arguments, no logic.
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
#include "compile/compile.h"
#include "front/params.h"
#include "front/text.h"
#include "jaxport/error.h"
#include "onnx/ir.h"
#include "target/kernels.h"
#include "wire/wire.h"

namespace jaxport::bind {
namespace {

namespace nb = nanobind;
using ReleaseLock = nb::call_guard<nb::gil_scoped_release>;

// A finished ONNX model and what the compiler reported about it.
struct CompiledModel {
  onnx::Model model;
  compile::Report report;
};

CompiledModel compile_module(const front::Module& module, int opset, std::string model_name,
                             bool raise, std::string_view normalization_mode,
                             std::vector<std::string> without_rules, std::string_view target,
                             const nb::dict& lowerings, bool auto_functions,
                             std::optional<std::int64_t> most_unrolled_layers) {
  compile::Options options;
  options.opset = opset;
  options.model_name = std::move(model_name);
  options.raise.enabled = raise;
  compile::set_normalization_mode(options, normalization_mode);
  options.raise.without = std::move(without_rules);
  options.target = target::target_from_name(target);
  options.lowerings = user_lowerings(lowerings);
  options.auto_functions = auto_functions;
  options.most_unrolled_layers = most_unrolled_layers;
  CompiledModel result;
  nb::gil_scoped_release release;
  result.model = compile::compile(module, options, &result.report);
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
          "The program as .jir text.");
  m.def(
      "import_jaxpr",
      [](nb::object jaxpr, nb::object reader, std::string name,
         std::vector<std::string> input_names, std::vector<std::string> output_names,
         nb::object path_of, std::vector<std::string> constraints) {
        return import_jaxpr({std::move(jaxpr), std::move(reader), std::move(name),
                             std::move(input_names), std::move(output_names), std::move(path_of),
                             std::move(constraints)});
      },
      nb::arg("jaxpr"), nb::arg("reader"), nb::arg("name"), nb::arg("input_names"),
      nb::arg("output_names"), nb::arg("path_of"), nb::arg("constraints"),
      "Reads what jax.make_jaxpr returns; constants stay views of JAX's buffers.");
}

void define_model(nb::module_& m) {
  nb::class_<CompiledModel>(m, "Model", "A finished ONNX model.")
      .def(
          "save",
          [](const CompiledModel& compiled, const std::filesystem::path& path,
             std::uint64_t external_threshold, std::uint64_t inline_limit, bool source_locations) {
            return wire::save(compiled.model, path,
                              write_options(external_threshold, inline_limit, source_locations));
          },
          nb::arg("path"), nb::arg("external_threshold"), nb::arg("inline_limit"),
          nb::arg("source_locations"), ReleaseLock(),
          "Writes the model; returns the number of bytes.")
      .def("to_bytes", &to_bytes, nb::arg("source_locations"), "The model as one protobuf message.")
      .def(
          "text", [](const CompiledModel& compiled) { return onnx::print(compiled.model); },
          ReleaseLock(), "The model in ONNX's text syntax.")
      .def("stats", &stats_of, "Counts of nodes, ops, parameters and bytes.")
      .def_prop_ro("requires", &requirement_of, "The oldest runtime that was kept in mind.")
      .def_prop_ro("stage_times", &stage_times, "Seconds spent in each stage of the compiler.")
      .def_prop_ro(
          "findings", &findings_of,
          "What was raised and what nearly was: rule, reason (empty: raised) and source of each.");
  m.def("compile", &compile_module, nb::arg("module"), nb::arg("opset"), nb::arg("model_name"),
        nb::arg("raise_"), nb::arg("normalization_mode"), nb::arg("without_rules"),
        nb::arg("target"), nb::arg("lowerings"), nb::arg("auto_functions") = false,
        nb::arg("most_unrolled_layers") = nb::none(),
        "Compiles a program to ONNX; other Python threads run meanwhile.");
  m.def("newest_opset", &newest_opset, nb::arg("target"), "The newest opset that a target runs.");
  m.def(
      "calls",
      [] {
        std::vector<std::string_view> names;
        for (const front::CallRow& call : front::calls()) names.push_back(call.primitive);
        return names;
      },
      "The primitives that only call a nested jaxpr.");
  m.def("kernel_table", &target::table_version,
        "The version of ONNX Runtime whose kernels the compiler knows.");
  m.def("knows", &compile::knows, nb::arg("primitive"),
        "Whether the compiler has a translation or, at some opset, a lowering for a primitive.");
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "The compiler of jaxport.";
  // A model in a global variable lives until the process ends; a test asks for the warnings.
  nb::set_leak_warnings(std::getenv("JAXPORT_LEAK_WARNINGS") != nullptr);
  translate_errors();
  define_module(m);
  define_lowering(m);
  define_model(m);
  define_inspect(m);
  define_command(m);
  m.def("render_error", &render_error, nb::arg("code"), nb::arg("message"), nb::arg("source"),
        nb::arg("equation"), nb::arg("notes"), nb::arg("help"), "The text of an error.");
}

}  // namespace jaxport::bind

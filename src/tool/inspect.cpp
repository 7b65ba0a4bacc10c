// SPDX-License-Identifier: Apache-2.0
// jaxport stats, check, text and diff: what a model is.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "inspect/diff.h"
#include "inspect/table.h"
#include "jaxport/error.h"
#include "onnx/ir.h"
#include "tool/check.h"
#include "tool/command.h"
#include "wire/wire.h"

namespace jaxport::tool {
namespace {

std::string producer(const onnx::Model& model) {
  if (model.producer_version.empty()) return model.producer_name;
  return model.producer_name + " " + model.producer_version;
}

void print_stats_table(const onnx::Model& model, const onnx::Stats& stats) {
  std::vector<std::vector<std::string>> facts{
      {"producer", producer(model)},
      {"ir version", std::to_string(model.ir_version)},
      {"opset", std::to_string(model.opset())},
      {"nodes", inspect::with_separators(stats.nodes)},
      {"parameters", inspect::with_separators(stats.parameters)},
      {"tensor bytes", inspect::with_separators(stats.initializer_bytes)}};
  fmt::print("{}", inspect::aligned(facts));
  if (stats.ops.empty()) return;
  std::vector<std::vector<std::string>> rows;
  for (const auto& [op, count] : stats.ops)
    rows.push_back({"", op, inspect::with_separators(count)});
  fmt::print("\n{}", inspect::aligned(rows, {inspect::Align::kLeft, inspect::Align::kLeft,
                                             inspect::Align::kRight}));
}

void print_stats_json(const onnx::Model& model, const onnx::Stats& stats) {
  nlohmann::ordered_json ops = nlohmann::ordered_json::object();
  for (const auto& [op, count] : stats.ops) ops[op] = count;
  nlohmann::ordered_json foreign = nlohmann::ordered_json::object();
  for (const auto& [op, count] : stats.foreign) foreign[op] = count;
  const nlohmann::ordered_json json{{"producer", producer(model)},
                                    {"ir_version", model.ir_version},
                                    {"opset", model.opset()},
                                    {"nodes", stats.nodes},
                                    {"parameters", stats.parameters},
                                    {"tensor_bytes", stats.initializer_bytes},
                                    {"ops", ops},
                                    {"custom_ops", foreign}};
  // Names in a file may be any bytes; those that are not UTF-8 are replaced.
  constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
  fmt::print("{}\n", json.dump(2, ' ', false, kReplace));
}

int check_file(const std::string& path, const std::string& target) {
  const onnx::Model model = wire::load(path, {.check_names = false});
  Findings findings = check(model);
  if (!target.empty()) check_target(model, target::target_from_name(target), findings);
  for (const std::string& problem : findings.problems) fmt::print("{}: {}\n", path, problem);
  for (const std::string& note : findings.notes) fmt::print("{}: note: {}\n", path, note);
  fmt::print("{}: {} problem{}\n", path, findings.problems.size(),
             findings.problems.size() == 1 ? "" : "s");
  return findings.problems.empty() ? kOk : kFound;
}

int diff_files(const std::string& lhs, const std::string& rhs) {
  const std::vector<inspect::Difference> found =
      inspect::differences(wire::load(lhs), wire::load(rhs));
  if (found.empty()) {
    fmt::print("the models are the same\n");
    return kOk;
  }
  std::vector<std::vector<std::string>> rows;
  for (const inspect::Difference& difference : found) {
    const auto side = [](const std::string& text) { return text.empty() ? "-" : text; };
    rows.push_back({difference.what, "<", side(difference.lhs)});
    rows.push_back({"", ">", side(difference.rhs)});
  }
  fmt::print("< {}\n> {}\n{}", lhs, rhs, inspect::aligned(rows));
  return kFound;
}

}  // namespace

std::shared_ptr<std::string> add_model(CLI::App& command, const char* name, const char* help) {
  auto path = std::make_shared<std::string>();
  command.add_option(name, *path, help)->required();
  return path;
}

Run add_stats(CLI::App& command, const PythonSide&) {
  auto path = add_model(command, "model", "an ONNX file");
  auto as_json = std::make_shared<bool>(false);
  command.add_flag("--json", *as_json, "print JSON");
  return [path, as_json] {
    const onnx::Model model = wire::load(*path);
    (*as_json ? print_stats_json : print_stats_table)(model, onnx::stats(model));
    return kOk;
  };
}

Run add_check(CLI::App& command, const PythonSide& python) {
  auto path = add_model(command, "model", "an ONNX file");
  auto certificate = std::make_shared<std::string>();
  command.add_option("--certificate", *certificate,
                     "what jaxport.verify wrote: say whether it belongs to the file as it is");
  auto target = std::make_shared<std::string>();
  command.add_option("--target", *target,
                     "what must load the model too: onnxruntime, onnxruntime==1.20, …");
  return [path, certificate, target, &python] {
    const int code = check_file(*path, *target);
    if (certificate->empty()) return code;
    if (!python.check_certificate) {
      throw Error("E091", "check --certificate needs Python, which this program does not have")
          .help(kUsePackage);
    }
    return std::max(code, python.check_certificate(*path, *certificate));
  };
}

Run add_text(CLI::App& command, const PythonSide&) {
  auto path = add_model(command, "model", "an ONNX file");
  return [path] {
    fmt::print("{}", onnx::print(wire::load(*path)));
    return kOk;
  };
}

Run add_diff(CLI::App& command, const PythonSide& python) {
  auto lhs = add_model(command, "lhs", "an ONNX file");
  auto rhs = add_model(command, "rhs", "another ONNX file");
  auto run = std::make_shared<bool>(false);
  command.add_flag("--run", *run,
                   "run both on the same random inputs too: values and latency side by side");
  return [lhs, rhs, run, &python] {
    if (!*run) return diff_files(*lhs, *rhs);
    if (!python.diff_run) {
      throw Error("E091", "diff --run needs ONNX Runtime, which only Python has here")
          .help(kUsePackage);
    }
    return python.diff_run(*lhs, *rhs);
  };
}

}  // namespace jaxport::tool

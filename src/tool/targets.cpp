// SPDX-License-Identifier: Apache-2.0
// jaxport targets, and check --target: which runtimes load a model.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "inspect/table.h"
#include "target/fit.h"
#include "tool/check.h"
#include "tool/command.h"
#include "wire/wire.h"

namespace jaxport::tool {
namespace {

using target::Fit;
using target::Misfit;
using target::version_text;
using target::VersionFit;

std::string to_string(const Misfit& misfit) {
  return misfit.where.empty() ? misfit.what : fmt::format("{} at {}", misfit.what, misfit.where);
}

// "loads", or what is in the way.
std::string verdict(const VersionFit& version) {
  if (version.misfits.empty()) return "loads";
  const std::string first = to_string(version.misfits.front());
  const std::size_t others = version.misfits.size() - 1;
  return others == 0 ? first : fmt::format("{}, and {} more", first, others);
}

std::string advice(const Fit& fit) {
  if (fit.needed() == fit.versions.front().version) return "";
  const VersionFit* last = nullptr;  // that does not load it
  for (const VersionFit& version : fit.versions) {
    if (!version.misfits.empty()) last = &version;
  }
  if (last->misfits.front().where.empty())
    return "older versions need an older opset: jaxport picks it with --opset auto --target "
           "onnxruntime==VERSION";
  if (last->misfits.front().what.starts_with("there is no op"))
    return "jaxport check lists what is wrong with the model";
  return fmt::format(
      "give the operands a wider dtype, with Cast; jaxport does so, where there is one, with "
      "--target "
      "onnxruntime=={}",
      version_text(last->version));
}

void print_table(const std::string& path, const Fit& fit) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < fit.versions.size();) {
    const std::string text = verdict(fit.versions[i]);
    std::size_t end = i + 1;
    while (end < fit.versions.size() && verdict(fit.versions[end]) == text) ++end;
    std::string range = version_text(fit.versions[i].version);
    if (end > i + 1) range += fmt::format(" to {}", version_text(fit.versions[end - 1].version));
    rows.push_back({"onnxruntime", range, text});
    i = end;
  }
  fmt::print("{}", inspect::aligned(rows));
  for (const std::string& note : fit.notes) fmt::print("note: {}\n", note);
  if (fit.needed() == 0) {
    fmt::print("{}: onnxruntime {} does not load it\n", path,
               version_text(fit.versions.back().version));
  } else {
    fmt::print("{}: needs onnxruntime>={}\n", path, version_text(fit.needed()));
  }
  if (const std::string help = advice(fit); !help.empty()) fmt::print("help: {}\n", help);
}

void print_json(const Fit& fit) {
  nlohmann::ordered_json versions = nlohmann::ordered_json::object();
  for (const VersionFit& version : fit.versions) {
    nlohmann::ordered_json misfits = nlohmann::ordered_json::array();
    for (const Misfit& misfit : version.misfits) misfits.push_back(to_string(misfit));
    versions[version_text(version.version)] = misfits;
  }
  const nlohmann::ordered_json json{
      {"needs", fit.needed() == 0 ? "" : "onnxruntime>=" + version_text(fit.needed())},
      {"onnxruntime", versions},
      {"notes", fit.notes}};
  // Names in a file may be any bytes; those that are not UTF-8 are replaced.
  constexpr auto kReplaced = nlohmann::ordered_json::error_handler_t::replace;
  fmt::print("{}\n", json.dump(2, ' ', false, kReplaced));
}

}  // namespace

void check_target(const onnx::Model& model, const target::Target& target, Findings& findings) {
  if (target.runtime == target::Runtime::kOnnx) return;
  const bool is_any = target.oldest == 0;
  target::Target wanted =
      is_any ? target::for_opset(target, static_cast<int>(model.opset())) : target;
  Fit fit = target::fit(model);
  if (is_any) wanted.oldest = std::max(wanted.oldest, fit.needed());  // as to_onnx chooses it
  std::set<std::string> said;  // a version lacks most of what the one before it lacks
  for (const VersionFit& version : fit.versions) {
    if (version.version < wanted.oldest || version.version > wanted.newest) continue;
    for (const Misfit& misfit : version.misfits) {
      const std::string text = to_string(misfit);
      if (!said.insert(text).second) continue;
      findings.problems.push_back(
          fmt::format("ONNX Runtime {}: {}", version_text(version.version), text));
    }
  }
  findings.notes.insert(findings.notes.end(), fit.notes.begin(), fit.notes.end());
}

Run add_targets(CLI::App& command, const PythonSide&) {
  auto path = add_model(command, "model", "an ONNX file");
  auto as_json = std::make_shared<bool>(false);
  command.add_flag("--json", *as_json, "print JSON");
  return [path, as_json] {
    const Fit fit = target::fit(wire::load(*path));
    if (*as_json) {
      print_json(fit);
    } else {
      print_table(*path, fit);
    }
    return fit.needed() == 0 ? kFound : kOk;
  };
}

}  // namespace jaxport::tool

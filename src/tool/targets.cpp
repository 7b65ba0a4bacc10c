// SPDX-License-Identifier: Apache-2.0
// jaxport targets, and check --target: which runtimes load a model.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
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

using target::advice;
using target::Fit;
using target::Misfit;
using target::Runtime;
using target::version_text;
using target::VersionFit;

// "loads", or what is in the way.
std::string verdict(const VersionFit& version) {
  if (version.misfits.empty()) return "loads";
  const std::string first = to_string(version.misfits.front());
  const std::size_t others = version.misfits.size() - 1;
  return others == 0 ? first : fmt::format("{}, and {} more", first, others);
}

using Rows = std::vector<std::vector<std::string>>;

// A row for each stretch of versions that say the same.
void add_rows(const Fit& fit, Rows& rows) {
  for (std::size_t i = 0; i < fit.versions.size();) {
    const std::string text = verdict(fit.versions[i]);
    std::size_t end = i + 1;
    while (end < fit.versions.size() && verdict(fit.versions[end]) == text) ++end;
    std::string range = version_text(fit.versions[i].version);
    if (end > i + 1) range += fmt::format(" to {}", version_text(fit.versions[end - 1].version));
    rows.push_back({std::string(name_of(fit.runtime)), range, text});
    i = end;
  }
}

std::string need(const Fit& fit) {
  return fmt::format("{}>={}", name_of(fit.runtime), version_text(fit.needed()));
}

bool is_run(const Fit& fit) { return fit.needed() != 0; }

std::vector<std::string> needs(const std::vector<Fit>& fits) {
  std::vector<std::string> result;
  for (const Fit& fit : fits) {
    if (is_run(fit)) result.push_back(need(fit));
  }
  return result;
}

std::vector<std::string> notes(const std::vector<Fit>& fits) {
  std::vector<std::string> result;
  for (const Fit& fit : fits) {
    for (const std::string& note : fit.notes) {
      if (std::ranges::find(result, note) == result.end()) result.push_back(note);
    }
  }
  return result;
}

// One for each hindrance: that of several runtimes is often the same.
std::vector<std::string> help(const std::vector<Fit>& fits) {
  std::vector<std::string> result;
  std::set<std::string> said;
  for (const Fit& fit : fits) {
    const Misfit* misfit = target::hindrance(fit);
    if (misfit && said.insert(to_string(*misfit)).second) result.push_back(advice(fit));
  }
  return result;
}

void print_table(const std::string& path, const std::vector<Fit>& fits) {
  Rows rows;
  for (const Fit& fit : fits) add_rows(fit, rows);
  fmt::print("{}", inspect::aligned(rows));
  for (const std::string& note : notes(fits)) fmt::print("note: {}\n", note);
  for (const Fit& fit : fits) {
    if (is_run(fit)) continue;
    fmt::print("{}: not for {} {}\n", path, name_of(fit.runtime),
               version_text(fit.versions.back().version));
  }
  if (const auto found = needs(fits); !found.empty())
    fmt::print("{}: needs {}\n", path, fmt::join(found, ", "));
  for (const std::string& text : help(fits)) fmt::print("help: {}\n", text);
}

void print_json(const std::vector<Fit>& fits) {
  nlohmann::ordered_json json{{"needs", needs(fits)}};
  for (const Fit& fit : fits) {
    nlohmann::ordered_json versions = nlohmann::ordered_json::object();
    for (const VersionFit& version : fit.versions) {
      nlohmann::ordered_json misfits = nlohmann::ordered_json::array();
      for (const Misfit& misfit : version.misfits) misfits.push_back(to_string(misfit));
      versions[version_text(version.version)] = misfits;
    }
    json[std::string(name_of(fit.runtime))] = versions;
  }
  json["notes"] = notes(fits);
  json["help"] = help(fits);
  // Names in a file may be any bytes; those that are not UTF-8 are replaced.
  constexpr auto kReplaced = nlohmann::ordered_json::error_handler_t::replace;
  fmt::print("{}\n", json.dump(2, ' ', false, kReplaced));
}

}  // namespace

void check_target(const onnx::Model& model, const target::Target& target, Findings& findings) {
  if (target.runtime == Runtime::kOnnx) return;
  const bool is_any = target.oldest == 0;
  target::Target wanted =
      is_any ? target::for_opset(target, static_cast<int>(model.opset())) : target;
  Fit fit = target::fit(model, target.runtime);
  if (is_any && fit.needed() > wanted.oldest) {  // as to_onnx chooses it
    wanted.oldest = fit.needed();
    findings.notes.push_back(fmt::format("it needs {}: jaxport targets says why", need(fit)));
  }
  std::set<std::string> said;  // a version lacks most of what the one before it lacks
  for (const VersionFit& version : fit.versions) {
    if (version.version < wanted.oldest || version.version > wanted.newest) continue;
    for (const Misfit& misfit : version.misfits) {
      const std::string text = to_string(misfit);
      if (!said.insert(text).second) continue;
      findings.problems.push_back(
          fmt::format("{} {}: {}", title_of(target.runtime), version_text(version.version), text));
    }
  }
  findings.notes.insert(findings.notes.end(), fit.notes.begin(), fit.notes.end());
}

Run add_targets(CLI::App& command, const PythonSide&) {
  auto path = add_model(command, "model", "an ONNX file");
  auto as_json = std::make_shared<bool>(false);
  auto chosen = std::make_shared<std::vector<std::string>>();
  std::vector<std::string> names;
  for (const Runtime runtime : target::kRuntimes) names.emplace_back(name_of(runtime));
  command.add_flag("--json", *as_json, "print JSON");
  command.add_option("--runtime", *chosen, "look at these runtimes alone")
      ->check(CLI::IsMember(names));
  return [path, as_json, chosen] {
    const onnx::Model model = wire::load(*path);
    std::vector<Fit> fits;
    for (const Runtime runtime : target::kRuntimes) {
      const bool is_wanted =
          chosen->empty() || std::ranges::find(*chosen, name_of(runtime)) != chosen->end();
      if (is_wanted) fits.push_back(target::fit(model, runtime));
    }
    if (*as_json) {
      print_json(fits);
    } else {
      print_table(*path, fits);
    }
    return std::ranges::all_of(fits, is_run) ? kOk : kFound;
  };
}

}  // namespace jaxport::tool

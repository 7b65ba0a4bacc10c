// SPDX-License-Identifier: Apache-2.0
// jaxport replay: converts a case again, as it was converted when it was written.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>
#include <vector>

#include "inspect/table.h"
#include "onnx/ir.h"
#include "support/hash.h"
#include "tool/command.h"
#include "tool/session.h"
#include "tool/source.h"
#include "wire/wire.h"

namespace jaxport::tool {
namespace {

struct ReplayArguments {
  std::string program, output;
  bool remarks = false;
};

// The options in the file, then those that are given beside it.
ConvertOptions options_of(const ReplayArguments& a, const std::vector<std::string>& given) {
  std::vector<std::string> arguments = read_case_arguments(a.program);
  fmt::print("options: {}\n",
             arguments.empty() ? "the usual ones" : fmt::format("{}", fmt::join(arguments, " ")));
  arguments.insert(arguments.end(), given.begin(), given.end());
  return options_from(arguments);
}

// A hash of what a file would hold, so that two machines can tell whether they made the same model.
std::uint64_t hash_of(const onnx::Model& model, const wire::WriteOptions& options) {
  std::uint64_t hash = 0;
  wire::for_each_piece(model, options, [&hash](std::span<const std::byte> piece) {
    hash = hash_bytes(piece.data(), piece.size(), hash);
  });
  return hash;
}

int replay(const ReplayArguments& a, const std::vector<std::string>& given) {
  const ConvertOptions options = options_of(a, given);
  Session session(settings_of_environment(options.limits));
  const Watching watching(session);
  const front::Module module = read_program(a.program);
  compile::Report report;
  const onnx::Model model = convert(session, module, options, {}, report);
  if (!a.output.empty()) wire::save(model, a.output, options.write);
  const std::uint64_t hash = hash_of(model, options.write);
  session.close();
  const onnx::Stats stats = onnx::stats(model);
  fmt::print("model: {} nodes, {} parameters, {} tensor bytes, hash {:016x}\n",
             inspect::with_separators(stats.nodes), inspect::with_separators(stats.parameters),
             inspect::with_separators(stats.initializer_bytes), hash);
  for (const auto& [op, count] : stats.ops) fmt::print("  {} {}\n", op, count);
  if (!a.output.empty()) fmt::print("written to {}\n", a.output);
  if (a.remarks) print_findings(report);
  return kOk;
}

}  // namespace

Run add_replay(CLI::App& command, const PythonSide&) {
  auto a = std::make_shared<ReplayArguments>();
  command.add_option("case", a->program, "a .jir file; the options stand in its first lines")
      ->required();
  command.add_option("-o,--output", a->output, "the ONNX file to write; by default none");
  command.add_flag("--remarks", a->remarks, "say what was raised, and what nearly was and why not");
  command.allow_extras()->footer(
      "Options of convert, such as --opset=21, replace those of the case.");
  return [a, &command] { return replay(*a, command.remaining()); };
}

}  // namespace jaxport::tool

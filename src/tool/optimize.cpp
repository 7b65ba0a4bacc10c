// SPDX-License-Identifier: Apache-2.0
// jaxport opt: the compiler's passes on any model.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <string>

#include "inspect/table.h"
#include "onnx/ir.h"
#include "pass/optimise.h"
#include "tool/command.h"
#include "wire/wire.h"

namespace jaxport::tool {
namespace {

struct OptArguments {
  std::string model, output;
  bool counts = false;
};

void print_counts(const pass::PassCounts& counts) {
  using enum inspect::Align;
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, changes, seconds] : counts) {
    if (changes == 0) continue;
    rows.push_back({"", std::string(name), inspect::with_separators(changes),
                    fmt::format("{:.1f} ms", 1e3 * seconds)});
  }
  if (rows.empty()) return;
  fmt::print("{}", inspect::aligned(rows, {kLeft, kLeft, kRight, kRight}));
}

int optimize(const OptArguments& arguments) {
  const auto start = std::chrono::steady_clock::now();
  wire::Kept kept;
  onnx::Model model = wire::load(arguments.model, {.kept = &kept});
  const std::size_t before = onnx::stats(model).nodes;
  const auto counts = pass::optimise(model, kept.functions);
  wire::WriteOptions write{.kept = &kept};
  // What had data beside it has it again.
  if (kept.external_data) write.inline_limit = 0;
  const std::uint64_t bytes = wire::save(model, arguments.output, write);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  fmt::print("{}  {} -> {} nodes  {} bytes  {:.3f} s\n", arguments.output,
             inspect::with_separators(before), inspect::with_separators(onnx::stats(model).nodes),
             inspect::with_separators(bytes), taken.count());
  if (arguments.counts) print_counts(counts);
  return kOk;
}

}  // namespace

Run add_opt(CLI::App& command, const PythonSide&) {
  auto a = std::make_shared<OptArguments>();
  command.add_option("model", a->model, "an ONNX model")->required();
  command.add_option("-o,--output", a->output, "the ONNX file to write")->required();
  command.add_flag("--counts", a->counts, "say how much each pass changed, and how long it took");
  return [a] { return optimize(*a); };
}

}  // namespace jaxport::tool

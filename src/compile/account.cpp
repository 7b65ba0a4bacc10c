// SPDX-License-Identifier: Apache-2.0
#include "compile/account.h"

#include <fmt/format.h>

#include <utility>

#include "onnx/subgraph.h"
#include "support/watch.h"

namespace jaxport::compile {
namespace {

// In the middle of the pipeline most values have no names yet.
std::string named_text(const onnx::Model& model) {
  onnx::Model named = onnx::with_own_bodies(model);
  onnx::name_values(named);
  return onnx::print(named);
}

void say_size(std::string_view category, const axis::Program& program) {
  if (!watch().hears(category)) return;
  watch().say(category,
              fmt::format("{} nodes in the main graph, {} bodies",
                          axis::topological(program).size(), axis::regions(program).size()));
}

}  // namespace

void Account::lap(std::string stage) {
  ++stages_;
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - std::exchange(last_, now)).count();
  if (watch().hears("time")) watch().say("time", fmt::format("{}: {:.5f} s", stage, seconds));
  if (report_) report_->times.push_back({std::move(stage), seconds});
}

void Account::translated(const axis::Program& program) {
  lap("axis");
  say_size("axis", program);
  watch().keep("1-axis.txt", [&] { return axis::print(program); });
}

void Account::raised(const axis::Program& program, std::span<const raise::Remark> remarks) {
  if (report_) report_->findings = findings(program, remarks);
  lap("raise");
  if (watch().hears("raise")) {
    for (const Finding& finding : findings(program, remarks)) {
      watch().say("raise", to_string(finding));
    }
  }
  say_size("raise", program);
  watch().keep("2-raise.txt", [&] {
    std::string text = axis::print(program);
    for (const Finding& finding : findings(program, remarks)) {
      if (!finding.reason.empty()) text += fmt::format("// {}\n", to_string(finding));
    }
    return text;
  });
}

void Account::made(std::string stage, const onnx::Model& model) {
  lap(stage);
  if (watch().hears(stage)) {
    watch().say(stage, fmt::format("{} nodes", onnx::stats(model).nodes));
  }
  watch().keep(fmt::format("{}-{}.onnxtxt", stages_, stage), [&] { return named_text(model); });
}

}  // namespace jaxport::compile

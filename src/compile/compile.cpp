// SPDX-License-Identifier: Apache-2.0
#include "compile/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "axis/graph/graph.h"
#include "axis/graph/pointwise.h"
#include "axis/translate/translate.h"
#include "compile/missing.h"
#include "compile/user_names.h"
#include "front/repeats.h"
#include "jaxport/error.h"
#include "jaxport/version.h"
#include "lower/lower.h"
#include "lower/rows/ctx.h"
#include "onnx/schema.h"
#include "pass/pass.h"
#include "target/target.h"

namespace jaxport::compile {
namespace {

class Clock {
 public:
  explicit Clock(Report* report) : report_(report) {}
  void lap(std::string stage) {
    const auto now = std::chrono::steady_clock::now();
    if (report_)
      report_->times.push_back(
          {std::move(stage), std::chrono::duration<double>(now - last_).count()});
    last_ = now;
  }

 private:
  Report* report_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// What a reader of the model may want to know before it is run. Fields that are newer than the IR
// version of an old runtime are skipped by it.
void describe(onnx::Model& model, int opset, const target::Target& target) {
  model.producer_version = kVersion;
  model.ir_version = std::min<std::int64_t>(model.ir_version, target::newest_ir_version(target));
  model.metadata.emplace_back(kRequires, target::requirement(target, opset));
}

onnx::Model run_stages(const front::Module& module, const Options& options, Report* report) {
  Clock clock(report);
  target::Target target = target::for_opset(options.target, options.opset);
  axis::Program program = axis::build(module, module.functions.at(0), target::preferences(target),
                                      {options.most_unrolled_layers, options.auto_functions});
  clock.lap("axis");
  const auto remarks = raise::raise(program, options.raise);
  if (report) report->findings = findings(program, remarks);
  clock.lap("raise");
  onnx::Model model = lower::lower(program, {options.opset, options.model_name, target,
                                             options.native_norms, options.lowerings});
  clock.lap("lower");
  target = target::legalise(model, options.target);
  clock.lap("target");
  pass::run_all(model);
  if (target::avoid_faults(model, target)) pass::remove_dead_code(model);
  pass::make_functions(model);
  clock.lap("passes");
  describe(model, options.opset, target);
  onnx::name_values(model);
  onnx::verify(model, "compile");
  clock.lap("names");
  return model;
}

}  // namespace

void set_normalization_mode(Options& options, std::string_view mode) {
  options.raise.norms = mode != "force_decomposed";
  options.native_norms = mode == "prefer_native";
}

bool knows(std::string_view primitive) {
  return axis::is_translated(primitive) || axis::find_pointwise(primitive) != nullptr ||
         lower::find_row(primitive, onnx::kNewestOpset) != nullptr;
}

onnx::Model compile(const front::Module& module, const Options& options, Report* report) {
  if (options.opset < onnx::kOldestOpset || options.opset > onnx::kNewestOpset) {
    throw Error("E011", fmt::format("opset {} is out of range", options.opset))
        .help(fmt::format("choose an opset from {} to {}", onnx::kOldestOpset, onnx::kNewestOpset));
  }
  try {
    refuse_problems(module);
    if (options.lowerings.empty() && !options.auto_functions) {
      return run_stages(module, options, report);
    }
    Options given = options;
    given.lowerings = by_user_name(options.lowerings);
    front::Module prepared = with_user_names(module, options.lowerings);
    if (options.auto_functions) {
      prepared.functions[0] = front::with_repeats_marked(std::move(prepared.functions.at(0)));
    }
    return run_stages(prepared, given, report);
  } catch (Error& error) {
    note_missing(error, module, options.opset, options.lowerings);
    throw;
  }
}

}  // namespace jaxport::compile

// SPDX-License-Identifier: Apache-2.0
#include "compile/compile.h"

#include <fmt/format.h>

#include <algorithm>

#include "axis/graph/graph.h"
#include "axis/graph/pointwise.h"
#include "axis/translate/translate.h"
#include "compile/account.h"
#include "compile/checks.h"
#include "compile/unsupported.h"
#include "compile/user_names.h"
#include "front/flatten.h"
#include "front/repeats.h"
#include "jaxport/error.h"
#include "jaxport/version.h"
#include "lower/lower.h"
#include "lower/rows/ctx.h"
#include "lower/rows/custom.h"
#include "onnx/schema.h"
#include "pass/pass.h"
#include "support/watch.h"
#include "target/exact.h"
#include "target/target.h"

namespace jaxport::compile {
namespace {

// What a reader of the model may want to know before it is run. Fields that are newer than the IR
// version of an old runtime are skipped by it.
void describe(onnx::Model& model, const Options& options, const target::Target& target) {
  model.producer_version = kVersion;
  model.ir_version = std::min<std::int64_t>(model.ir_version, target::newest_ir_version(target));
  model.metadata.emplace_back(kRequires, target::requirement(target, options.opset));
  if (options.precision.dtype != DType::kF32)
    model.metadata.emplace_back(kPrecision, name_of(options.precision.dtype));
}

// Tells the observer, if there is one, what a stage made.
void show(Observer* observer, std::string_view stage, const onnx::Model& model) {
  if (observer) observer->on_model(stage, model);
}

axis::Program raised_program(const front::Module& module, const Options& options,
                             const target::Target& target, const Checks& checks, Observer* observer,
                             Account& account) {
  axis::Program program = axis::build(module, module.functions.at(0), target::preferences(target),
                                      {options.most_unrolled_layers, options.auto_functions});
  checks.axis(program, "translation");
  account.translated(program);
  raise::Options raise = options.raise;
  raise.enabled &= !options.exact;  // what rules make may differ where numbers are extreme
  if (checks.are_on()) raise.after = [&](const axis::Program& p) { checks.axis(p, "raising"); };
  const auto remarks = raise::raise(program, raise);
  if (observer) observer->on_raised(program, remarks);
  account.raised(program, remarks);
  return program;
}

onnx::Model lowered_program(axis::Program& program, const Options& options,
                            const target::Target& target, const Checks& checks) {
  lower::Options lower{options.opset,        options.model_name, target,
                       options.native_norms, options.lowerings,  options.exact};
  if (checks.are_on()) lower.after = [&](const axis::Program& p) { checks.axis(p, "preparation"); };
  onnx::Model model = lower::lower(program, lower);
  checks.onnx(model, "lowering", onnx::DTypeRule::kAny);
  return model;
}

void run_passes(onnx::Model& model, const Options& options, target::Target& target,
                const Checks& checks, Report* report) {
  const auto clean = [&] {
    pass::run_all(model, [&](const pass::Pass& pass) { checks.onnx(model, pass.name); });
  };
  clean();
  if (options.exact && target::make_exact(model, target)) {
    target = target::legalise(model, target);
    checks.onnx(model, "make_exact");
    clean();
  }
  if (options.precision.dtype != DType::kF32) {
    const auto counts = target::reduce_precision(model, target, options.precision);
    checks.onnx(model, "reduce_precision");
    if (report) report->precision = counts;
    clean();
  }
  if (target::avoid_faults(model, target)) pass::remove_dead_code(model);
  checks.onnx(model, "avoid_faults");
  pass::make_functions(model);
  lower::name_custom_nodes(model);
}

onnx::Model run_stages(const front::Module& module, const Options& options, Report* report,
                       Observer* observer) {
  if (observer) observer->on_program(module);
  const Checks checks;
  Account account(report);
  checks.front(module);
  target::Target target = target::for_opset(options.target, options.opset);
  axis::Program program = raised_program(module, options, target, checks, observer, account);
  onnx::Model model = lowered_program(program, options, target, checks);
  show(observer, "lower", model);
  account.made("lower", model);
  target = target::legalise(model, options.target);
  show(observer, "target", model);
  checks.onnx(model, "legalise");
  account.made("target", model);
  run_passes(model, options, target, checks, report);
  account.made("passes", model);
  describe(model, options, target);
  onnx::name_values(model);
  onnx::verify(model, "compile");
  show(observer, "passes", model);
  account.made("names", model);
  return model;
}

// The program without the equations that are left out: those are nodes of another domain.
onnx::Model compile_rest(const front::Module& module, const LeftOut& left, const Options& options,
                         Report* report, Observer* observer) {
  left.refuse_problems();
  if (options.lowerings.empty() && !options.auto_functions && left.empty() && !observer) {
    return run_stages(module, options, report, nullptr);
  }
  Options given = options;
  given.lowerings = by_user_name(options.lowerings);
  for (const Unsupported& equation : left.list()) {
    given.lowerings.emplace(lower::user_name(equation.primitive), lower::custom_node);
  }
  front::Module prepared = with_user_names(module, [&](const front::Eqn& eqn) {
    return left.contains(eqn) || options.lowerings.contains(eqn.primitive);
  });
  if (options.auto_functions) {
    prepared.functions[0] = front::with_repeats_marked(std::move(prepared.functions.at(0)));
  }
  if (observer) prepared = front::flattened(prepared);
  return run_stages(prepared, given, report, observer);
}

// Each attempt leaves out what the error of the last one was about.
constexpr int kMostAttempts = 32;

}  // namespace

bool knows(std::string_view primitive) {
  return axis::is_translated(primitive) || axis::find_pointwise(primitive) != nullptr ||
         lower::find_row(primitive, onnx::kNewestOpset) != nullptr;
}

onnx::Model compile(const front::Module& module, const Options& options, Report* report,
                    Observer* observer) {
  if (options.opset < onnx::kOldestOpset || options.opset > onnx::kNewestOpset) {
    throw Error("E011", fmt::format("opset {} is out of range", options.opset))
        .help(fmt::format("choose an opset from {} to {}", onnx::kOldestOpset, onnx::kNewestOpset));
  }
  LeftOut left(module, options.opset, options.lowerings);
  std::optional<Error> first;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    try {
      onnx::Model model = compile_rest(module, left, options, report, observer);
      if (first && !options.custom_ops) break;
      if (report) report->unsupported = left.list();
      return model;
    } catch (const Error& error) {
      if (error.code() == kLimitCode) throw;  // the program has not been looked at to its end
      if (!first || options.custom_ops) first = error;
      if (!left.add(error)) break;
    }
  }
  if (report) report->unsupported = left.list();
  throw with_others(*std::move(first),
                    options.custom_ops ? std::vector<Unsupported>{} : left.list());
}

}  // namespace jaxport::compile

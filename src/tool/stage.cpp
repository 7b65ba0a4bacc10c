// SPDX-License-Identifier: Apache-2.0
#include "tool/stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "axis/graph/graph.h"
#include "compile/compile.h"
#include "front/text.h"
#include "lower/lower.h"
#include "onnx/walk.h"
#include "pass/optimise.h"
#include "pass/pass.h"
#include "target/average_pool.h"
#include "target/cast_order.h"
#include "target/empty_constant.h"
#include "target/empty_product.h"
#include "target/exact.h"
#include "target/f64_transpose.h"
#include "target/fast_form.h"
#include "target/nan_order.h"
#include "target/neutral.h"
#include "target/one_element_norm.h"
#include "target/scale.h"
#include "target/scan_loop.h"
#include "target/top_k_ties.h"

namespace jaxport::tool {
namespace {

template <class Run>
std::string for_each_function(const front::Module& module, Run run) {
  std::string text;
  for (const front::Function& function : module.functions) {
    text += fmt::format("func @{}\n{}\n", function.name, run(function));
  }
  return text;
}

axis::Program axis_program(const front::Module& module, const front::Function& function) {
  axis::Program program = axis::build(module, function);
  axis::verify(program);
  return program;
}

std::vector<raise::Remark> raise_program(axis::Program& program, const StageOptions& options) {
  std::vector<raise::Remark> remarks = raise::raise(program, options.raise);
  axis::verify(program);
  return remarks;
}

std::string parsed(const front::Module& module, const StageOptions&) {
  return front::print(module);
}

// The program is verified when it is read; nothing is left to do.
std::string verified(const front::Module& module, const StageOptions&) {
  return for_each_function(module, [](const front::Function&) { return "verified\n"; });
}

std::string as_axis_graph(const front::Module& module, const StageOptions&) {
  return for_each_function(module, [&](const front::Function& function) {
    return axis::print(axis_program(module, function));
  });
}

std::string raised(const front::Module& module, const StageOptions& options) {
  return for_each_function(module, [&](const front::Function& function) {
    axis::Program program = axis_program(module, function);
    const std::vector<raise::Remark> remarks = raise_program(program, options);
    std::string text = axis::print(program);
    if (!options.remarks) return text;
    for (const raise::Remark& remark : remarks) {
      text += fmt::format("// {}: not raised: {}\n", remark.rule, remark.reason);
    }
    return text;
  });
}

onnx::Model lower_function(const front::Module& module, const front::Function& function,
                           const StageOptions& options) {
  axis::Program program = axis_program(module, function);
  raise_program(program, options);
  return lower::lower(program, {options.opset, function.name, options.target});
}

std::string lowered(const front::Module& module, const StageOptions& options) {
  return for_each_function(module, [&](const front::Function& function) {
    onnx::Model model = lower_function(module, function, options);
    onnx::name_values(model);
    return onnx::print(model);
  });
}

std::string legalised(const front::Module& module, const StageOptions& options) {
  return for_each_function(module, [&](const front::Function& function) {
    onnx::Model model = lower_function(module, function, options);
    target::legalise(model, options.target);
    onnx::name_values(model);
    onnx::verify(model, "target");
    return onnx::print(model);
  });
}

std::string compiled(const front::Module& module, const StageOptions& options) {
  return for_each_function(module, [&](const front::Function& function) {
    front::Module single;
    single.dims = module.dims;
    single.locations = module.locations;
    single.functions = {function};
    compile::Options compile{options.opset, function.name, options.raise, options.target};
    compile.auto_functions = options.auto_functions;
    return onnx::print(compile::compile(single, compile));
  });
}

constexpr Stage kStages[] = {
    {"--parse", "print the program as it was read", parsed},
    {"--verify", "check the program", verified},
    {"--axis", "print the axis graph", as_axis_graph},
    {"--raise", "print the axis graph after raising", raised},
    {"--lower", "print the ONNX model as it is lowered, in any dtype", lowered},
    {"--legalise", "print the ONNX model in dtypes that the target runs", legalised},
    {"--passes", "print the finished ONNX model", compiled},
};

// --- one pass on a model

struct TargetRewrite {
  const char* name;
  void (*run)(onnx::Model&, const target::Target&);
};
constexpr TargetRewrite kRewrites[] = {
    {"move_constants_inwards",
     [](onnx::Model& model, const target::Target&) { pass::move_constants_inwards(model); }},
    {"legalise",
     [](onnx::Model& model, const target::Target& target) { target::legalise(model, target); }},
    {"make_exact",
     [](onnx::Model& model, const target::Target& target) { target::make_exact(model, target); }},
    {"cast_before_transposing",
     [](onnx::Model& model, const target::Target&) { target::cast_before_transposing(model); }},
    {"write_fast_forms",
     [](onnx::Model& model, const target::Target& target) {
       target::write_fast_forms(model, target);
     }},
    {"keep_f64_transposes",
     [](onnx::Model& model, const target::Target&) { target::keep_f64_transposes(model); }},
    {"keep_nearly_neutral",
     [](onnx::Model& model, const target::Target&) { target::keep_nearly_neutral(model); }},
    {"pad_before_averaging",
     [](onnx::Model& model, const target::Target&) { target::pad_before_averaging(model); }},
    {"guard_norms_of_one",
     [](onnx::Model& model, const target::Target&) { target::guard_norms_of_one(model); }},
    {"fill_empty_constants",
     [](onnx::Model& model, const target::Target&) { target::fill_empty_constants(model); }},
    {"compare_by_less",
     [](onnx::Model& model, const target::Target&) { target::compare_by_less(model); }},
    {"order_ties", [](onnx::Model& model, const target::Target&) { target::order_ties(model); }},
    {"write_scans_as_loops",
     [](onnx::Model& model, const target::Target&) { target::write_scans_as_loops(model); }},
    {"keep_scales", [](onnx::Model& model, const target::Target&) { target::keep_scales(model); }},
    {"compute_in_f16",
     [](onnx::Model& model, const target::Target& target) {
       target::reduce_precision(model, target, {.dtype = DType::kF16});
     }},
    {"compute_in_bf16",
     [](onnx::Model& model, const target::Target& target) {
       target::reduce_precision(model, target, {.dtype = DType::kBF16});
     }},
    {"guard_empty_products",
     [](onnx::Model& model, const target::Target&) { target::guard_empty_products(model); }},
};

// Lowering makes constants without names. A model in a file has a name for each; those that start
// with "_" stand for none.
void forget_names(onnx::Model& model) {
  onnx::for_each_graph(model.graph, [&](const onnx::Graph& graph) {
    for (const onnx::Initializer& constant : graph.initializers) {
      std::string& name = model.values[constant.value].name;
      if (name.starts_with('_')) name.clear();
    }
  });
}

}  // namespace

std::span<const Stage> all_stages() { return kStages; }

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const pass::Pass& pass : pass::pipeline()) names.emplace_back(pass.name);
  for (const pass::Pass& pass : pass::passes_for_any_model()) {
    if (std::ranges::find(names, pass.name) == names.end()) names.emplace_back(pass.name);
  }
  for (const TargetRewrite& rewrite : kRewrites) names.emplace_back(rewrite.name);
  return names;
}

std::string run_pass(std::string_view name, onnx::Model model, const StageOptions& options) {
  forget_names(model);
  const auto passes = {pass::pipeline(), pass::passes_for_any_model()};
  const pass::Pass* chosen = nullptr;
  for (const std::span<const pass::Pass> some : passes) {
    const auto found = std::ranges::find(some, name, &pass::Pass::name);
    if (chosen == nullptr && found != some.end()) chosen = &*found;
  }
  if (chosen != nullptr) chosen->run(model);
  for (const TargetRewrite& rewrite : kRewrites) {
    if (rewrite.name == name) rewrite.run(model, options.target);
  }
  onnx::name_values(model);
  onnx::verify(model, name);
  return onnx::print(model);
}

}  // namespace jaxport::tool

// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "axis/graph/graph.h"
#include "axis/graph/pointwise.h"
#include "common.h"
#include "edit.h"
#include "eval/eval.h"
#include "jaxport/error.h"
#include "judge.h"
#include "model.h"
#include "raise/engine/raised.h"

namespace jaxport::fuzz {
namespace {

constexpr std::uint64_t kValueSeed = 5;

// A program in one dtype, raised; or what went wrong on the way.
struct Raised {
  axis::Program program;
  std::vector<std::string> names;
  DType narrowest = DType::kF64;
  std::string problem;
  bool is_refused = false;  // an error that a user would get, too
};

// The narrowest float among nodes that may round once where the program as written rounds often.
DType narrowest_of(const axis::Program& program) {
  DType narrowest = DType::kF64;
  for (const axis::Node* node : axis::topological(program)) {
    const bool rounds_once = raise::is_raised(*node) || node->kind == axis::Kind::kContract ||
                             node->kind == axis::Kind::kReduce;
    if (!rounds_once) continue;
    const auto note = [&](DType dtype) {
      const int bits = mantissa_bits(dtype);
      if (bits > 0 && bits < mantissa_bits(narrowest)) narrowest = dtype;
    };
    note(node->dtype);
    for (const axis::Edge& edge : node->edges) {
      const bool is_converted = edge.node->is(axis::Kind::kPointwise, "convert_element_type");
      note(is_converted ? edge.node->edges[0].node->dtype : edge.node->dtype);
    }
  }
  for (const axis::Program* region : axis::regions(program)) {
    const DType inside = narrowest_of(*region);
    if (mantissa_bits(inside) < mantissa_bits(narrowest)) narrowest = inside;
  }
  return narrowest;
}

Raised raised(const front::Module& module, const Stage& stage) {
  Raised result;
  std::string_view step = "build";
  try {
    result.program = axis::build(module, module.functions[0]);
    axis::verify(result.program);
    step = "raise";
    raise::raise(result.program, stage.options, stage.passes);
    axis::verify(result.program);
    for (const auto& node : raise::raised_nodes(result.program)) {
      result.names.push_back(node.name);
    }
    result.narrowest = narrowest_of(result.program);
  } catch (const Error& error) {
    result.is_refused = step == "build" && error.code() != "BUG";
    result.problem = fmt::format("{} throws {}: {}", step, error.code(), error.message());
  } catch (const std::exception& error) {
    result.problem = fmt::format("{} throws {}", step, error.what());
  }
  std::ranges::sort(result.names);
  const auto repeated = std::ranges::unique(result.names);
  result.names.erase(repeated.begin(), repeated.end());
  return result;
}

// One program in both dtypes.
struct Pair {
  front::Module f64, f32;
  const front::Function& of(DType dtype) const {
    return dtype == DType::kF64 ? f64.functions[0] : f32.functions[0];
  }
};

// The shapes of elementwise equations fit for every value of the symbols. The evaluator sees single
// sizes alone.
bool is_well_typed(const front::Function& function) {
  return std::ranges::all_of(function.eqns, [&](const front::Eqn& eqn) {
    if (!axis::find_pointwise(eqn.primitive) || eqn.out.size() != 1) return true;
    const Dims& out = function.type(eqn.out[0]).shape;
    std::vector<bool> is_given(out.size(), false);
    for (front::ValueId id : eqn.in) {
      const Dims& in = function.type(id).shape;
      if (in.empty()) continue;
      if (in.size() != out.size()) return false;
      for (std::size_t i = 0; i < in.size(); ++i) {
        if (!(in[i] == out[i]) && !in[i].is_one()) return false;
        is_given[i] = is_given[i] || in[i] == out[i];
      }
    }
    return std::ranges::all_of(is_given, std::identity{});
  });
}

std::optional<std::vector<Tensor>> reference(const front::Function& function,
                                             const std::vector<Tensor>& inputs) {
  try {
    return eval::run(function, inputs);
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool can_evaluate(const front::Module& module, const std::vector<Tensor>& inputs) {
  try {
    axis::evaluate(axis::build(module, module.functions[0]), inputs, nullptr);
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::optional<Difference> compare(const Pair& pair, const Raised& raised, DType dtype,
                                  const std::vector<Tensor>& inputs,
                                  const std::vector<Tensor>& plain, std::string_view kind) {
  const auto told = [&](std::string what, double size) {
    return Difference{fmt::format("{}, {}: {}", name_of(dtype), kind, what), size, dtype, inputs};
  };
  std::vector<Tensor> results;
  try {
    results = axis::evaluate(raised.program, inputs, expand_as_runtime);
  } catch (const Error& error) {
    // An index that leaves its axis is no matter of raising.
    if (!can_evaluate(dtype == DType::kF64 ? pair.f64 : pair.f32, inputs)) return std::nullopt;
    return told(fmt::format("evaluation throws {}: {}", error.code(), error.message()), kInf);
  }
  const Runs runs{pair.of(DType::kF64), pair.of(DType::kF32), dtype, inputs, plain, results,
                  raised.names,         raised.narrowest};
  if (auto fault = judge(runs)) return told(fault->what, fault->size);
  return std::nullopt;
}

std::vector<std::string> merged(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  std::ranges::sort(a);
  const auto repeated = std::ranges::unique(a);
  a.erase(repeated.begin(), repeated.end());
  return a;
}

// f32 runs see literals, limits and what f64 rules do not take; the kinds that matter for them.
bool is_for_f32(const ValueKind& kind) {
  using enum Numbers;
  return kind.numbers == kOrdinary || kind.numbers == kHuge || kind.numbers == kLarge ||
         kind.numbers == kInfinite;
}

}  // namespace

Checker::Checker(const front::Module& module, Stage stage)
    : stage_(std::move(stage)), dims_(module.dims) {}

front::Module Checker::module_of(const front::Function& function) const {
  front::Module module;
  module.dims = dims_;
  module.functions.push_back(function);
  for (front::Eqn& eqn : module.functions[0].eqns) eqn.location = front::kNoLocation;
  return module;
}

namespace {

// The check of one function, step by step.
class Run {
 public:
  Run(const Checker& checker, const front::Function& function)
      : checker_(checker),
        pair_{checker.module_of(with_dtype(function, DType::kF32, DType::kF64)),
              checker.module_of(function)} {}

  Verdict run() {
    Verdict verdict;
    if (!is_sound()) return verdict;
    const Raised f32 = raised(pair_.f32, checker_.stage()),
                 f64 = raised(pair_.f64, checker_.stage());
    if (f32.is_refused || f64.is_refused) return verdict;
    verdict.is_valid = true;
    verdict.raised = merged(f32.names, f64.names);
    for (const Raised* one : {&f32, &f64}) {
      if (!one->problem.empty()) {
        verdict.difference =
            Difference{one->problem, kInf, one == &f32 ? DType::kF32 : DType::kF64, {}};
        return verdict;
      }
    }
    verdict.difference = at_all_kinds(f32, f64);
    return verdict;
  }

  std::optional<Difference> at(const std::vector<Tensor>& inputs, DType dtype) {
    if (!is_sound()) return std::nullopt;
    const Raised one = raised(dtype == DType::kF64 ? pair_.f64 : pair_.f32, checker_.stage());
    if (!one.problem.empty()) return std::nullopt;
    const auto plain = reference(pair_.of(dtype), inputs);
    if (!plain) return std::nullopt;
    return compare(pair_, one, dtype, inputs, *plain, "given");
  }

 private:
  bool is_sound() const {
    if (!is_well_typed(pair_.of(DType::kF32))) return false;
    try {
      front::verify(pair_.f32);
      // Another size shows what fits by chance.
      return std::ranges::all_of(std::array{kinds()[0], kinds()[2]}, [&](const ValueKind& kind) {
        const auto values = inputs(pair_.of(DType::kF32), kind, kValueSeed);
        return reference(pair_.of(DType::kF32), values).has_value();
      });
    } catch (const Error&) {
      return false;
    }
  }

  std::optional<Difference> at_all_kinds(const Raised& f32, const Raised& f64) const {
    // A node of 16 bits computes in f32, also where the rest of the program became f64.
    const bool is_narrow = mantissa_bits(f64.narrowest) < mantissa_bits(DType::kF32);
    for (const ValueKind& kind : kinds()) {
      const bool is_first = &kind == &kinds()[0];
      if (!is_narrow && (is_first || !f64.names.empty() || checker_.stage().every_kind)) {
        if (auto found = at_kind(f64, DType::kF64, kind)) return found;
      }
      if (!f32.names.empty() && (is_for_f32(kind) || is_narrow || f64.names != f32.names)) {
        if (auto found = at_kind(f32, DType::kF32, kind)) return found;
      }
    }
    return std::nullopt;
  }

  std::optional<Difference> at_kind(const Raised& raised, DType dtype,
                                    const ValueKind& kind) const {
    std::vector<Tensor> values;
    try {
      values = inputs(pair_.of(dtype), kind, kValueSeed);
    } catch (const Error&) {  // a size would be negative
      return std::nullopt;
    }
    const auto plain = reference(pair_.of(dtype), values);
    if (!plain) return std::nullopt;
    return compare(pair_, raised, dtype, values, *plain, kind.name);
  }

  const Checker& checker_;
  Pair pair_;
};

}  // namespace

Verdict Checker::check(const front::Function& function) const { return Run(*this, function).run(); }

std::optional<Difference> Checker::check_at(const front::Function& function,
                                            const std::vector<Tensor>& inputs, DType dtype) const {
  return Run(*this, function).at(inputs, dtype);
}

}  // namespace jaxport::fuzz

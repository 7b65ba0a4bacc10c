// SPDX-License-Identifier: Apache-2.0
#include "target/plan.h"

#include <algorithm>

#include "onnx/check.h"
#include "target/kernels.h"

namespace jaxport::target {
namespace {

using onnx::Formal;
using onnx::Model;
using onnx::Node;
using onnx::Schema;
using onnx::ValueId;

struct Binding {
  std::string_view variable;
  DType dtype;
  friend bool operator==(const Binding&, const Binding&) = default;
};

bool is_variable(const Schema& schema, std::string_view type) {
  return std::ranges::find(schema.types, type, &onnx::TypeConstraint::variable) !=
         schema.types.end();
}

// The dtype of each type variable of a node. A variable that varies (the results of Loop) has
// several.
class Signature {
 public:
  Signature(const Model& model, const Schema& schema, const Node& node) : schema_(schema) {
    bind(model, schema.inputs, node.in);
    bind(model, schema.outputs, node.out);
  }
  const std::vector<Binding>& bindings() const { return bindings_; }

  // The variable that the op computes in; others are masks, indices, exponents.
  std::string_view main_variable() const {
    const std::string_view result = schema_.outputs.empty() ? "" : schema_.outputs[0].type;
    const bool is_operand =
        std::ranges::find(schema_.inputs, result, &Formal::type) != schema_.inputs.end();
    return is_operand || schema_.inputs.empty() ? result : schema_.inputs[0].type;
  }

 private:
  void bind(const Model& model, std::span<const Formal> formals, const std::vector<ValueId>& ids) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] == onnx::kAbsent || !model.values[ids[i]].type) continue;
      const Binding binding{onnx::formal_at(formals, i).type, model.values[ids[i]].type->dtype};
      if (!is_variable(schema_, binding.variable)) continue;
      if (std::ranges::find(bindings_, binding) == bindings_.end()) bindings_.push_back(binding);
    }
  }

  const Schema& schema_;
  std::vector<Binding> bindings_;
};

bool has_reduction(const Node& node) {
  const onnx::Attribute* attr = node.attr("reduction");
  return attr != nullptr && std::get<std::string>(attr->value) != "none";
}

// ONNX Runtime lists these kernels, but they fail when they run.
bool is_refused(Target target, const Node& node, DType dtype) {
  const bool is_scatter = node.op == "ScatterElements" || node.op == "ScatterND";
  const bool is_narrow = dtype == DType::kBool || dtype == DType::kF16 || dtype == DType::kBF16;
  return target == Target::kOnnxRuntime && is_scatter && is_narrow && has_reduction(node);
}

OpConduct conduct_of_node(const Node& node) {
  if (!has_reduction(node)) return conduct_of(node.op);
  const auto& reduction = std::get<std::string>(node.attr("reduction")->value);
  if (reduction == "add") return conduct_of("ReduceSum");
  return conduct_of(reduction == "mul" ? "ReduceProd" : "ReduceMax");
}

class Planner {
 public:
  Planner(const Schema& schema, const Node& node, Target target, const Signature& signature)
      : schema_(schema), node_(node), target_(target), signature_(signature) {}

  std::optional<Plan> plan(const Kernel& kernel) const {
    Plan plan;
    for (const Binding& binding : signature_.bindings()) {
      if (takes_dtype(kernel, binding.variable, binding.dtype)) continue;
      const auto widening = widened(kernel, binding);
      if (!widening || is_split(binding.variable)) return std::nullopt;
      plan.push_back(*widening);
    }
    return plan;
  }

 private:
  bool takes_dtype(const Kernel& kernel, std::string_view variable, DType dtype) const {
    return takes(kernel, variable, dtype) && takes({schema_.types}, variable, dtype) &&
           !is_refused(target_, node_, dtype);
  }

  bool is_split(std::string_view variable) const {
    return std::ranges::count(signature_.bindings(), variable, &Binding::variable) > 1;
  }

  std::optional<Widening> widened(const Kernel& kernel, const Binding& binding) const {
    OpConduct conduct = conduct_of_node(node_);
    if (binding.variable != signature_.main_variable())
      conduct = {node_.op, Conduct::kValues, true};
    const auto form = wide_form(conduct.integers, binding.dtype, [&](DType dtype) {
      return takes_dtype(kernel, binding.variable, dtype);
    });
    if (!form) return std::nullopt;
    const bool exact = form->code == Code::kCast && is_exact(conduct, binding.dtype, form->dtype);
    return Widening{binding.variable, binding.dtype, *form, exact};
  }

  const Schema& schema_;
  const Node& node_;
  Target target_;
  const Signature& signature_;
};

}  // namespace

std::optional<Plan> plan_for(const Model& model, const Node& node, Target target) {
  const Schema& schema = onnx::require_schema(node.op, static_cast<int>(model.opset()));
  if (schema.op == "Constant") return Plan{};  // ONNX Runtime turns it into an initializer
  const Signature signature(model, schema, node);
  const Planner planner(schema, node, target, signature);
  std::optional<Plan> best;
  for (const Kernel& kernel : kernels_of(target, schema)) {
    std::optional<Plan> plan = planner.plan(kernel);
    if (plan && (!best || plan->size() < best->size())) best = std::move(plan);
  }
  return best;
}

const Widening* widening_of(const Plan& plan, std::span<const Formal> formals, std::size_t index) {
  const std::string_view variable = onnx::formal_at(formals, index).type;
  const auto found = std::ranges::find(plan, variable, &Widening::variable);
  return found == plan.end() ? nullptr : &*found;
}

}  // namespace jaxport::target

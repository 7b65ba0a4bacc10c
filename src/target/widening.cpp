// SPDX-License-Identifier: Apache-2.0
#include "target/widening.h"

#include <algorithm>

#include "onnx/attributes.h"
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
  int bits;  // of the operands
};

bool is_variable(const Schema& schema, std::string_view type) {
  return std::ranges::find(schema.types, type, &onnx::TypeConstraint::variable) !=
         schema.types.end();
}

// The dtype of each type variable of a node. A variable that varies (the results of Loop) has
// several.
class Signature {
 public:
  Signature(const Model& model, const Schema& schema, const Node& node,
            const Magnitudes& magnitudes)
      : model_(model), schema_(schema) {
    for (std::size_t i = 0; i < node.in.size(); ++i) {
      if (node.in[i] != onnx::kAbsent)
        bind(schema.inputs, i, node.in[i], magnitudes.bits(node.in[i]));
    }
    for (std::size_t i = 0; i < node.out.size(); ++i) {
      if (node.out[i] != onnx::kAbsent) bind(schema.outputs, i, node.out[i], 0);
    }
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
  void bind(std::span<const Formal> formals, std::size_t index, ValueId id, int bits) {
    const std::string_view variable = onnx::formal_at(formals, index).type;
    if (!model_.values[id].type || !is_variable(schema_, variable)) return;
    const DType dtype = model_.values[id].type->dtype;
    const auto known = std::ranges::find_if(bindings_, [&](const Binding& binding) {
      return binding.variable == variable && binding.dtype == dtype;
    });
    if (known == bindings_.end()) {
      bindings_.push_back({variable, dtype, bits});
    } else {
      known->bits = std::max(known->bits, bits);
    }
  }

  const Model& model_;
  const Schema& schema_;
  std::vector<Binding> bindings_;
};

bool has_reduction(const Node& node) { return text_attribute(node, "reduction", "none") != "none"; }

// ONNX Runtime has these kernels, but they are right only while operands have at most so many bits;
// with 0 bits they never are.
struct Flaw {
  std::string_view op;
  DType dtype;
  int bits;
};
constexpr Flaw kFlaws[] = {
    // Scores and weights are rounded to f16, whatever softmax_precision says.
    {"Attention", DType::kF16, 0},
    // Vectorised comparisons look at the lower half of i64 only.
    {"Clip", DType::kI64, 31},
    {"Max", DType::kI64, 31},
    {"Min", DType::kI64, 31},
    {"ReduceMax", DType::kI64, 31},
    {"ReduceMin", DType::kI64, 31},
    {"Sign", DType::kI64, 31},
    // The sign of NaN is 0.
    {"Sign", DType::kF16, 0},
    {"Sign", DType::kBF16, 0},
    // 1 - sigmoid(-x) for negative x keeps no digits of small results.
    {"Sigmoid", DType::kF64, 0},
    // The remainder with the sign of the dividend (fmod) is computed in f64.
    {"Mod", DType::kI64, 53},
    {"Mod", DType::kU64, 53},
    // Sums and products are computed in f64 and saturate. Bounds leave room for 2^21 elements.
    {"ReduceProd", DType::kI32, 0},
    {"ReduceProd", DType::kI64, 0},
    {"ReduceSum", DType::kI32, 10},
    {"ReduceSum", DType::kI64, 32},
};

// Whether a kernel that ONNX Runtime lists fails or gives wrong numbers.
bool is_flawed(const Node& node, DType dtype, int bits) {
  const bool is_scatter = node.op == "ScatterElements" || node.op == "ScatterND";
  const bool is_narrow = dtype == DType::kBool || dtype == DType::kF16 || dtype == DType::kBF16;
  if (is_scatter && is_narrow && has_reduction(node)) return true;
  if (node.op == "Mod" && node.attr("fmod") == nullptr) return false;
  return std::ranges::any_of(kFlaws, [&](const Flaw& flaw) {
    return flaw.op == node.op && flaw.dtype == dtype && bits > flaw.bits;
  });
}

OpConduct conduct_of_node(const Node& node);

// OpenVINO keeps the bits of u32 in an i32: constants, comparisons, quotients and conversions of
// numbers from 2^31 on are wrong. Arithmetic in i8 and u8 saturates.
bool is_flawed_in_openvino(const Node& node, DType dtype, int bits) {
  if (dtype == DType::kU32) return bits > 31 && node.op != "Cast";
  const bool is_bitwise = node.op.starts_with("Bitwise");
  return (dtype == DType::kI8 || dtype == DType::kU8) && !is_bitwise &&
         conduct_of_node(node).integers == Conduct::kWraps;
}

OpConduct conduct_of_node(const Node& node) {
  const bool is_scatter = node.op == "ScatterElements" || node.op == "ScatterND";
  if (!has_reduction(node)) {
    return is_scatter ? OpConduct{node.op, Conduct::kCopies, false} : conduct_of(node.op);
  }
  const std::string_view reduction = text_attribute(node, "reduction", "none");
  if (reduction == "add") return conduct_of("ReduceSum");
  return conduct_of(reduction == "mul" ? "ReduceProd" : "ReduceMax");
}

class Widener {
 public:
  Widener(const Schema& schema, const Node& node, const Target& target, const Signature& signature)
      : schema_(schema), node_(node), target_(target), signature_(signature) {}

  std::optional<Widenings> for_kernel(const Kernel& kernel) const {
    Widenings widenings;
    for (const Binding& binding : signature_.bindings()) {
      if (takes_dtype(kernel, binding, binding.dtype)) continue;
      const auto widening = widened(kernel, binding);
      if (!widening || is_split(binding.variable)) return std::nullopt;
      widenings.push_back(*widening);
    }
    return widenings;
  }

 private:
  bool takes_dtype(const Kernel& kernel, const Binding& binding, DType dtype) const {
    const std::string_view variable = binding.variable;
    if (!takes(kernel.types, variable, dtype) || !takes(schema_.types, variable, dtype))
      return false;
    if (target_.runtime == Runtime::kOnnx) return true;
    if (target_.runtime == Runtime::kOpenVino)
      return !is_flawed_in_openvino(node_, dtype, binding.bits);
    return variable != signature_.main_variable() || !is_flawed(node_, dtype, binding.bits);
  }

  bool is_split(std::string_view variable) const {
    return std::ranges::count(signature_.bindings(), variable, &Binding::variable) > 1;
  }

  std::optional<Widening> widened(const Kernel& kernel, const Binding& binding) const {
    if (node_.op == "Cast") return std::nullopt;  // values are widened by nothing else
    OpConduct conduct = conduct_of_node(node_);
    if (binding.variable != signature_.main_variable())
      conduct = {node_.op, Conduct::kValues, true};
    const bool has_64_bits = target_.runtime != Runtime::kOpenVino;  // it computes in 32
    const auto form = wide_form(conduct.integers, binding.dtype, [&](DType dtype) {
      return (has_64_bits || byte_width(dtype) < 8) && takes_dtype(kernel, binding, dtype);
    });
    if (!form) return std::nullopt;
    const bool exact = form->code == Code::kCast && is_exact(conduct, binding.dtype, form->dtype);
    return Widening{binding.variable, binding.dtype, *form, exact};
  }

  const Schema& schema_;
  const Node& node_;
  const Target& target_;
  const Signature& signature_;
};

}  // namespace

std::optional<Widenings> widenings_for(const Model& model, const Node& node, const Target& target,
                                       const Magnitudes& magnitudes) {
  const Schema& schema = onnx::require_schema(node.op, static_cast<int>(model.opset()));
  if (schema.op == "Constant") return Widenings{};  // ONNX Runtime turns it into an initializer
  const Signature signature(model, schema, node, magnitudes);
  const Widener widener(schema, node, target, signature);
  std::optional<Widenings> best;
  for (const Kernel& kernel : kernels_of(target, schema)) {
    std::optional<Widenings> widenings = widener.for_kernel(kernel);
    if (widenings && (!best || widenings->size() < best->size())) best = std::move(widenings);
  }
  return best;
}

const Widening* widening_of(const Widenings& widenings, std::span<const Formal> formals,
                            std::size_t index) {
  const std::string_view variable = onnx::formal_at(formals, index).type;
  const auto found = std::ranges::find(widenings, variable, &Widening::variable);
  return found == widenings.end() ? nullptr : &*found;
}

}  // namespace jaxport::target

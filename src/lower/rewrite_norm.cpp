// SPDX-License-Identifier: Apache-2.0
// Which op a norm is, where there is a choice.
#include <algorithm>
#include <cmath>

#include "lower/norm.h"
#include "lower/rewrite.h"

namespace jaxport::lower {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Node;
using axis::Use;

// Earlier versions of GroupNormalization have one scale for each group.
constexpr int kGroupNormalization = 21;
// Exponents of the normal numbers of f16, as frexp() counts them.
constexpr int kLeastExponent = -13, kLargestExponent = 16;

bool has(const Node& node, std::string_view flag) { return node.get<bool>(flag); }

bool fits_f16(double value) {
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);
  const double digits = std::ldexp(mantissa, mantissa_bits(DType::kF16) + 1);
  return value == 0 || (std::trunc(digits) == digits && kLeastExponent <= exponent &&
                        exponent <= kLargestExponent);
}

bool is_convert(const Use& use) { return use.node->is(Kind::kPointwise, "convert_element_type"); }

// The narrow value that a value of f32 is, or an empty Use.
Use narrowed(Graph& graph, const Use& use, DType dtype) {
  if (is_convert(use) && use.node->edges[0].node->dtype == dtype) return graph.child(use, 0);
  if (!graph.is_constant(use) || dtype != DType::kF16) return {};
  for (std::int64_t i = 0; i < use.node->data.size(); ++i) {
    if (!fits_f16(use.node->data.at(i))) return {};
  }
  return graph.pointwise("convert_element_type", {use}, dtype);
}

std::vector<Use> narrowed_operands(Graph& graph, const Use& norm, DType dtype) {
  std::vector<Use> operands;
  for (const Use& operand : graph.children(norm)) {
    operands.push_back(narrowed(graph, operand, dtype));
    if (!operands.back()) return {};
  }
  return operands;
}

bool is_worth_it(DType dtype, target::Target target) {
  return dtype == DType::kF16 ||
         (dtype == DType::kBF16 && target::preferences(target).has_fast_bf16_norm);
}

}  // namespace

Use native_norm(Graph& graph, const Use& use, int opset) {
  const Node& node = *use.node;
  if (!node.is(Kind::kMacro, "norm") || node.attr("native") || opset < kGroupNormalization) {
    return {};
  }
  const NormLabels labels(node);
  if (!labels.is_instance() || labels.inner.empty() || labels.spatial().empty()) return {};
  front::Attrs attrs = node.attrs;
  const auto place = std::ranges::find(attrs, "scale", &front::Attrs::value_type::first);
  attrs.insert(place, {"native", front::Attr{true}});
  return graph.macro("norm", graph.children(use), use.flat(), node.dtype,
                     {{"a", graph.role(use, "a")}}, std::move(attrs));
}

Use narrow_norm(Graph& graph, const Use& use, const axis::UseCounts& uses, int opset,
                target::Target target) {
  const DType dtype = use.node->dtype;
  if (!is_convert(use) || !is_worth_it(dtype, target)) return {};
  const Use norm = graph.child(use, 0);
  const Node& node = *norm.node;
  if (!node.is(Kind::kMacro, "norm") || node.dtype != DType::kF32 || uses[&node] > 1) return {};
  const std::string_view op = has(node, "center") ? "LayerNormalization" : "RMSNormalization";
  if (NormLabels(node).is_instance() || !target::runs(target, op, opset, dtype)) return {};
  // By the specification scale and bias come after the rounding.
  const bool has_operands = has(node, "scale") || has(node, "bias");
  if (has_operands && target == target::Target::kOnnx) return {};
  std::vector<Use> operands = narrowed_operands(graph, norm, dtype);
  if (operands.empty()) return {};
  return graph.macro("norm", std::move(operands), norm.flat(), dtype,
                     {{"a", graph.role(norm, "a")}}, node.attrs);
}

}  // namespace jaxport::lower

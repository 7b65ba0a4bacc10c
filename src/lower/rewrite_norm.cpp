// SPDX-License-Identifier: Apache-2.0
// A norm in f16 where it is written in f32.
#include <cmath>

#include "axis/expr.h"
#include "lower/norm.h"
#include "lower/rewrite.h"

namespace jaxport::lower {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Node;
using axis::Use;
using raise::NormOp;

// Exponents of the normal numbers of f16, as frexp() counts them.
constexpr int kLeastExponent = -13, kLargestExponent = 16;

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
  return convert(use, dtype);
}

// ONNX Runtime takes four times as long for a norm of bf16 as for one of f32 between two Casts.
bool is_worth_it(DType dtype, target::Target target) {
  return dtype == DType::kF16 || (dtype == DType::kBF16 && target == target::Target::kOnnx);
}

}  // namespace

Use narrow_norm(Graph& graph, const Use& use, const axis::UseCounts& uses, int opset,
                target::Target target) {
  const DType dtype = use.node->dtype;
  if (!is_convert(use) || !is_worth_it(dtype, target)) return {};
  const Use norm = graph.child(use, 0);
  const Node& node = *norm.node;
  if (!raise::is<NormOp>(node) || node.dtype != DType::kF32 || uses[&node] > 1) return {};
  auto op = raise::read<NormOp>(norm);
  const std::string_view name = op.center ? "LayerNormalization" : "RMSNormalization";
  const bool is_instance = NormLabels(raise::read<NormOp>(node), node.sizes).is_instance();
  if (is_instance || !target::runs(target, name, opset, dtype)) return {};
  // By the specification scale and bias come after the rounding.
  if ((op.scale || op.bias) && target == target::Target::kOnnx) return {};
  for (Use* operand : {&op.x, &op.scale, &op.bias}) {
    if (!*operand) continue;
    *operand = narrowed(graph, *operand, dtype);
    if (!*operand) return {};
  }
  return raise::make(std::move(op), norm.flat());
}

}  // namespace jaxport::lower

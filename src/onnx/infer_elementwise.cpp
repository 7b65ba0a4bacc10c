// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "onnx/infer.h"

namespace jaxport::onnx {

void same_as_input(Inference& n) {
  if (const Dims* shape = n.shape(0)) n.set(0, *shape);
}

namespace {

void broadcast_inputs(Inference& n) {
  Dims out;
  for (std::size_t i = 0; i < n.input_count(); ++i) {
    const Dims* shape = n.shape(i);
    if (shape == nullptr) return;
    out = broadcast(n, out, *shape);
  }
  n.set(0, std::move(out));
}

void dropout(Inference& n) {
  same_as_input(n);
  if (const Dims* shape = n.shape(0)) n.set(1, *shape);
}

// The dtype of a quantized result is that of the zero point, else the attribute's, else uint8.
void quantize_linear(Inference& n) {
  same_as_input(n);
  const std::int64_t stated = n.attr("output_dtype", 0);
  if (n.has(2)) return;
  const auto dtype = stated != 0 ? dtype_from_onnx(static_cast<int>(stated)) : DType::kU8;
  if (dtype) n.set_dtype(0, *dtype);
}

void dequantize_linear(Inference& n) {
  same_as_input(n);
  const std::int64_t stated = n.attr("output_dtype", 0);
  const auto dtype = stated != 0 ? dtype_from_onnx(static_cast<int>(stated)) : n.dtype(1);
  if (dtype) n.set_dtype(0, *dtype);
}

constexpr InferenceRule kInferElementwiseRules[] = {
    {"Abs", same_as_input},
    {"Acos", same_as_input},
    {"Acosh", same_as_input},
    {"Add", broadcast_inputs},
    {"And", broadcast_inputs},
    {"Asin", same_as_input},
    {"Asinh", same_as_input},
    {"Atan", same_as_input},
    {"Atanh", same_as_input},
    {"Bernoulli", same_as_input},
    {"BitCast", same_as_input},
    {"BitShift", broadcast_inputs},
    {"BitwiseAnd", broadcast_inputs},
    {"BitwiseNot", same_as_input},
    {"BitwiseOr", broadcast_inputs},
    {"BitwiseXor", broadcast_inputs},
    {"Cast", same_as_input},
    {"CastLike", same_as_input},
    {"Ceil", same_as_input},
    {"Celu", same_as_input},
    {"Clip", same_as_input},
    {"Cos", same_as_input},
    {"Cosh", same_as_input},
    {"DequantizeLinear", dequantize_linear},
    {"Div", broadcast_inputs},
    {"Dropout", dropout},
    {"Elu", same_as_input},
    {"Equal", broadcast_inputs},
    {"Erf", same_as_input},
    {"Exp", same_as_input},
    {"Floor", same_as_input},
    {"Gelu", same_as_input},
    {"Greater", broadcast_inputs},
    {"GreaterOrEqual", broadcast_inputs},
    {"HardSigmoid", same_as_input},
    {"HardSwish", same_as_input},
    {"Identity", same_as_input},
    {"IsInf", same_as_input},
    {"IsNaN", same_as_input},
    {"LeakyRelu", same_as_input},
    {"Less", broadcast_inputs},
    {"LessOrEqual", broadcast_inputs},
    {"Log", same_as_input},
    {"Max", broadcast_inputs},
    {"Mean", broadcast_inputs},
    {"Min", broadcast_inputs},
    {"Mish", same_as_input},
    {"Mod", broadcast_inputs},
    {"Mul", broadcast_inputs},
    {"Neg", same_as_input},
    {"Not", same_as_input},
    {"Or", broadcast_inputs},
    {"PRelu", same_as_input},
    {"Pow", broadcast_inputs},
    {"QuantizeLinear", quantize_linear},
    {"RandomNormalLike", same_as_input},
    {"RandomUniformLike", same_as_input},
    {"Reciprocal", same_as_input},
    {"Relu", same_as_input},
    {"Round", same_as_input},
    {"Selu", same_as_input},
    {"Shrink", same_as_input},
    {"Sigmoid", same_as_input},
    {"Sign", same_as_input},
    {"Sin", same_as_input},
    {"Sinh", same_as_input},
    {"Softplus", same_as_input},
    {"Softsign", same_as_input},
    {"Sqrt", same_as_input},
    {"Sub", broadcast_inputs},
    {"Sum", broadcast_inputs},
    {"Swish", same_as_input},
    {"Tan", same_as_input},
    {"Tanh", same_as_input},
    {"ThresholdedRelu", same_as_input},
    {"Where", broadcast_inputs},
    {"Xor", broadcast_inputs},
};
static_assert(std::ranges::is_sorted(kInferElementwiseRules, {}, &InferenceRule::op));

}  // namespace

std::span<const InferenceRule> elementwise_rules() { return kInferElementwiseRules; }

}  // namespace jaxport::onnx

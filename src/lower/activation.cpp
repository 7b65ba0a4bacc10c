// SPDX-License-Identifier: Apache-2.0
// Raised scalar functions. Where the opset has no op for one, lowering expands it before it comes
// here.
#include <algorithm>

#include "lower/ctx.h"

namespace jaxport::lower {
namespace {

Results gelu_erf(Ctx& c) { return c.op.Gelu(c.in(0)); }
Results gelu_tanh(Ctx& c) { return c.op.Gelu(c.in(0), onnx::Args{{"approximate", "tanh"}}); }

// ONNX Runtime fuses this spelling; it has no kernel for Swish.
Results silu(Ctx& c) { return c.op.Mul(c.in(0), c.op.Sigmoid(c.in(0))); }

template <OpName Op>
Results with_alpha(Ctx& c) {
  return c.op.call(Op.text, c.operands(), {{"alpha", c.param<double>("alpha")}});
}

// ONNX has Celu in f32 only.
Results celu(Ctx& c) {
  const onnx::Args alpha{{"alpha", c.param<double>("alpha")}};
  return c.cast(c.op.Celu(c.cast(c.in(0), DType::kF32), alpha), c.out_type().dtype);
}

Results hard_sigmoid(Ctx& c) {
  return c.op.HardSigmoid(c.in(0), onnx::Args{{"alpha", c.param<double>("alpha")}, {"beta", 0.5}});
}

constexpr Row kRows[] = {
    // sorted by primitive
    {"celu", celu, 12},
    {"elu", with_alpha<"Elu">},
    {"gelu_erf", gelu_erf, 20},
    {"gelu_tanh", gelu_tanh, 20},
    {"hard_sigmoid", hard_sigmoid},
    {"hard_swish", same<"HardSwish">},
    {"leaky_relu", with_alpha<"LeakyRelu">},
    {"mish", same<"Mish">, 18},
    {"prelu", same<"PRelu">},
    {"relu", same<"Relu">},
    {"selu", same<"Selu">},
    {"sigmoid", same<"Sigmoid">},
    {"silu", silu},
    {"softplus", same<"Softplus">},
    {"softsign", same<"Softsign">},
    {"thresholded_relu", with_alpha<"ThresholdedRelu">},
};
static_assert(std::ranges::is_sorted(kRows, {}, &Row::primitive));

}  // namespace

std::span<const Row> activation_rows() { return kRows; }

}  // namespace jaxport::lower

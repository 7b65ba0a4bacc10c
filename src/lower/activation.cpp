// SPDX-License-Identifier: Apache-2.0
// Raised scalar functions. Where the opset has no op for one, lowering expands it before it comes
// here.
#include <algorithm>

#include "lower/formula.h"

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

// above * x for x > 0, below * expm1(x / width) for the others. ONNX Runtime's Elu, Celu and Selu
// subtract 1 from an exponential: near zero no digit is right.
struct Branches {
  double above = 1, below = 1, width = 1;
};
Value exponential_unit(Ctx& c, const Value& x, const Branches& of) {
  const auto times = [&](const Value& value, double factor) {
    return factor == 1 ? value : c.op.Mul(value, c.op.scalar_like(x, factor));
  };
  const Value negative = times(c.op.Min(x, c.op.scalar_like(x, 0)), 1 / of.width);
  return c.op.Add(times(c.op.Relu(x), of.above), times(expm1(c, negative), of.below));
}

Value elu(Ctx& c, Value x) { return exponential_unit(c, x, {.below = c.param<double>("alpha")}); }
Value celu(Ctx& c, Value x) {
  const auto alpha = c.param<double>("alpha");
  return exponential_unit(c, x, {.below = alpha, .width = alpha});
}
Value selu(Ctx& c, Value x) {
  constexpr double kScale = 1.0507009873554804934193349852946,
                   kAlpha = 1.6732632423543772848170429916717;
  return exponential_unit(c, x, {.above = kScale, .below = kScale * kAlpha});
}

Results hard_sigmoid(Ctx& c) {
  return c.op.HardSigmoid(c.in(0), onnx::Args{{"alpha", c.param<double>("alpha")}, {"beta", 0.5}});
}

constexpr Row kRows[] = {
    // sorted by primitive
    {"celu", in_f32<celu>},
    {"elu", in_f32<elu>},
    {"gelu_erf", gelu_erf, 20},
    {"gelu_tanh", gelu_tanh, 20},
    {"hard_sigmoid", hard_sigmoid},
    {"hard_swish", same<"HardSwish">},
    {"leaky_relu", with_alpha<"LeakyRelu">},
    {"mish", same<"Mish">, 18},
    {"prelu", same<"PRelu">},
    {"relu", same<"Relu">},
    {"selu", in_f32<selu>},
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

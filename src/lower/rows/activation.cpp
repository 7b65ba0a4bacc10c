// SPDX-License-Identifier: Apache-2.0
// Raised scalar functions. Where the opset has no op for one, lowering expands it before it comes
// here.
#include "raise/rules/activation.h"

#include <algorithm>

#include "lower/macro/macro.h"
#include "lower/rows/ctx.h"
#include "raise/engine/ops.h"

namespace jaxport::lower {
namespace {

Results gelu_erf(Ctx& c) { return c.op.Gelu(c.in(0)); }
Results gelu_tanh(Ctx& c) { return c.op.Gelu(c.in(0), onnx::Args{{"approximate", "tanh"}}); }

// ONNX Runtime fuses this spelling; it has no kernel for Swish.
Results silu(Ctx& c) { return c.in(0) * c.op.Sigmoid(c.in(0)); }

onnx::Arg alpha(Ctx& c) {
  return {"alpha", raise::read_attrs<raise::AlphaAttr>(c.eqn().attrs).alpha};
}
template <OpName Op>
Results with_alpha(Ctx& c) {
  return c.op.call(Op.text, c.operands(), {alpha(c)});
}

// ONNX has Celu in f32 only.
Results celu(Ctx& c) {
  const onnx::Args args{alpha(c)};
  return cast(c.op.Celu(cast(c.in(0), DType::kF32), args), c.out_type().dtype);
}

Results hard_sigmoid(Ctx& c) {
  return c.op.HardSigmoid(c.in(0), onnx::Args{alpha(c), {"beta", 0.5}});
}

constexpr Row kActivationRows[] = {
    // sorted by primitive
    {"celu", celu, 12},
    {"elu", with_alpha<"Elu">},
    {"gelu_erf", gelu_erf, 20},
    {"gelu_tanh", gelu_tanh, 20},
    {"hard_sigmoid", hard_sigmoid},
    {"hard_swish", same<"HardSwish">},
    {"leaky_relu", with_alpha<"LeakyRelu">},
    {"mish", same<"Mish">, 18},
    {raise::PreluOp::kName, same<"PRelu">},
    {"relu", same<"Relu">},
    {"selu", same<"Selu">},
    {"sigmoid", same<"Sigmoid">},
    {"silu", silu},
    {"softplus", same<"Softplus">},
    {"softsign", same<"Softsign">},
    {"thresholded_relu", with_alpha<"ThresholdedRelu">},
};
static_assert(std::ranges::is_sorted(kActivationRows, {}, &Row::primitive));

}  // namespace

std::span<const Row> activation_rows() { return kActivationRows; }

namespace {

bool has_few_elements(const axis::Node& node) {
  Dim count = 1;
  for (std::size_t axis = 0; axis < node.out.size(); ++axis) count = count * node.axis_size(axis);
  return count.is_static() && count.value() <= Preferences::kShortPrelu;
}

}  // namespace

// In f64 their parts: ONNX keeps alpha in f32. ONNX Runtime has no kernels for activations of f64,
// but for Relu, and does not load a Relu of f64 before a Clip.
bool is_activation_available(const axis::Node& node, const Options& options) {
  const Preferences& preferences = options.preferences();
  const bool is_elu = node.name == "celu" || node.name == "elu" || node.name == "selu";
  if (is_elu && preferences.has_inexact_elu) return false;
  const bool is_slow = preferences.has_slow_prelu && !has_few_elements(node);
  if (node.name == raise::PreluOp::kName && is_slow) return false;
  return node.dtype != DType::kF64 && find_row(node.name, options.opset) != nullptr;
}

}  // namespace jaxport::lower

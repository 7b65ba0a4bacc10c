// SPDX-License-Identifier: Apache-2.0
#include "target/kernel_facts.h"

namespace jaxport::target {
namespace {

constexpr std::string_view kSlowF16Ops[] = {"Clip", "Max", "Min", "Round"};
constexpr std::string_view kSlowBF16Ops[] = {"LayerNormalization", "RMSNormalization"};

// What ONNX Runtime's kernels are slow at and wrong about, wherever they are compiled for.
constexpr KernelFacts kKernels{
    .slow_f16_ops = kSlowF16Ops,
    .slow_bf16_ops = kSlowBF16Ops,
    .ignores_nan_in_max = true,
    .clamps_max_pool = true,
    .loses_sign_in_where = true,
    .loses_sign_in_sign = true,
    .has_inexact_sigmoid = true,
    .has_inexact_tanh = true,
    .has_slow_row_cumsum = true,
    .has_slow_pixel_repeat = true,
};
constexpr KernelFacts kOnnxRuntime = [] {
  KernelFacts facts = kKernels;
  facts.has_slow_softplus = true;
  facts.has_slow_sign = true;
  facts.has_slow_bool_reduction = true;
  facts.has_slow_column_sum = true;
  facts.has_slow_scattered_axes = true;
  return facts;
}();

// The faster forms were measured on processors only.
constexpr KernelFacts kWeb = kKernels;

// Where keeps the sign of zeros, and Sigmoid and Tanh have their digits.
constexpr KernelFacts kOpenVino{
    .ignores_nan_in_max = true,
    .ignores_nan_in_clip = true,
    .ignores_nan_in_exp = true,
    .clamps_max_pool = true,
    .loses_sign_in_sign = true,
};

constexpr KernelFacts kSpecification{};

}  // namespace

const KernelFacts& kernel_facts(const Target& target) {
  switch (target.runtime) {
    case Runtime::kOnnxRuntime:
      return kOnnxRuntime;
    case Runtime::kOnnxRuntimeWeb:
      return kWeb;
    case Runtime::kOpenVino:
      return kOpenVino;
    case Runtime::kOnnx:
      return kSpecification;
  }
  return kSpecification;
}

}  // namespace jaxport::target

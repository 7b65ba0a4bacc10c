// SPDX-License-Identifier: Apache-2.0
#include "target/kernel_facts.h"

namespace jaxport::target {
namespace {

constexpr std::string_view kSlowF16Ops[] = {"Clip", "Max", "Min", "Round"};
constexpr std::string_view kSlowBF16Ops[] = {"LayerNormalization", "RMSNormalization"};

constexpr KernelFacts kOnnxRuntime{
    .slow_f16_ops = kSlowF16Ops,
    .slow_bf16_ops = kSlowBF16Ops,
    .has_slow_softplus = true,
    .has_slow_sign = true,
    .has_slow_bool_reduction = true,
    .has_slow_column_sum = true,
    .has_slow_scattered_axes = true,
    .ignores_nan_in_max = true,
    .clamps_max_pool = true,
    .loses_sign_in_where = true,
    .loses_sign_in_sign = true,
    .has_inexact_sigmoid = true,
    .has_inexact_tanh = true,
    .has_slow_row_cumsum = true,
    .has_slow_pixel_repeat = true,
};
constexpr KernelFacts kSpecification{};

}  // namespace

const KernelFacts& kernel_facts(const Target& target) {
  return target.runtime == Runtime::kOnnxRuntime ? kOnnxRuntime : kSpecification;
}

}  // namespace jaxport::target

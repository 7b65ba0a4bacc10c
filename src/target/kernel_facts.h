// SPDX-License-Identifier: Apache-2.0
// What is known of single kernels of a target beyond their dtypes. Only target/ chooses by it; what
// stages above it choose by is in support/preferences.h.
#pragma once

#include <span>
#include <string_view>

#include "target/target.h"

namespace jaxport::target {

struct KernelFacts {
  // Ops whose kernels for f16 or bf16 take longer than those for f32 between two Casts: in f16 Clip
  // 137 times as long, Max 69, Min 87 and Round 131; in bf16 the norms 4 times. All others take
  // 0.13 to 1.02 of it (docs/precision.md).
  std::span<const std::string_view> slow_f16_ops = {}, slow_bf16_ops = {};

  // --- What only exact models avoid (target/exact.h)

  // ReduceMax, ReduceMin, MaxPool and scatters to a maximum or minimum ignore NaN.
  bool ignores_nan_in_max = false;

  // MaxPool gives the lowest number for a window of -inf.
  bool clamps_max_pool = false;

  // Where gives 0 for a -0 of its second operand.
  bool loses_sign_in_where = false;

  // Sign gives 0 for -0.
  bool loses_sign_in_sign = false;

  // Sigmoid has an absolute error of 1e-7: below -18 it is 0.
  bool has_inexact_sigmoid = false;

  // Tanh has five digits below 4e-36, where its intermediate results are subnormal.
  bool has_inexact_tanh = false;
};

const KernelFacts& kernel_facts(const Target& target);

}  // namespace jaxport::target

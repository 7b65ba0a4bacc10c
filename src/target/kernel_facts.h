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

  // --- What has a faster form (target/fast_form.h), with its part of the time. In f32
  // but for truth values.

  // Softplus: 0.24 for 300,000 elements, 0.88 for 1,000. Mish: 0.08 and 0.64.
  bool has_slow_softplus = false;

  // Sign as two products and Clip: 0.34 for 300,000 elements.
  bool has_slow_sign = false;

  // ReduceMax and ReduceMin of bool in u8: 0.22 for 75,000 elements.
  bool has_slow_bool_reduction = false;

  // A sum or a mean over the axis before the last as a product with a vector: 0.05 to 0.13 where
  // all axes before it have size 1 (0.5 to 0.7 where there are none), and 0.93 to 1.01 else.
  bool has_slow_column_sum = false;

  // Sums, means and maxima over axes that lie apart, one group of axes after the other: 0.11 to
  // 0.38 for 200,000 elements and more, 1.1 for a few.
  bool has_slow_scattered_axes = false;

  // --- What only exact models avoid (target/exact.h)

  // ReduceMax, ReduceMin, MaxPool and scatters to a maximum or minimum ignore NaN.
  bool ignores_nan_in_max = false;

  // Max, Min, Clip and Relu may give their other operand for NaN.
  bool ignores_nan_in_clip = false;

  // Exp gives infinity for NaN.
  bool ignores_nan_in_exp = false;

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

  // --- What has a faster order (target/fast_form.h), in f32

  // CumSum along the last axis between two Transposes: 0.31 for 256 rows of 512, 0.27 for 16 of
  // 4,096, 1.14 for 8 of 64.
  bool has_slow_row_cumsum = false;

  // A nearest Resize of images with the channels last by whole numbers as Tile and Gather: 0.33 for
  // 32 channels of 32 x 32 pixels, 0.59 for 256 of 56 x 56.
  bool has_slow_pixel_repeat = false;
};

const KernelFacts& kernel_facts(const Target& target);

}  // namespace jaxport::target

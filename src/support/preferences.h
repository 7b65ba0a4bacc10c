// SPDX-License-Identifier: Apache-2.0
// What a target is good at, slow at and wrong about: facts by which stages above target/ choose
// between forms of the same mathematics, each with its measurement. Nothing here decides anything.
//
// The facts belong to the target (target::preferences). They stand in support/ because axis/ and
// raise/ choose by them too, and see nothing of ONNX.
#pragma once

#include <cstddef>
#include <cstdint>

namespace jaxport {

struct Preferences {
  // Up to so many steps of a loop, of a body of so many equations, are unrolled. ONNX Runtime takes
  // 0.84 to 0.97 of the time of a Scan for 2 to 4 steps, 0.91 to 1.04 for 8 and 0.94 to 1.18 for 16
  // (docs/architecture.md, Control flow).
  std::int64_t most_unrolled_steps;
  std::size_t largest_unrolled_body;

  // A recurrence of several sequences without gates stays a Scan: ONNX Runtime's RNN takes up to 4
  // times as long, and half as long for one sequence.
  bool has_slow_rnn;

  // A Pad before a MaxPool is merged with the padding of the MaxPool, whatever it pads with; two
  // Pads are not.
  bool merges_pad_into_max_pool;

  // Conv refuses auto_pad = SAME_UPPER beside dilations.
  bool refuses_dilated_same;

  // Attention refuses a scale below 0. (By the specification it multiplies with its root.)
  bool refuses_negative_scale;

  // The norms of bf16 take no longer than those of f32; in ONNX Runtime they take four times as
  // long as one of f32 between two Casts.
  bool has_fast_bf16_norm;

  // Attention gives 0 for a row that is masked everywhere, and not NaN, as the specification says.
  bool zeroes_masked_rows;

  // --- Facts that no target is known to differ in.

  // ONNX Runtime computes the places between pixels in f32. Where the ratio of the sizes is no
  // power of two they differ from JAX's, by more the larger the sizes are: 2e-6 at 40 elements,
  // 3e-5 at 400. The weights of a Resize may differ by so much from those of JAX.
  static constexpr double kResizeError = 0x1p-18;

  // The lowest fill of a mask. ONNX Runtime takes the lowest number of f32 for -inf; this one
  // leaves room for a score.
  static constexpr double kLowestFill = -3e38;

  // How many numbers the matrix of a Fourier transform may have in place of two smaller products,
  // and at all. Measured in ONNX Runtime 1.31 with 1 and 16 rows (docs/decompositions.md).
  static constexpr std::int64_t kFewFourierEntries = 1 << 16, kMostFourierEntries = 1 << 20;
};

inline constexpr Preferences kOnnxRuntimePreferences{
    .most_unrolled_steps = 4,
    .largest_unrolled_body = 8,
    .has_slow_rnn = true,
    .merges_pad_into_max_pool = true,
    .refuses_dilated_same = true,
    .refuses_negative_scale = true,
    .has_fast_bf16_norm = false,
    .zeroes_masked_rows = true,
};

// A model that keeps to the specification is run by ONNX Runtime too. So it has the forms that ONNX
// Runtime runs fastest where the specification allows several; what ONNX Runtime gets wrong or
// refuses is avoided where that costs nothing.
inline constexpr Preferences kOnnxPreferences = [] {
  Preferences preferences = kOnnxRuntimePreferences;
  preferences.has_fast_bf16_norm = true;   // not known of other runtimes: the shorter form
  preferences.zeroes_masked_rows = false;  // the definition of the op gives NaN
  return preferences;
}();

}  // namespace jaxport

// SPDX-License-Identifier: Apache-2.0
// What a target is good at, slow at and wrong about: facts by which stages above target/ choose
// between forms of the same mathematics, each with its measurement. Nothing here decides anything.
// A form that is written for every target alike has its reason where it is written.
//
// The facts belong to the target (target::preferences). They stand in support/ because axis/ and
// raise/ choose by them too, and see nothing of ONNX.
#pragma once

#include <cstddef>
#include <cstdint>

namespace jaxport {

struct Preferences {
  // --- What is slow

  // Up to so many steps of a loop, of a body of so many equations, are unrolled. ONNX Runtime takes
  // 0.84 to 0.97 of the time of a Scan for 2 to 4 steps, 0.91 to 1.04 for 8 and 0.94 to 1.18 for 16
  // (docs/architecture.md, Control flow).
  std::int64_t most_unrolled_steps = 0;
  std::size_t largest_unrolled_body = 0;

  // Up to so many steps of a scan over weights of at least so many elements a step, constants of
  // two dims and more, are unrolled: ONNX Runtime packs constant weights when it loads a model, but
  // never those that a Scan hands to its body. Eight unrolled layers take 0.53 to 0.82 of the time
  // at widths of 256 and 512 (docs/benchmarks.md), and 0.94 to 1 at 64.
  std::int64_t most_unrolled_layers = 0;
  static constexpr std::int64_t kLargeWeight = 256 * 256;

  // A recurrence of several sequences without gates stays a Scan: ONNX Runtime's RNN takes up to 4
  // times as long, and half as long for one sequence.
  bool has_slow_rnn = false;

  // The norms of bf16 take four times as long as one of f32 between two Casts.
  bool has_slow_bf16_norm = false;

  // ReduceLogSumExp takes 0.6 of the time of its parts for 12 elements, as long for 512 and 3 to 7
  // times as long for 4,096 and more. PRelu takes 0.7 of the time of its parts for up to 4,096
  // elements, and 8 times as long for more in ONNX Runtime 1.28 to 1.31 (0.4 to 0.5 in 1.23).
  bool has_slow_logsumexp = false;
  static constexpr std::int64_t kShortLogSumExp = 512;
  bool has_slow_prelu = false;
  static constexpr std::int64_t kShortPrelu = 4096;

  // Running products of few elements by a mask and one ReduceProd, which needs n numbers for each
  // of n elements: 0.7 to 0.9 of the time of log2(n) products for up to so many numbers.
  static constexpr std::int64_t kFewMaskedProducts = 1024;

  // Cubic Resize. With antialias it takes 2.6 ns for an element of the result; its contractions
  // take n / 45 ns for n elements along their axes, which is less where the axes are short together
  // and the elements not few. Without antialias it takes 6 to 16 times as long as they do.
  bool has_slow_cubic_resize = false;
  static constexpr std::int64_t kShortCubicAxes = 96, kFewCubicElements = 4096;

  // --- What is refused or rewritten

  // A Pad before a MaxPool is merged with the padding of the MaxPool, whatever it pads with; two
  // Pads are not.
  bool merges_pad_into_max_pool = false;

  // Conv refuses auto_pad = SAME_UPPER beside dilations.
  bool refuses_dilated_same = false;

  // Resize with antialias is refused (ONNX Runtime Web, by WebGPU), or computed without it
  // (OpenVINO).
  bool lacks_antialias = false;

  // Attention refuses a scale below 0. (By the specification it multiplies with its root.)
  bool refuses_negative_scale = false;

  // --- What has other results than the specification says

  // Attention gives 0 for a row that is masked everywhere, and not NaN.
  bool zeroes_masked_rows = false;

  // An interpolating Resize with the channels last has wrong numbers (ONNX Runtime Web 1.30, by
  // WebGPU). A Transpose in front does not help: ONNX Runtime moves it behind the Resize, and with
  // `axes` the model does not load then.
  bool has_wrong_interpolation = false;

  // The norms of 16-bit floats round once, at the end; by the specification they round before scale
  // and bias, too.
  bool rounds_norm_once = false;

  // Elu, Celu and Selu subtract 1 from an exponential: near zero no digit is right.
  bool has_inexact_elu = false;

  // Sigmoid has an absolute error of 1e-7: below -15 no digit is right, and below -18 it is 0.
  bool has_inexact_sigmoid = false;

  // LogSoftmax in f64 takes a sum that is NaN for 1e-20, and gives 46 beside a NaN.
  bool has_wrong_f64_log_softmax = false;

  // The Relu of RNN makes 0 of NaN.
  bool has_wrong_rnn_relu = false;

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

  // Rows of fewer elements are repeated by Resize, longer ones by Expand, which copies whole rows
  // fast and single elements slowly. Resize takes 0.03 to 0.35 of the time of an Expand between two
  // Reshapes for rows of 1 and 3 elements, and 1.9 of it for 64 (docs/raising.md, Resizing).
  static constexpr std::int64_t kShortRow = 16;
};

inline constexpr Preferences kOnnxRuntimePreferences{
    .most_unrolled_steps = 4,
    .largest_unrolled_body = 8,
    .most_unrolled_layers = 64,
    .has_slow_rnn = true,
    .has_slow_bf16_norm = true,
    .has_slow_logsumexp = true,
    .has_slow_prelu = true,
    .has_slow_cubic_resize = true,
    .merges_pad_into_max_pool = true,
    .refuses_dilated_same = true,
    .refuses_negative_scale = true,
    .zeroes_masked_rows = true,
    .rounds_norm_once = true,
    .has_inexact_elu = true,
    .has_inexact_sigmoid = true,
    .has_wrong_f64_log_softmax = true,
    .has_wrong_rnn_relu = true,
};

// In a browser WebGPU may compute what the model was made for, or WebAssembly with the kernels of
// the CPU: the page chooses when it opens the model.
inline constexpr Preferences kWebPreferences = [] {
  Preferences preferences = kOnnxRuntimePreferences;
  preferences.lacks_antialias = true;
  preferences.has_wrong_interpolation = true;
  return preferences;
}();

// Models for OpenVINO have the forms that were tried there, which are those of ONNX Runtime.
inline constexpr Preferences kOpenVinoPreferences = [] {
  Preferences preferences = kOnnxRuntimePreferences;
  preferences.lacks_antialias = true;
  return preferences;
}();

// A model that keeps to the specification is run by ONNX Runtime too. So it has the forms that ONNX
// Runtime runs fastest where the specification allows several, and avoids what it refuses. But an
// op of the specification is used as it is defined there, and not composed because one runtime is
// slow or wrong.
inline constexpr Preferences kOnnxPreferences{
    .most_unrolled_steps = 4,
    .largest_unrolled_body = 8,
    .most_unrolled_layers = 64,
    .has_slow_rnn = true,
    .merges_pad_into_max_pool = true,
    .refuses_dilated_same = true,
    .refuses_negative_scale = true,
};

}  // namespace jaxport

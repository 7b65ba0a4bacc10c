// SPDX-License-Identifier: Apache-2.0
// Inputs that programs rarely meet.
#pragma once

#include <string_view>
#include <vector>

#include "front/ir.h"

namespace jaxport::fuzz {

// What the numbers and the masks of one run look like, and how large its symbolic sizes are.
enum class Numbers : std::uint8_t {
  kOrdinary,
  kTies,      // zeros of both signs, equal numbers, whole numbers
  kPositive,  // all in (0, 1)
  kSmall,     // all about 0.1
  kZero,      // all 0 or -0
  kShifted,   // close together and far from zero
  kLarge,     // up to 1e4
  kHuge,      // some 1e18 and 3e38 among ordinary ones
  kTiny,      // some 1e-30 and subnormal among ordinary ones
  kInfinite,  // one infinity
  kNan,       // one NaN
  kLow,       // one row of -inf
};
enum class Masks : std::uint8_t { kRandom, kAllFalse, kAllTrue, kRowFalse };
struct ValueKind {
  std::string_view name;
  Numbers numbers;
  Masks masks;
  std::int64_t batch;
};
const std::vector<ValueKind>& kinds();

// Numbers that f32 holds exactly, in the dtypes of the parameters.
std::vector<Tensor> inputs(const front::Function& function, const ValueKind& kind,
                           std::uint64_t seed);
// Floats of `from` as `to`.
std::vector<Tensor> cast_all(const std::vector<Tensor>& inputs, DType from, DType to);

}  // namespace jaxport::fuzz

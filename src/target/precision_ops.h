// SPDX-License-Identifier: Apache-2.0
// What half precision does to each op.
#pragma once

#include <cstdint>
#include <string_view>

#include "onnx/ir.h"

namespace jaxport::target {

enum class HalfRole : std::uint8_t {
  kMoves,  // results are elements of the operands: in whatever dtype these are
  kHeavy,  // what half precision is for
  kLight,  // in the dtype of what is around it
  kFull,   // in f32: it sums, it loses digits where its operand has few, or its digits are indices
};

struct HalfConduct {
  HalfRole role;
  // A sum, a root, a reciprocal, …: what is computed with it is computed in f32, too. The
  // deviations x - mean(x) and their product with 1 / sqrt(var) are.
  bool is_statistic;
  // Results stay small whatever the operands are.
  bool is_bounded;
};

HalfConduct half_conduct(const onnx::Node& node);

}  // namespace jaxport::target

// SPDX-License-Identifier: Apache-2.0
// Models that compute in half precision on purpose: f16 or bf16 where the target is good at it and
// the numbers allow it, f32 elsewhere (docs/precision.md).
//
// It is a rewrite of finished nodes, because what decides is asked of nodes: whether the target has
// a kernel, whether it is slow, whether the op sums, which of its operands are weights.
#pragma once

#include <cstddef>

#include "onnx/ir.h"
#include "target/target.h"

namespace jaxport::target {

struct Precision {
  DType dtype = DType::kF32;  // f16 or bf16; f32: nothing changes
  bool io = false;            // inputs and outputs of the model in it, too
  friend bool operator==(const Precision&, const Precision&) = default;
};

// What became of the f32 of a model.
struct PrecisionCounts {
  std::size_t half = 0, full = 0;    // nodes with f32 operands or results, now and before
  std::size_t stored = 0, kept = 0;  // elements of constants: rounded, and left in f32
};

// The legaliser and the passes come before; what the rewrite leaves dead stays.
PrecisionCounts reduce_precision(onnx::Model& model, const Target& target,
                                 const Precision& precision);

}  // namespace jaxport::target

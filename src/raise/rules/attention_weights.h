// SPDX-License-Identifier: Apache-2.0
// The weights of attention: a softmax, and what is done to it before the values are summed.
#pragma once

#include <optional>
#include <vector>

#include "raise/engine/raise.h"

namespace jaxport::raise {

struct Weights {
  // What is done to the softmax.
  struct Step {
    enum class Kind : std::uint8_t {
      kMask,      // zero where `use` is false
      kMultiply,  // times `use`
      kDivide,    // by `use`
    };
    Kind kind;
    axis::Use use;
  };
  axis::Use softmax;
  std::vector<Step> steps;        // outermost first
  bool has_no_nan = false;        // NaN is replaced by zero
  DType narrowest = DType::kF64;  // of the dtypes that the weights pass through
  bool is_shared = false;         // another node uses a value on the way
};

// Takes `use` apart down to a softmax.
std::optional<Weights> weights_of(const Matcher& m, const axis::Use& use);

}  // namespace jaxport::raise

// SPDX-License-Identifier: Apache-2.0
// The score of attention: what stands under its softmax.
#pragma once

#include <optional>
#include <vector>

#include "axis/graph.h"

namespace jaxport::raise {

// scale * cap(sum_d query key) * factors + biases, and then `fill` where a mask is false.
struct Score {
  struct Factor {
    axis::Use use;
    bool divides;
  };
  struct Bias {
    double coefficient;
    axis::Use use;
  };
  struct Mask {
    axis::Use keep;
    double fill;
  };
  double scale = 1;
  double cap = 0;  // 0: none
  std::vector<Factor> factors;
  std::vector<Bias> biases;
  std::vector<Mask> masks;  // outermost first
  axis::Use query, key;
  axis::Labels contracted;
  DType narrowest = DType::kF64;  // of the dtypes that the score passes through
};

// Takes the operand of a softmax along `along` apart, from the outside in.
std::optional<Score> score_of(axis::Graph& graph, const axis::Use& use, const axis::Labels& along);

}  // namespace jaxport::raise

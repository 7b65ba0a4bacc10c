// SPDX-License-Identifier: Apache-2.0
// The score of attention: what stands under its softmax.
#pragma once

#include <optional>
#include <vector>

#include "axis/graph/graph.h"

namespace jaxport::raise {

// What is done to scale * cap(sum_d query key) on its way to the softmax. Whatever stands outside
// of a part is applied to it: `number` is a product with the literals that do, and the first
// `factors` of the factors multiply a bias too.
struct Score {
  struct Factor {
    axis::Use use;
    bool divides;
  };
  struct Part {
    enum class Kind : std::uint8_t { kBias, kMask };
    Kind kind;
    axis::Use use;        // what is added; or the mask, false where the score is replaced
    double number;        // the coefficient of a bias; the fill of a mask
    std::size_t factors;  // of a bias
  };
  double scale = 1;
  double cap = 0;               // 0: none
  std::vector<Factor> factors;  // outermost first
  std::vector<Part> parts;      // outermost first
  axis::Use query, key;
  axis::Labels contracted;
  DType narrowest = DType::kF64;  // of the dtypes that the score passes through
};

struct ScoreOrReason {
  std::optional<Score> score;
  const char* reason = nullptr;  // why there is none
};
// Takes the operand of a softmax along `along` apart, from the outside in.
ScoreOrReason score_of(axis::Graph& graph, const axis::Use& use, const axis::Labels& along);

}  // namespace jaxport::raise

// SPDX-License-Identifier: Apache-2.0
// What ONNX Attention adds to its scores: all masks and biases as one summand.
#pragma once

#include <optional>

#include "raise/rules/attention_score.h"
#include "raise/rules/attention_weights.h"

namespace jaxport::raise {

struct ScoreSummand {
  axis::Use added;  // empty: nothing is added
  axis::Use keep;   // where this is false the summand is all of the score; may be empty
  // Keys after the position of the query along this label have no weight.
  std::optional<axis::Label> causal_row;
  // A row that is -inf everywhere gives zeros, and not NaN.
  bool zero_rows = false;
};
struct SummandOrReason {
  ScoreSummand summand;
  const char* reason = nullptr;  // why the op cannot express it
};
// The keys run along `along`, queries along some of `rows`. What masks the weights along the keys
// is part of the summand.
SummandOrReason summand_of(axis::Graph& graph, const Score& score, const Weights& weights,
                           const axis::Labels& along, const axis::Labels& rows, DType dtype);

}  // namespace jaxport::raise

// SPDX-License-Identifier: Apache-2.0
// ONNX's recurrent ops in the axis graph: primitives "lstm", "gru" and "rnn", whose operands and
// results have ONNX's dims.
//
// Each is a scan whose body is the formula of the op, under another name: weights w, r and b are
// its constants, h (and c) its carry, x its xs, h of every step its ys. So its decomposition is the
// scan itself. Parameters besides those of scan: "starts_at_zero"; "linear_before_reset" of a gru;
// "activation" of an rnn.
#pragma once

#include <memory>

#include "axis/graph.h"
#include "raise/cell.h"

namespace jaxport::raise {

struct RecurrentSizes {
  Dim steps, batch, input, hidden;
};

bool is_recurrent(const axis::Node& node);

// The primitive for a cell read from `scan`.
std::shared_ptr<const axis::PrimInfo> recurrent_prim(axis::Graph& graph, const axis::Node& scan,
                                                     const Cell& cell, const RecurrentSizes& sizes,
                                                     bool starts_at_zero);

// The scan, over the same labels.
axis::Use expand_recurrent(axis::Graph& graph, const axis::Use& use);

}  // namespace jaxport::raise

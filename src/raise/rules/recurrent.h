// SPDX-License-Identifier: Apache-2.0
// ONNX's recurrent ops in the axis graph: primitives with the names of kRecurrentOps, whose
// operands and results have ONNX's dims.
//
// Each is a scan whose body is the formula of the op, under another name: weights w, r and b are
// its constants, h (and c) its carry, x its xs, h of every step its ys. So its decomposition is the
// scan itself, without the parameters that it has besides those of scan.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "axis/graph/graph.h"
#include "raise/engine/op.h"
#include "raise/rules/cell.h"

namespace jaxport::raise {

struct RecurrentSizes {
  Dim steps, batch, input, hidden;
};

struct RecurrentAttrs {
  std::string activation;            // of an rnn, as ONNX names it
  bool linear_before_reset = false;  // of a gru
  bool starts_at_zero = false;

  void fields(Fields& f) {
    f.attr("activation", activation);
    f.attr("linear_before_reset", linear_before_reset);
    f.attr("starts_at_zero", starts_at_zero);
  }
  bool is_relu() const { return activation == "Relu"; }  // else it is tanh
};

// The primitive for a cell read from `scan`.
std::shared_ptr<const axis::PrimInfo> recurrent_prim(axis::Graph& graph, const axis::Node& scan,
                                                     const Cell& cell, const RecurrentSizes& sizes,
                                                     bool starts_at_zero);

// The scan, over the same labels.
axis::Use expand_recurrent(axis::Graph& graph, const axis::Use& use);

}  // namespace jaxport::raise

// SPDX-License-Identifier: Apache-2.0
// The body of a scan, read as a recurrent cell of ONNX.
//
//   LSTM  c' = f*c + i*g,  h' = o*tanh(c')             i, o, f = sigmoid(…), g = tanh(…)
//   GRU   h' = (1 - z)*n + z*h                         z, r = sigmoid(…), n = tanh(…)
//         In n, r scales either h or the product of h.
//   RNN   h' = tanh(…) or relu(…)
//
// Each … is a gate: input + h . recurrent. Everything a gate adds that does not come from the state
// is its input: products of x with weights, biases, or anything else.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "axis/graph/graph.h"

namespace jaxport::raise {

// A recurrent op: the name of its rule and primitive, and ONNX's.
struct RecurrentOp {
  std::string_view name, onnx;
};
constexpr RecurrentOp kGru{"gru", "GRU"}, kLstm{"lstm", "LSTM"}, kRnn{"rnn", "RNN"};
inline constexpr std::array kRecurrentOps{kGru, kLstm, kRnn};

struct Gate {
  axis::Use input;      // over the axes of the state, or fewer
  axis::Use recurrent;  // over Cell::hidden and Cell::before
  axis::Use bias;       // of the product with the state; only in the GRU's n, else empty
};

struct Cell {
  RecurrentOp op;
  std::vector<Gate> gates;         // in ONNX's order: iofc, zrh
  std::vector<std::size_t> state;  // which carries are h and, for an LSTM, c
  axis::Use next;                  // h', over `axes`
  axis::Labels axes;               // of the state: one for each non-unit dim
  axis::Label hidden = 0;          // the axis of the units: one of `axes`
  axis::Label before = 0;          // the same in the state that a step starts with
  bool linear_before_reset = false;
  std::string activation;  // of an RNN, as ONNX names it
};

// A cell, or a remark on the one that it nearly is; neither when the body is something else.
struct CellReading {
  std::optional<Cell> cell;
  std::string_view rule;  // empty for neither
  std::string problem;
};
CellReading read_cell(const axis::Node& scan);

// An operand of a product in the one dtype that the op has. Empty where that would round it: a
// product may have operands of other dtypes than its own.
axis::Use widened(const axis::Use& operand, DType dtype);

}  // namespace jaxport::raise

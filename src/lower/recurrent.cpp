// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU and RNN (raise/recurrent.h): operands and results have ONNX's dims already.
#include <algorithm>

#include "lower/ctx.h"
#include "onnx/subgraph.h"

namespace jaxport::lower {
namespace {

// The operands of the primitive are w, r, b, the states and x; its results the states and y.
Results recurrent(Ctx& c, std::string_view op, onnx::Args args) {
  const std::size_t states = c.result_count() - 1;
  Values in{c.operands().back(), c.in(0), c.in(1), c.in(2)};
  if (!c.param<bool>("starts_at_zero")) {
    in.emplace_back();  // all sequences have the full length
    in.insert(in.end(), c.operands().begin() + 3, c.operands().end() - 1);
  }
  args.emplace_back("hidden_size", c.in_type(1).shape.back().value());
  if (c.param<bool>("reverse")) args.emplace_back("direction", "reverse");
  const auto steps = [&](onnx::Builder& builder) {
    Values results = builder.call_n(op, in, states + 1, args);
    std::rotate(results.begin(), results.begin() + 1, results.end());
    return results;
  };
  // ONNX Runtime crashes, or returns what was in memory, where there is no step or no sequence.
  const auto nothing = [&](onnx::Builder& builder) {
    Values results(c.operands().begin() + 3, c.operands().end() - 1);
    const auto& [dtype, shape] = c.out_type(states);
    results.push_back(
        builder.call_with_shape("Expand", {builder.scalar(0, dtype), c.shape(shape)}, {}, shape));
    return results;
  };
  const Dims& x = c.operands().back().shape();
  const Dim count = x[0] * x[1];
  Values results =
      onnx::can_be_zero(count) ? unless_zero(c.op, c.dim(count), steps, nothing) : steps(c.op);
  for (std::size_t i = 0; i <= states; ++i) c.op.set_shape(results[i], c.out_type(i).shape);
  return results;
}

Results gru(Ctx& c) {
  onnx::Args args;
  if (c.param<bool>("linear_before_reset")) args.emplace_back("linear_before_reset", 1);
  return recurrent(c, "GRU", std::move(args));
}

Results lstm(Ctx& c) { return recurrent(c, "LSTM", {}); }

Results rnn(Ctx& c) {
  onnx::Args args;
  const std::string activation = c.param<std::string>("activation");
  if (activation != "Tanh") args.emplace_back("activations", std::vector{activation});
  return recurrent(c, "RNN", std::move(args));
}

constexpr Row kRows[] = {
    {"gru", gru},
    {"lstm", lstm},
    {"rnn", rnn},
};
static_assert(std::ranges::is_sorted(kRows, {}, &Row::primitive));

}  // namespace
std::span<const Row> recurrent_rows() { return kRows; }
}  // namespace jaxport::lower

// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU and RNN (raise/rules/recurrent.h): operands and results have ONNX's dims already.
#include "raise/rules/recurrent.h"

#include <algorithm>

#include "lower/macro/macro.h"
#include "lower/rows/ctx.h"
#include "onnx/subgraph.h"

namespace jaxport::lower {
namespace {

raise::RecurrentAttrs attrs_of(const front::Eqn& eqn) {
  return raise::read_attrs<raise::RecurrentAttrs>(eqn.attrs);
}

std::string_view op_of(std::string_view primitive) {
  return std::ranges::find(raise::kRecurrentOps, primitive, &raise::RecurrentOp::name)->onnx;
}

// The operands of the primitive are w, r, b, the states and x; its results the states and y.
Results recurrent(Ctx& c) {
  const raise::RecurrentAttrs attrs = attrs_of(c.eqn());
  const std::string_view op = op_of(c.eqn().primitive);
  const std::size_t states = c.result_count() - 1;
  Values in{c.operands().back(), c.in(0), c.in(1), c.in(2)};
  if (!attrs.starts_at_zero) {
    in.emplace_back();  // all sequences have the full length
    in.insert(in.end(), c.operands().begin() + 3, c.operands().end() - 1);
  }
  onnx::Args args;
  if (attrs.linear_before_reset) args.emplace_back("linear_before_reset", 1);
  if (attrs.is_relu()) args.emplace_back("activations", std::vector{attrs.activation});
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

constexpr Row kRecurrentRows[] = {
    {raise::kGru.name, recurrent},
    {raise::kLstm.name, recurrent},
    {raise::kRnn.name, recurrent},
};
static_assert(std::ranges::is_sorted(kRecurrentRows, {}, &Row::primitive));

}  // namespace
std::span<const Row> recurrent_rows() { return kRecurrentRows; }

bool is_recurrent_available(const axis::Node& node, const Options& options) {
  const bool is_wrong =
      attrs_of(node.prim->eqn).is_relu() && options.preferences().has_wrong_rnn_relu;
  return !is_wrong && has_op(op_of(node.name), node, options);
}

}  // namespace jaxport::lower

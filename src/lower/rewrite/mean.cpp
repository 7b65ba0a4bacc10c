// SPDX-License-Identifier: Apache-2.0
// Sums that are divided by the number of what was summed.
#include <algorithm>
#include <cmath>

#include "axis/translate/size_value.h"
#include "lower/rewrite/rewrite.h"
#include "lower/rows/window.h"
#include "onnx/subgraph.h"

namespace jaxport::lower {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Use;

// A value that is divided by a count, or multiplied by its reciprocal.
struct Quotient {
  Use sum, count;
  bool divides;
};
Quotient quotient_of(Graph& graph, const Use& use) {
  const bool divides = use.node->is(Kind::kPointwise, "div");
  if (!divides && !use.node->is(Kind::kPointwise, "mul")) return {};
  if (!is_float(use.node->dtype)) return {};
  Quotient q{graph.child(use, 0), graph.child(use, 1), divides};
  if (q.sum.node->dtype != use.node->dtype) return {};
  return q;
}

// The reciprocal of a count is as near to it as its dtype can be, and f32 at least.
bool is_count(const Graph& graph, const Quotient& q, const Dim& n) {
  if (q.divides) return axis::size_value(graph, q.count) == std::optional(n);
  const auto factor = graph.scalar_value(q.count);
  const DType dtype = q.count.node->dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  return factor && n.is_static() &&
         std::abs(*factor * static_cast<double>(n.value()) - 1) <
             std::ldexp(1, -mantissa_bits(dtype));
}

bool is_plain(const Window& window, std::size_t dim) {
  return window.size[dim] == 1 && window.stride[dim] == 1 && window.padding[dim].low == 0 &&
         window.padding[dim].high == 0;
}

// The same sum of ones, which counts the elements without padding. Equal values are one node: this
// is the constant, or the primitive, that a library divides by. Most libraries sum ones that have
// only the dims of the window, some have all dims.
Use counts_without_padding(Graph& graph, const Use& sum, bool all_dims) {
  auto info = std::make_shared<axis::PrimInfo>(*sum.node->prim);
  const Window window = window_of(info->eqn);
  axis::Pattern operand_axes, result_axes;
  std::size_t axis = 0;
  for (std::size_t dim = 0; dim < window.size.size(); ++dim) {
    Dim &in = info->in[0].shape[dim], &out = info->out[0].shape[dim];
    const bool has_axis = !out.is_one();
    if (!all_dims && is_plain(window, dim)) {
      in = out = 1;
    } else {
      if (!in.is_one()) operand_axes.push_back({graph.label(in)});
      if (has_axis) result_axes.push_back(sum.labels[axis]);
    }
    if (has_axis) ++axis;
  }
  const Use one = graph.scalar(1, info->in[0].dtype);
  return {graph.prim(info, {graph.relayout(one, operand_axes)})[0].node, result_axes};
}

bool divides_by_elements(Graph& graph, const Quotient& q) {
  return q.divides && (q.count == counts_without_padding(graph, q.sum, false) ||
                       q.count == counts_without_padding(graph, q.sum, true));
}

}  // namespace

Use mean(Graph& graph, const Use& use, const axis::UseCounts& uses) {
  const Quotient q = quotient_of(graph, use);
  if (!q.sum || !q.sum.node->is(Kind::kReduce, "reduce_sum") || uses[q.sum.node] > 1) return {};
  const Use x = graph.child(q.sum, 0);
  axis::Labels over;
  for (axis::Label label : x.flat()) {
    if (!axis::contains(q.sum.flat(), label)) over.push_back(label);
  }
  const Dim count = graph.size_of(over);
  // The mean of nothing is NaN, and ReduceMean gives 0.
  if (onnx::can_be_zero(count) || !is_count(graph, q, count)) return {};
  return graph.reduce("reduce_mean", x, over, use.node->dtype);
}

Use window_mean(Graph& graph, const Use& use, const axis::UseCounts& uses, const Options& options) {
  const Quotient q = quotient_of(graph, use);
  if (!q.sum || !q.sum.node->is(Kind::kPrim, "reduce_window_sum") || uses[q.sum.node] > 1)
    return {};
  const axis::PrimInfo& sum = *q.sum.node->prim;
  if (!can_average(sum.eqn, sum.in[0], options.opset)) return {};
  const bool counts_padding = is_count(graph, q, volume(window_of(sum.eqn)));
  if (!counts_padding && !divides_by_elements(graph, q)) return {};
  auto info = std::make_shared<axis::PrimInfo>(sum);
  info->eqn.primitive = "reduce_window_mean";
  front::set(info->eqn.attrs, "counts_padding", counts_padding);
  return {graph.prim(info, {graph.child(q.sum, 0)})[0].node, q.sum.labels};
}

}  // namespace jaxport::lower

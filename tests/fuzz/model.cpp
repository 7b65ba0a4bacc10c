// SPDX-License-Identifier: Apache-2.0
#include "model.h"

#include "raise/raise.h"

namespace jaxport::fuzz {
namespace {

using axis::Use;

constexpr double kLowestF32 = -3.4028234663852886e38;

Use without_empty_rows(axis::Graph& graph, const Use& attention, Use result) {
  const Use bias = graph.child(attention, 3);
  const DType dtype = bias.node->dtype;
  const Use largest = graph.reduce("reduce_max", bias, graph.role(attention, "s"), dtype);
  const Use is_empty =
      graph.pointwise("le", {largest, graph.scalar(kLowestF32, dtype)}, DType::kBool);
  const DType out = result.node->dtype;
  return graph.pointwise("select_n", {is_empty, result, graph.scalar(0, out)}, out);
}

}  // namespace

Use expand_as_runtime(axis::Graph& graph, const Use& use) {
  Use result = raise::expand(graph, use);
  const bool has_bias = use.node->is(axis::Kind::kMacro, "attention") && use.node->edges.size() > 3;
  if (!result || !has_bias || use.node->dtype == DType::kF64) return result;
  return without_empty_rows(graph, use, std::move(result));
}

}  // namespace jaxport::fuzz

// SPDX-License-Identifier: Apache-2.0
#include "model.h"

#include "axis/graph/expr.h"
#include "raise/engine/ops.h"
#include "raise/engine/raise.h"

namespace jaxport::fuzz {
namespace {

using axis::Use;

constexpr double kLowestF32 = -3.4028234663852886e38;

Use without_empty_rows(const raise::AttentionOp& attention, const Use& result) {
  return select(le(reduce_max(attention.bias, attention.keys), kLowestF32), 0, result);
}

}  // namespace

Use expand_as_runtime(axis::Graph& graph, const Use& use) {
  Use result = raise::expand(graph, use);
  if (!raise::is<raise::AttentionOp>(*use.node) || use.node->dtype == DType::kF64) return result;
  const auto attention = raise::read<raise::AttentionOp>(use);
  return attention.bias ? without_empty_rows(attention, result) : result;
}

}  // namespace jaxport::fuzz

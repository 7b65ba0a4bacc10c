// SPDX-License-Identifier: Apache-2.0
// Sizes side by side, such as jnp.shape(x) of an x with symbolic dims: the primitive
// shape_as_value.
#include <algorithm>

#include "axis/graph/pattern.h"
#include "axis/translate/size_value.h"
#include "lower/rewrite/rewrite.h"

namespace jaxport::lower {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Node;
using axis::Use;

constexpr std::int64_t kHighestRank = 64;

bool append_numbers(const Use& piece, Dims& sizes) {
  const Node& node = *piece.node;
  if (node.kind != Kind::kConstant || node.data.size() > kHighestRank) return false;
  for (std::int64_t i = 0; i < node.data.size(); ++i) sizes.push_back(node.data.int_at(i));
  return true;
}

}  // namespace

Use sizes_side_by_side(Graph& graph, const Use& use) {
  const Node& node = *use.node;
  const bool joins = node.kind == Kind::kConcat || node.kind == Kind::kStack;
  const bool is_vector = node.dtype == DType::kI32 || node.dtype == DType::kI64;
  if (!joins || !is_vector || use.labels.size() != 1 || use.labels[0].size() != 1) return {};
  Dims sizes;
  for (std::size_t i = 0; i < node.edges.size(); ++i) {
    const Use piece = graph.child(use, i);
    if (const auto size = piece.labels.empty() ? axis::size_value(graph, piece) : std::nullopt) {
      sizes.push_back(*size);
    } else if (!append_numbers(piece, sizes)) {
      return {};
    }
  }
  if (std::ranges::all_of(sizes, &Dim::is_static)) return {};
  auto info = std::make_shared<axis::PrimInfo>();
  info->eqn.primitive = "shape_as_value";
  info->out = {{node.dtype, {Dim(std::ssize(sizes))}}};
  info->eqn.attrs = {{"shape", std::move(sizes)}};
  return {graph.prim(info, {})[0].node, use.labels};
}

}  // namespace jaxport::lower

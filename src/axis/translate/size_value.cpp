// SPDX-License-Identifier: Apache-2.0
#include "axis/translate/size_value.h"

#include <cmath>

#include "front/params.h"

namespace jaxport::axis {
namespace {

constexpr double kLargestExact = 0x1p53;

}  // namespace

std::optional<Dim> size_value(const Graph& graph, const Use& use) {
  if (const auto value = graph.scalar_value(use)) {
    const bool is_integral = std::trunc(*value) == *value && std::abs(*value) <= kLargestExact;
    return is_integral ? std::optional(Dim(static_cast<std::int64_t>(*value))) : std::nullopt;
  }
  const Node* node = use.node;
  const auto keeps_sizes = [](DType dtype) { return is_float(dtype) || bit_width(dtype) >= 32; };
  while (node->is(Kind::kPointwise, "convert_element_type") && keeps_sizes(node->dtype)) {
    node = node->edges[0].node;
  }
  if (!node->is(Kind::kPrim, "dim_as_value")) return std::nullopt;
  return front::get_dim(node->prim->eqn, "dim");
}

Use size_as_value(Graph& graph, const Dim& size, DType dtype) {
  if (size.is_static()) return graph.constant(int_scalar(dtype, size.value()));
  auto info = std::make_shared<PrimInfo>();
  info->eqn.primitive = "dim_as_value";
  info->eqn.attrs = {{"dim", size}};
  info->out = {{dtype, {}}};
  return graph.prim(info, {})[0];
}

}  // namespace jaxport::axis

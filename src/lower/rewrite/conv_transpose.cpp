// SPDX-License-Identifier: Apache-2.0
// Convolutions over a dilated input, whose zeros ConvTranspose does not multiply: transposed
// convolutions, and gradients of strided ones.
#include <algorithm>
#include <optional>

#include "front/params.h"
#include "lower/macro/macro.h"
#include "lower/rewrite/rewrite.h"

namespace jaxport::lower {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Labels;
using axis::Node;
using axis::Use;
using front::ConvParams;

// Whether the op has attributes for all that the equation says, and computes it for every size.
bool is_conv_transpose(const Node& node, const ConvParams& conv, const Options& options) {
  const auto is_dilated = [](const front::Padding& dim) { return dim.interior != 0; };
  const auto is_one = [](std::int64_t step) { return step == 1; };
  const auto is_positive = [](const Dim& size) { return max(size, 1) == size; };
  return is_float(node.dtype) && has_op("ConvTranspose", node, options) &&
         is_static(conv.padding) && std::ranges::any_of(conv.padding, is_dilated) &&
         std::ranges::all_of(conv.stride, is_one) && conv.feature_groups.is_static() &&
         conv.batch_groups == 1 && std::ranges::all_of(node.prim->out[0].shape, is_positive);
}

// The kernel over labels of its own: for each dim the product it runs over, none for a unit dim.
struct Kernel {
  Use use;
  axis::Pattern dims;
};

Kernel kernel_of(Graph& graph, const Node& conv) {
  Kernel kernel{graph.self(conv.edges[1].node), {}};
  std::size_t axis = 0;
  for (const Dim& size : conv.prim->in[1].shape) {
    kernel.dims.push_back(size.is_one() ? Labels() : kernel.use.labels[axis++]);
  }
  return kernel;
}

// The labels of the axes that rev turns around, or nullopt for another node.
std::optional<axis::Pattern> reversed_axes(const Use& use) {
  if (!use.node->is(Kind::kPrim, "rev")) return std::nullopt;
  const Ints dims = front::get_ints(use.node->prim->eqn, "dimensions");
  axis::Pattern found;
  std::size_t axis = 0;
  const Dims& shape = use.node->prim->in[0].shape;
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim].is_one()) continue;
    if (std::ranges::find(dims, static_cast<std::int64_t>(dim)) != dims.end()) {
      found.push_back(use.labels[axis]);
    }
    ++axis;
  }
  return found;
}

// What was reversed along just these axes, at once or one after the other; empty when the kernel is
// something else.
Use unreversed(Graph& graph, Use kernel, axis::Pattern space) {
  while (!space.empty()) {
    if (kernel.node->kind == Kind::kRelayout) kernel = graph.child(kernel, 0);
    const auto axes = kernel ? reversed_axes(kernel) : std::nullopt;
    if (!axes) return {};
    for (const Labels& axis : *axes) {
      const auto found = std::ranges::find(space, axis);
      if (found == space.end()) return {};
      space.erase(found);
    }
    kernel.node = kernel.node->edges[0].node;
  }
  return kernel;
}

// The kernel turned around along its spatial dims. JAX often did that already; groups are taken
// from the axis of the features, which another kernel may have as a part of one.
Use reversed(Graph& graph, const Kernel& kernel, const Node& conv, const ConvParams& params) {
  const Ints& order = params.rhs;
  const Labels& features = kernel.dims[order[0]];
  axis::Pattern space;
  Ints dims;
  for (std::size_t i = 2; i < order.size(); ++i) {
    const Labels& labels = kernel.dims[order[i]];
    if (labels.empty()) continue;
    space.push_back(labels);
    dims.push_back(order[i]);
  }
  if (space.empty()) return kernel.use;
  const Use found = unreversed(graph, kernel.use, space);
  if (found && (params.feature_groups.is_one() ||
                std::ranges::find(found.labels, features) != found.labels.end())) {
    return found;
  }
  auto info = std::make_shared<axis::PrimInfo>();
  info->eqn.primitive = "rev";
  info->eqn.attrs = {{"dimensions", dims}};
  info->in = info->out = {conv.prim->in[1]};
  return {graph.prim(info, {kernel.use})[0].node, kernel.use.labels};
}

// [O, I/g, spatial…] in any order as [I, O/g, spatial…]: the groups move from the one to the other.
struct Swapped {
  Use use;
  front::Type type;
};
Swapped swapped(Graph& graph, Kernel kernel, const Node& conv, const ConvParams& params) {
  const std::int64_t groups = params.feature_groups.value();
  const Dims& shape = conv.prim->in[1].shape;
  const auto out = static_cast<std::size_t>(params.rhs[0]),
             in = static_cast<std::size_t>(params.rhs[1]);
  Labels outer, inner = kernel.dims[out];
  const Dim each = floordiv(shape[out], groups);
  if (groups > 1) {
    outer = {graph.label(groups)};
    inner = each.is_one() ? Labels() : Labels{graph.label(each)};
    Labels both = joined(outer, inner);
    for (Labels& axis : kernel.use.labels) {
      if (axis == kernel.dims[out]) axis = both;
    }
  }
  axis::Pattern dims{joined(outer, kernel.dims[in]), inner};
  Swapped result{{}, {conv.prim->in[1].dtype, {shape[in] * groups, each}}};
  for (std::size_t i = 2; i < params.rhs.size(); ++i) {
    const auto dim = static_cast<std::size_t>(params.rhs[i]);
    dims.push_back(kernel.dims[dim]);
    result.type.shape.push_back(shape[dim]);
  }
  axis::Pattern axes;
  std::ranges::copy_if(dims, std::back_inserter(axes), [](const Labels& l) { return !l.empty(); });
  result.use = graph.relayout(kernel.use, axes);
  return result;
}

}  // namespace

// The equation stays that of the convolution; only its kernel is another.
Use conv_transpose(Graph& graph, const Use& use, const Options& options) {
  if (!use.node->is(Kind::kPrim, "conv_general_dilated")) return {};
  const auto params = ConvParams::read(use.node->prim->eqn);
  if (!is_conv_transpose(*use.node, params, options)) return {};
  graph.set_location(use.node->location);
  std::vector<Use> operands = graph.children(use);
  Kernel kernel = kernel_of(graph, *use.node);
  kernel.use = reversed(graph, kernel, *use.node, params);
  const Swapped swap = swapped(graph, kernel, *use.node, params);
  operands[1] = swap.use;
  auto info = std::make_shared<axis::PrimInfo>(*use.node->prim);
  info->eqn.primitive = "conv_transpose";
  info->in[1] = swap.type;
  return {graph.prim(info, operands)[0].node, use.labels};
}

}  // namespace jaxport::lower

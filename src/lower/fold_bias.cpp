// SPDX-License-Identifier: Apache-2.0
// A constant that is added to each channel of a convolution is the third input of Conv.
#include <algorithm>

#include "lower/emission.h"

namespace jaxport::lower {

using axis::Edge;
using axis::Kind;
using axis::Labels;
using axis::Node;

namespace {

// The axis of the result that holds the features; nullopt for a single feature.
std::optional<std::size_t> feature_axis(const Node& conv, const Order& order) {
  const Dims& shape = conv.prim->out[0].shape;
  const auto features = shape.begin() + order.out[0][1];
  if (features->is_one()) return std::nullopt;
  return static_cast<std::size_t>(
      std::count_if(shape.begin(), features, [](const Dim& size) { return !size.is_one(); }));
}

}  // namespace

std::optional<Bias> bias_of(const Emission& e, const Node& conv) {
  const auto& users = e.plan.facts.users(&conv);
  const bool is_wide =
      conv.dtype == DType::kF32 || conv.dtype == DType::kF64;  // others round twice
  if (!conv.is(Kind::kPrim, "conv_general_dilated") || !is_wide ||
      e.plan.lowerings.contains(conv.name) || users.size() != 1 || !users[0].node ||
      !users[0].node->is(Kind::kPointwise, "add")) {
    return std::nullopt;
  }
  const Node& add = *users[0].node;
  const Edge &sum = add.edges[users[0].operand], &bias = add.edges[1 - users[0].operand];
  const auto axis = feature_axis(conv, order_of(conv, row_for(e, conv)));
  if (!axis || !e.values.is_constant(bias) || bias.axes.empty()) return std::nullopt;
  const Labels& features = sum.axes[*axis];
  const std::size_t count = add.sizes.size();
  if (!LabelSet(count, features).has_all(axis::flatten(bias.axes)) ||
      !LabelSet(count, sum.axes).has_all(axis::flatten(add.out))) {
    return std::nullopt;
  }
  return Bias{&add, &bias, features};
}

bool take_biased(Emission& e, const Node& add) {
  if (add.name != "add") return false;
  for (const Edge& edge : add.edges) {
    if (edge.node->kind != Kind::kPrim || e.values.is_constant(edge)) continue;
    const auto bias = bias_of(e, e.plan.facts.node(edge.node));
    if (!bias || bias->add != &add) continue;
    e.values.define(add, e.values.variants(edge.node)[0].value,
                    e.values.arrangements(edge, add.sizes)[0]);
    return true;
  }
  return false;
}

}  // namespace jaxport::lower

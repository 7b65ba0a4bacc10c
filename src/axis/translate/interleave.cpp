// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "axis/graph/pattern.h"
#include "axis/graph/view.h"
#include "axis/translate/unpad.h"

namespace jaxport::axis {
namespace {

// What a pad with zeros along one dim is made of.
struct Spread {
  View view;
  Dims shape;
  std::size_t dim;
  front::Padding padding;
};

bool does_nothing(const front::Padding& padding) {
  return padding.low.is_zero() && padding.high.is_zero() && padding.interior == 0;
}

std::optional<Spread> spread(Graph& graph, const View& padded) {
  const Node& pad = *padded.use.node;
  if (!pad.is(Kind::kPrim, "pad")) return std::nullopt;
  const Dims &before = pad.prim->in[0].shape, &after = pad.prim->out[0].shape;
  const auto fill = graph.scalar_value(graph.child(padded.use, 1));
  if (fill != 0 || padded.dims != dims_of(padded.use.labels, after)) return std::nullopt;
  const front::Paddings config = front::PadParams::read(pad.prim->eqn).config;
  const auto pads = [](const front::Padding& padding) { return !does_nothing(padding); };
  if (std::ranges::count_if(config, pads) != 1) return std::nullopt;
  const auto dim = static_cast<std::size_t>(std::ranges::find_if(config, pads) - config.begin());
  const Use operand = graph.child(padded.use, 0);
  return Spread{{operand, dims_of(operand.labels, before)}, before, dim, config[dim]};
}

// Every second element from `start` on is of the operand.
bool takes_turns(const Spread& part, std::int64_t start, const Dim& size) {
  return part.padding.interior == 1 && part.padding.low == Dim(start) && size.is_static() &&
         part.shape[part.dim].is_static() &&
         part.shape[part.dim].value() == (size.value() - start + 1) / 2;
}

// a[0], b[0], a[1], b[1], …, of equal sizes.
View in_turn(Graph& graph, const View& a, const View& b, Dims shape, std::size_t dim) {
  Dims pair = shape;
  pair.insert(pair.begin() + static_cast<std::ptrdiff_t>(dim) + 1, Dim(1));
  std::vector<View> halves{reshape(graph, a, pair), reshape(graph, b, pair)};
  const View stacked = join_dim(graph, std::move(halves), dim + 1, Units::kStacked);
  shape[dim] = shape[dim] * 2;
  return reshape(graph, stacked, shape);
}

}  // namespace

Views interleaved(Translation& t) {
  if (t.in.size() != 2) return std::nullopt;
  auto even = spread(t.graph, t.in[0]), odd = spread(t.graph, t.in[1]);
  if (!even || !odd || even->dim != odd->dim) return std::nullopt;
  if (!even->padding.low.is_zero()) std::swap(even, odd);
  const std::size_t dim = even->dim;
  const Dim& size = t.out_shape()[dim];
  if (!takes_turns(*even, 0, size) || !takes_turns(*odd, 1, size)) return std::nullopt;
  const Dim count = odd->shape[dim];
  if (even->shape[dim] == count) {
    return one(in_turn(t.graph, even->view, odd->view, odd->shape, dim));
  }
  if (count.is_zero()) return std::nullopt;
  const View first = slice_dim(t.graph, even->view, dim, 0, count, 1);
  const View last = slice_dim(t.graph, even->view, dim, count, 1, 1);
  std::vector<View> pieces{in_turn(t.graph, first, odd->view, odd->shape, dim), last};
  return one(join_dim(t.graph, std::move(pieces), dim, Units::kJoined));
}

}  // namespace jaxport::axis

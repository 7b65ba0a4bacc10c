// SPDX-License-Identifier: Apache-2.0
#include "lower/emit/dimwise.h"

#include <algorithm>

#include "axis/graph/pattern.h"
#include "lower/emit/cheapest.h"
#include "lower/emit/prim.h"

namespace jaxport::lower {

using axis::Edge;
using axis::Label;
using axis::Labels;
using axis::Node;

namespace {

// The label of each jaxpr dim before and after; none for unit dims.
struct DimLabels {
  Arrangement in, out;
};

// nullopt when a dim becomes a unit dim or was one.
std::optional<DimLabels> labels_dim_by_dim(const axis::Node& node) {
  DimLabels dims{axis::dims_of(node.edges[0].axes, node.prim->in[0].shape),
                 axis::dims_of(node.out, node.prim->out[0].shape)};
  for (std::size_t d = 0; d < dims.in.size(); ++d) {
    if (dims.in[d].size() > 1 || dims.in[d].size() != dims.out[d].size()) return std::nullopt;
  }
  return dims;
}

Arrangement replaced(Arrangement dims, const Arrangement& from, const Arrangement& to) {
  for (Labels& dim : dims) {
    for (Label& label : dim) {
      const auto at = std::ranges::find(from, Labels{label});
      if (at != from.end()) label = to[at - from.begin()][0];
    }
  }
  return dims;
}

// Each label in a dim of its own, all unit dims in place or else in front.
Arrangement singles(const Arrangement& seen, std::size_t units) {
  const auto seen_units = static_cast<std::size_t>(
      std::ranges::count_if(seen, [](const Labels& dim) { return dim.empty(); }));
  Arrangement dims(seen_units == units ? 0 : units);
  for (const Labels& dim : seen) {
    if (dim.empty() && seen_units == units) dims.emplace_back();
    for (Label label : dim) dims.push_back({label});
  }
  return dims;
}

// The jaxpr dim of each physical dim.
Ints order_of_dims(const Arrangement& dims, const Arrangement& in) {
  Ints order;
  auto unit = in.begin();
  for (const Labels& dim : dims) {
    auto at = std::ranges::find(in, dim);
    if (dim.empty()) {
      at = std::find(unit, in.end(), dim);
      unit = at + 1;
    }
    order.push_back(at - in.begin());
  }
  return order;
}

front::Type reordered(const front::Type& type, const Ints& order) {
  front::Type result{type.dtype, {}};
  for (std::int64_t d : order) result.shape.push_back(type.shape[d]);
  return result;
}

}  // namespace

std::optional<Arrangement> dimwise_operand(const axis::Node& node, const Arrangement& result) {
  const auto dims = labels_dim_by_dim(node);
  if (!dims) return std::nullopt;
  return replaced(result, dims->out, dims->in);
}

bool emit_dimwise(Emission& e, const Node& node, const Row& row) {
  const auto dims = row.reordered ? labels_dim_by_dim(node) : std::nullopt;
  if (!dims) return false;
  const Edge& edge = node.edges[0];
  if (e.values.is_constant(edge)) return false;
  const auto units = static_cast<std::size_t>(
      std::ranges::count_if(dims->in, [](const Labels& dim) { return dim.empty(); }));
  std::vector<Arrangement> candidates = e.values.arrangements(edge, node.sizes);
  const LabelSet all(node.sizes.size(), node.out);
  if (const auto wish = wanted(e, node, all)) {
    candidates.push_back(replaced(*wish, dims->out, dims->in));
  }
  for (Arrangement& candidate : candidates) candidate = singles(candidate, units);
  const Arrangement best = cheapest_of(std::move(candidates), [&](const Arrangement& dims_in) {
    return e.values.price(edge, node.sizes, dims_in) +
           regret(e, node, replaced(dims_in, dims->in, dims->out));
  });
  const Ints order = order_of_dims(best, dims->in);
  front::Eqn eqn = node.prim->eqn;
  eqn.attrs = row.reordered(eqn, order);
  std::vector<front::Type> in = node.prim->in, out = node.prim->out;
  in[0] = reordered(in[0], order);
  out[0] = reordered(out[0], order);
  Values operands{e.values.bring(edge, node.sizes, best)};
  for (std::size_t i = 1; i < node.edges.size(); ++i) {  // scalars
    operands.push_back(e.values.bring_full(node.edges[i], node.sizes, {}));
  }
  Ctx ctx(e.op, e.shapes, eqn, std::move(operands), in, out);
  e.values.define(node, run_lowering(e, node, row, ctx).at(0), replaced(best, dims->in, dims->out));
  return true;
}

}  // namespace jaxport::lower

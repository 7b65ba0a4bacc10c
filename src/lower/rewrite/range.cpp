// SPDX-License-Identifier: Apache-2.0
// Bounds that may be symbolic, as sizes are: they tell whether an index lies inside of its dim.
// target/magnitude.cpp bounds the integers of the finished model, those that lowering has made
// included, by a number of bits: it tells which kernels are right, and needs no more.
#include "lower/rewrite/range.h"

#include <algorithm>

#include "front/params.h"
#include "lower/rewrite/floats.h"

namespace jaxport::lower {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Node;
using axis::Use;
using Known = std::optional<Range>;

constexpr int kDeepestRange = 6;
constexpr std::int64_t kMaxElements = 1 << 16;

Known range_within(Graph& graph, const Use& use, int depth);

Known of_constant(const Tensor& data) {
  if (data.size() == 0 || data.size() > kMaxElements) return std::nullopt;
  std::int64_t least = data.int_at(0), most = least;
  for (std::int64_t i = 1; i < data.size(); ++i) {
    least = std::min(least, data.int_at(i));
    most = std::max(most, data.int_at(i));
  }
  return Range{least, most};
}

// The positions that top_k gives, and a sort of positions.
Known of_order(Graph& graph, const Use& use, int depth) {
  const Node& node = *use.node;
  if (node.name == "sort") return range_within(graph, graph.child(use, node.result), depth);
  if (node.result != 1) return std::nullopt;
  const front::Eqn& eqn = node.prim->eqn;
  const Dims& shape = node.prim->in[0].shape;
  const auto given = eqn.primitive == "approx_top_k" ? front::get_int(eqn, "reduction_dimension")
                     : front::has(eqn, "axis")       ? front::get_int(eqn, "axis")
                                                     : std::int64_t{-1};
  const auto axis = static_cast<std::size_t>(given < 0 ? given + std::ssize(shape) : given);
  return Range{0, shape[axis] - 1};
}

Known of_prim(Graph& graph, const Use& use, int depth) {
  const Node& node = *use.node;
  const front::Eqn& eqn = node.prim->eqn;
  if (eqn.primitive == "sort" || eqn.primitive == "top_k" || eqn.primitive == "approx_top_k") {
    return of_order(graph, use, depth);
  }
  if (eqn.primitive == "argmax" || eqn.primitive == "argmin") {
    const Ints axes = front::ReduceParams::read(eqn).axes;
    if (axes.size() != 1) return std::nullopt;
    return Range{0, node.prim->in[0].shape[axes[0]] - 1};
  }
  if (eqn.primitive != "dim_as_value") return std::nullopt;
  const Dim size = front::get_dim(eqn, "dim");
  return Range{size, size};
}

// min(max(x, lo), hi) of ranges
Known of_clamp(const Known& lo, const Known& x, const Known& hi) {
  if (!lo || !hi || less_equal(lo->most, hi->least) != Truth::kYes) return std::nullopt;
  const bool above = x && less_equal(lo->least, x->least) == Truth::kYes;
  const bool below = x && less_equal(x->most, hi->most) == Truth::kYes;
  return Range{above ? x->least : lo->least, below ? x->most : hi->most};
}

Known of_remainder(const Known& x, const Known& by) {
  const bool positive = by && by->least == by->most && less_equal(1, by->least) == Truth::kYes;
  if (!positive) return std::nullopt;
  const bool starts_at_zero = x && less_equal(0, x->least) == Truth::kYes;
  return Range{starts_at_zero ? Dim(0) : Dim(1) - by->most, by->most - 1};
}

// Python's x % by.
Known of_floor_remainder(const Known& by) {
  if (!by || less_equal(1, by->least) != Truth::kYes) return std::nullopt;
  return Range{0, by->most - 1};
}

Known of_pointwise(Graph& graph, const Use& use, int depth) {
  const Node& node = *use.node;
  const auto child = [&](std::size_t i) { return range_within(graph, graph.child(use, i), depth); };
  if (node.name == "convert_element_type") {
    const DType from = node.edges[0].node->dtype;
    return is_integer(from) && holds_exactly(node.dtype, from) ? child(0) : std::nullopt;
  }
  if (node.name == "clamp") return of_clamp(child(0), child(1), child(2));
  if (node.name == "rem") return of_remainder(child(0), child(1));
  if (node.name == "floor_remainder") return of_floor_remainder(child(1));
  if (node.name != "add" && node.name != "sub") return std::nullopt;
  const Known a = child(0), b = child(1);
  if (!a || !b) return std::nullopt;
  if (node.name == "add") return Range{a->least + b->least, a->most + b->most};
  return Range{a->least - b->most, a->most - b->least};
}

// The parts that an array is made of, or what it is a part of.
Known of_parts(Graph& graph, const Use& use, int depth) {
  Known all;
  for (std::size_t i = 0; i < use.node->edges.size(); ++i) {
    const Use part = graph.child(use, i);
    const Known one = part ? range_within(graph, part, depth) : std::nullopt;
    if (!one) return std::nullopt;
    if (!all) all = one;
    if (less_equal(one->least, all->least) == Truth::kYes) all->least = one->least;
    if (less_equal(all->most, one->most) == Truth::kYes) all->most = one->most;
    const bool covers = less_equal(all->least, one->least) == Truth::kYes &&
                        less_equal(one->most, all->most) == Truth::kYes;
    if (!covers) return std::nullopt;
  }
  return all;
}

// What every value of a narrow unsigned type satisfies.
Known of_dtype(DType dtype) {
  const bool is_narrow = dtype == DType::kU8 || dtype == DType::kU16;
  return is_narrow ? Known({0, (std::int64_t{1} << bit_width(dtype)) - 1}) : std::nullopt;
}

Known range_within(Graph& graph, const Use& use, int depth) {
  const Node& node = *use.node;
  if (!is_integer(node.dtype) || depth == 0) return std::nullopt;
  Known found;
  if (node.kind == Kind::kConstant) found = of_constant(node.data);
  if (node.kind == Kind::kIota) found = Range{0, node.axis_size(0) - 1};
  if (node.kind == Kind::kPrim) found = of_prim(graph, use, depth - 1);
  if (moves_elements(node)) found = of_parts(graph, use, depth - 1);
  if (node.kind == Kind::kPointwise) found = of_pointwise(graph, use, depth - 1);
  return found ? found : of_dtype(node.dtype);
}

}  // namespace

std::optional<Range> range_of(Graph& graph, const Use& use) {
  return range_within(graph, use, kDeepestRange);
}

}  // namespace jaxport::lower
